"""A profile at an alarm: one at a time, one an hour, ended with the watch. The command is another one here."""

import sys
from pathlib import Path

import pytest
from tests.watch.serving import wait_until

from inferometer.watch.profiling import Profiling

_DOES = """
import sys
from pathlib import Path
Path(sys.argv[-1]).mkdir()
Path(sys.argv[-1], "words").write_text(" ".join(sys.argv[1:]))
"""
_REFUSES = "import sys; print('this server can\\'t start a profiler', file=sys.stderr); sys.exit(3)"
_WAITS = "import time, sys\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n sys.exit(0)"


def _profiling(tmp_path: Path, does: str, now_s: list[float]) -> tuple[Profiling, list[str]]:
    said: list[str] = []
    command = sys.executable, "-c", does
    return (
        Profiling("http://h:1", tmp_path / "run.ifm", said.append, command=command, monotonic_s=lambda: now_s[0]),
        said,
    )


def test_it_is_made_once_an_hour(tmp_path: Path) -> None:
    now_s = [0.0]
    profiling, said = _profiling(tmp_path, _DOES, now_s)
    began = []
    for now in (0.0, 10.0, 3599.0, 3600.0):
        now_s[0] = now
        began.append(profiling.start())
        wait_until(lambda: len(said) == sum(began))
    profiling.close()
    assert began == [True, False, False, True]
    (first, *_) = sorted(tmp_path.iterdir())
    assert first.name.startswith("run-profile-")
    words = (first / "words").read_text()
    assert words == f"record --server http://h:1 --seconds 3 -o {first}"
    assert said[0] == f"Profiled for 3 s: {first}"


def test_a_refusal_is_said(tmp_path: Path) -> None:
    profiling, said = _profiling(tmp_path, _REFUSES, [0.0])
    assert profiling.start()
    wait_until(lambda: said)
    assert said == ["No profile: this server can't start a profiler"]


def test_it_ends_with_the_watch(tmp_path: Path) -> None:
    profiling, _ = _profiling(tmp_path, _WAITS, [0.0])
    assert profiling.start()
    wait_until(lambda: profiling._process is not None)
    profiling.close()
    assert profiling._process is not None
    assert profiling._process.poll() is not None


def test_what_can_t_be_started_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    profiling = Profiling("u", tmp_path / "run.ifm", said.append, command=(str(tmp_path / "nothing"),))
    profiling.start()
    wait_until(lambda: said)
    profiling.close()
    assert said == ["No profile: No such file or directory"]


def test_one_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.watch.profiling._LONGEST_S", 0.5)
    profiling, said = _profiling(tmp_path, _WAITS, [0.0])
    assert profiling.start()
    wait_until(lambda: said)
    assert said == ["No profile: it took longer than 0.5 s."]
    profiling.close()
