"""A slice of the campaign, and the campaign itself: what it calls a defect, and that it can be repeated."""

import os
import sys
import time
from pathlib import Path
from random import Random

import pytest
from tests.fuzz import campaign, results
from tests.fuzz.__main__ import SEED
from tests.fuzz.campaign import Limits, Result, run_cases
from tests.fuzz.case import Case, make_case, run_case
from tests.fuzz.results import BEGIN, END, PAGE, RESULTS, Tally, figures, table_of
from tests.fuzz.subjects import Subject, subjects

CASES = 800
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_a_slice_has_no_defect(part: int) -> None:
    for number in range(part, CASES, PARTS):
        case, rng = make_case(SEED, number)
        outcome = run_case(case, rng)
        assert outcome.kind != "defect", f"python -m tests.fuzz --case {number}\n{case}\n{outcome.text}"


def test_a_slice_has_every_subject() -> None:
    assert {make_case(SEED, number)[0].subject.name for number in range(200)} == {each.name for each in subjects()}


def test_a_case_is_the_same_for_the_same_number() -> None:
    for number in range(60):
        (one, rng), (two, again) = make_case(SEED, number), make_case(SEED, number)
        assert (one.files, one.damages, one.links) == (two.files, two.damages, two.links)
        assert rng.random() == again.random()
    assert make_case(SEED, 0)[0].files != make_case(SEED + 1, 0)[0].files


def subject_that(does: object) -> Subject:
    def open_it(path: Path, rng: Random) -> None:
        raise does if isinstance(does, BaseException) else AssertionError

    return Subject("any", lambda: [{"file": b"x"}], open_it)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("k"), RecursionError(), MemoryError(), AssertionError()])
def test_any_other_exception_is_a_defect(error: Exception) -> None:
    outcome = run_case(Case(subject_that(error), {"file": b"x"}, (), {}), Random(1))
    assert (outcome.kind, type(error).__name__ in outcome.where) == ("defect", True)


def run_in_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, **limits: float) -> list[Result]:
    """The results of cases that a module in the place of `tests.fuzz.case` runs."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types, dataclasses\n"
        "case = types.ModuleType('tests.fuzz.case')\n"
        f"exec({module!r}, case.__dict__)\n"
        "sys.modules['tests.fuzz.case'] = case\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return list(run_cases(SEED, range(4), processes=1, limits=Limits(**limits)))  # type: ignore[arg-type]


FAKE = """
import os, sys, time, types
def make_case(seed, number):
    return types.SimpleNamespace(subject=types.SimpleNamespace(name='kineto')), number
def run_case(case, number):
    outcome = types.SimpleNamespace(subject='kineto', kind='answer', seconds=0.1, asked=None, where='', text='')
    if number == 1:
        {act}
    return outcome
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits are measured as Linux has them")
@pytest.mark.parametrize(
    ("act", "seconds", "where"),
    [
        ("os.abort()", 10.0, "the process ended with -6"),
        ("time.sleep(100)", 0.5, "took longer than 0.5 s"),
        ("os.write(2, b'warning: x')", 10.0, "printed 'warning: x'"),
        ("bytearray(os.urandom(1)) * (300 << 20)", 10.0, "grew by "),  # on a busy machine alone above half a second
    ],
)
def test_a_worker_that_dies_hangs_prints_or_grows_is_a_defect(
    act: str, seconds: float, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_START_S", 20.0)
    found = run_in_a_worker(monkeypatch, tmp_path, FAKE.format(act=act), seconds=seconds, growth_bytes=200 << 20)
    assert [(result.number, result.kind) for result in found] == [
        *((0, "answer"), (1, "defect"), (2, "answer"), (3, "answer"))
    ]
    assert found[1].where.startswith(where)


def test_a_tally_adds_up() -> None:
    tally = Tally()
    kinds = ("answer", "answer with losses", "refusal", "refusal", "defect")
    news = [tally.add(Result(i, "a", kind, 0.5 * i, 10 * i, where=kind)) for i, kind in enumerate(kinds)]
    assert news == [False, False, False, False, True]
    assert (tally.cases, tally.defects) == (5, 1)
    one, total = tally.rows()
    assert one["cases"] == total["cases"] == 5
    assert (total["refusal"], total["seconds"], total["growth_bytes"]) == (2, 2.0, 40)
    assert table_of(tally.rows()).count("\n") == 3


@pytest.mark.skipif(not RESULTS.exists(), reason="no campaign was run yet")
def test_the_page_shows_the_results_that_are_there() -> None:
    text = PAGE.read_text("utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == figures()


def test_the_page_is_made_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, found = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text(f"before {BEGIN} old {END} after")
    monkeypatch.setattr(results, "PAGE", page)
    monkeypatch.setattr(results, "RESULTS", found)
    tally = Tally()
    tally.add(Result(1, "kineto", "refusal", 0.25, 3 << 20))
    results.write_results(tally, seed=7, seconds=120.0, processes=2)
    results.write_page()
    text = page.read_text()
    assert "| kineto | 1 | 0 | 0 | 1 | 0 | 0 | 0.2 s | 3 MiB |" in text
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert time.strftime("%Y", time.gmtime()) in text


def test_results_are_amended_where_a_defect_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path / "found.json")
    tally = Tally()
    for number, kind in enumerate(("defect", "refusal", "defect")):
        tally.add(Result(number, "kineto", kind, 0.25, 3 << 20))
    results.write_results(tally, seed=7, seconds=120.0, processes=2)
    assert results.defective_cases() == [0, 2]
    results.amend_results([Result(0, "kineto", "refusal", 0.1, 0), Result(2, "kineto", "defect", 0.1, 0)])
    assert results.defective_cases() == [2]
    assert "| all | 3 | 0 | 0 | 2 | 1 |" in results.figures()
