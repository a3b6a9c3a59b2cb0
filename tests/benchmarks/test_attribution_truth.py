"""Right, wrong and missing call sites are distinguished, launch by launch, for every kind of launch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from benchmarks.attribution_truth import (
    CASES,
    PARTS,
    Case,
    Known,
    Score,
    Site,
    _known,
    _pair,
    _site_of,
    judge,
    main,
    run_case,
    table,
)
from tools.kineto_maker import Chain, LaunchTruth, LaunchTruths, Options

SMALL = Options(steps=2, layers=1)
GRAPH = replace(SMALL, mode="graph", batches=(1, 32), steps=3)
FILL = LaunchTruth("kernel", "fill", 20, 5, 7, 1, 0, 0, Chain(("outer",), (), ("loop", "nn.Module: A_0")), 17, 9, None)


def counts(score: Score) -> dict[str, dict[str, int]]:
    return {part: dict(score.verdicts[part]) for part in PARTS}


@pytest.mark.parametrize(
    ("wanted", "found", "is_told", "verdict"),
    [
        ("a > b", "a > b", True, "right"),
        ("a > b", "b", True, "wrong"),
        ("a", None, True, "missing"),
        (None, None, True, "right"),
        (None, "a", True, "wrong"),
        ("in the model", "replay", False, "missing"),
        ("replay", "replay", False, "right"),
    ],
)
def test_a_part_is_right_wrong_or_missing(wanted: str | None, found: str | None, is_told: bool, verdict: str) -> None:
    assert judge(wanted, found, is_told=is_told) == verdict


def test_a_replayed_kernel_is_around_its_replay_and_in_the_captured_program() -> None:
    inner = Chain(("linear", "mm"), ("A_0", "B_1"), ("nn.Module: A_0", "forward", "<method mm of T object at 0x7f3a>"))
    assert _site_of(FILL._replace(captured=inner)) == (
        "outer > linear > mm",
        "A_0 > B_1",
        "<method mm of T object>",
    )
    assert _site_of(FILL) == ("outer", None, "loop"), "no capture has it; a module is no frame"


def test_launches_are_paired_by_stream_and_start() -> None:
    known = list(_known(LaunchTruths([FILL, FILL._replace(stream=3, start_ns=90, graph_id=None)])))
    assert [each.way for each in known] == ["replayed", "called"]
    rows = [{"stream": 3, "start_ns": 90, "kernel": "fill"}, {"stream": 7, "start_ns": 20, "kernel": "fill"}]
    assert [(each.start_ns, row["start_ns"]) for each, row in _pair(known, list(rows))] == [(90, 90), (20, 20)]
    with pytest.raises(LookupError, match="expected 2 launches, found 1"):
        list(_pair(known, rows[:1]))
    with pytest.raises(LookupError, match="expected fill at 20, found silu at 20"):
        list(_pair(known, [rows[0], {**rows[1], "kernel": "silu"}]))


def test_misses_are_told_a_few_of_each_part() -> None:
    score = Score("case", "called")
    known = Known(7, 20, "fill", "called", Site("a > b", "A_0", None))
    for _ in range(5):
        score.add(known, {"how": "call", "op_chain": "b", "module_recorded": None, "frame": None})
    assert counts(score) == {"ops": {"wrong": 5}, "modules": {"missing": 5}, "frame": {"right": 5}}
    assert score.misses[0] == "ops wrong: expected a > b, found b of fill"
    assert len(score.misses) == 6
    assert table([score])[2] == "| case | called | 5 | 0.00 % (5 wrong) | 0.00 % (5 missing) | 100.00 % |"


def test_made_up_launches_get_their_sites() -> None:
    capture = replace(GRAPH, mode="capture", seed=11)
    cases = [Case("eager", replace(SMALL, threads=2)), Case("graph", GRAPH, (capture,)), Case("capture", capture)]
    scores = [score for case in cases for score in run_case(case)]
    assert {(score.case, score.way) for score in scores} == {
        *(("eager", "called"), ("graph", "called"), ("graph", "replayed")),
        *(("capture", "called"), ("capture", "captured")),
    }
    for score in scores:
        assert counts(score) == {part: {"right": score.launches} for part in PARTS}, score.misses


def test_without_a_capture_replayed_kernels_miss_their_sites() -> None:
    (replayed,) = [score for score in run_case(Case("graph", GRAPH)) if score.way == "replayed"]
    assert counts(replayed) == {part: {"missing": replayed.launches} for part in PARTS}


def test_what_is_said_is_json_on_stdout_and_a_table_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "eager, no stacks", "--layers", "1", "--misses"]) == 0
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert (row["case"], row["way"], row["misses"]) == ("eager, no stacks", "called", [])
    assert row["ops"] == {"right": row["launches"], "wrong": 0, "missing": 0}
    assert "| eager, no stacks | called |" in said.err
    assert len({case.name for case in CASES}) == len(CASES)
