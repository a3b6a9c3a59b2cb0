"""What counts as noticed: a mutant that fails or loops; one that waits only when it waits again, alone."""

import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="mutants run on systems that limit the time of a process")

from tests.mutants import running
from tests.mutants.changes import Mutant
from tests.mutants.running import Outcome, run_mutants
from tests.mutants.subjects import SUBJECTS, Subject


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(0, "survived"), (1 << 8, "killed"), (signal.SIGSEGV, "killed"), (signal.SIGXCPU, "timed out")],
)
def test_a_process_that_used_up_its_time_looped(status: int, outcome: Outcome) -> None:
    assert running._outcome(status) == outcome


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_what_waits_is_tried_again_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(subject: Subject, source: str) -> int:
        is_first = not (tmp_path / source).exists()
        (tmp_path / source).touch()
        if source == "waits" or (source == "waits once" and is_first):
            time.sleep(600)
        return 1 if source == "fails" else 0

    monkeypatch.setattr(running, "_run_tests", run)
    monkeypatch.setattr(running, "_WAITS", 1)
    mutants = [Mutant(1, "", "", source) for source in ("passes", "fails", "waits", "waits once")]
    found = run_mutants(SUBJECTS[0], mutants, usual_s=0.2, jobs=4)  # a few seconds
    assert {mutant.source: outcome for mutant, outcome in found} == {
        "passes": "survived",
        "fails": "killed",
        "waits": "timed out",
        "waits once": "survived",
    }
