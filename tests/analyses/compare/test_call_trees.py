"""Two call trees as one: differences add up, nodes meet by their paths, and what times are of."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.analyses.launched_by.test_attribution import THREAD, call, frame, op, work
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.call_trees import CallTreeComparison, compare_trees
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.call_tree import TreeOptions
from inferometer.errors import InputError
from inferometer.reports.flames import render_folded_difference
from inferometer.reports.views.view import facts_of, remarks_of, sections_of

RECORDED = Path(__file__).resolve().parents[3] / "samples" / "recorded"
SIDES = ("base", "candidate")


def trees(base: Trace, candidate: Trace, **asked: Any) -> CallTreeComparison:
    return compare_trees((base, attribute(base)), (candidate, attribute(candidate)), TreeOptions(**asked))


def rows(found: CallTreeComparison) -> list[tuple[str, str | None, int, int]]:
    return found.frame.select("name", "status", "base_ns", "candidate_ns").rows()


def check_sums(found: CallTreeComparison) -> None:
    """Of every node, its own time and what is below it add up to its time, in both runs and in the difference."""
    below: dict[int, list[int]] = {}
    nodes = list(found.frame.iter_rows(named=True))
    for row in nodes:
        times = (row["base_ns"], row["candidate_ns"], row["delta_ns"])
        if row["parent"] is not None:
            below[row["parent"]] = [a + b for a, b in zip(below.get(row["parent"], [0, 0, 0]), times, strict=True)]
    for row in nodes:
        own = row["base_self_ns"], row["candidate_self_ns"], row["candidate_self_ns"] - row["base_self_ns"]
        whole = [a + b for a, b in zip(own, below.get(row["node"], [0, 0, 0]), strict=True)]
        assert whole == [row["base_ns"], row["candidate_ns"], row["delta_ns"]], row["name"]


@pytest.mark.parametrize("fault", sorted(folder.name for folder in RECORDED.iterdir() if folder.is_dir()))
def test_differences_of_recorded_runs_add_up_to_the_time_of_a_step(fault: str) -> None:
    pair = [inferometer.open(RECORDED / fault / f"{run}.ifm") for run in ("normal", "fault")]
    found = trees(*pair, frames="all")
    assert found.per == "step"
    check_sums(found)
    leaves = found.frame.filter(kind="kernel").height
    for trace, run, total_ns in zip(
        pair, (found.base, found.candidate), (found.base_ns, found.candidate_ns), strict=True
    ):
        inside_ns, outside_ns, steps = in_steps(trace)
        assert (run.steps, run.outside_ns) == (steps, outside_ns)
        assert abs(total_ns - inside_ns / steps) <= leaves, "rounded at the leaves"


def in_steps(trace: Trace) -> tuple[int, int, int]:
    """Time of launches that begin in a step, time of the others, and steps with any; of a CPU, which queues nothing."""
    marks = trace.steps.select("start_ns", "dur_ns").collect().iter_rows()
    steps = [(start_ns, start_ns + dur_ns) for start_ns, dur_ns in marks]
    inside_ns = outside_ns = 0
    used = set()
    for start_ns, dur_ns in trace.launches.select("start_ns", "dur_ns").collect().iter_rows():
        step = next((i for i, (begin, end) in enumerate(steps) if begin <= start_ns < end), None)
        if step is None:
            outside_ns += dur_ns
        else:
            inside_ns += dur_ns
            used.add(step)
    return inside_ns, outside_ns, len(used)


@pytest.mark.parametrize(
    ("base", "candidate"),
    [("h100_vit", "mi300_vit"), ("rank0_sampled", "rank1_sampled"), ("h100_qwen1.5-0.5b", "mi300_qwen1.5-0.5b")],
)
def test_differences_of_whole_runs_add_up_to_their_launches(shared_data: Path, base: str, candidate: str) -> None:
    pair = [inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz") for name in (base, candidate)]
    found = trees(*pair)
    check_sums(found)
    if found.per == "run":
        sums = [trace.launches.select("dur_ns").collect().sum().item() for trace in pair]
        assert [found.base_ns, found.candidate_ns] == sums
    statuses = found.frame.group_by("status").agg(pl.col("base_count", "candidate_count").sum()).rows()
    assert {status: (before > 0, after > 0) for status, before, after in statuses if status} == {
        "new": (False, True),
        "gone": (True, False),
    }


def test_a_run_against_itself_has_no_difference() -> None:
    trace = inferometer.open(RECORDED / "disk" / "normal.ifm")
    found = trees(trace, trace)
    assert set(found.frame.select("delta_ns", "status").iter_rows()) == {(0, None)}


def run_of(*launches: tuple[str, str, int], line: int = 5) -> Trace:
    """Op, kernel and time of each launch, called for in one function."""
    frames = [frame(f"model.py({line}): forward", 0, 10_000)]
    ops = [op(name, 100 * i, 50) for i, (name, _, _) in enumerate(launches)]
    calls = [call(i, 100 * i + 10) for i in range(len(launches))]
    kernels = [work(i, 20_000 + 1_000 * i, ns, kernel=kernel) for i, (_, kernel, ns) in enumerate(launches)]
    return trace_of(kernels, calls=calls, ops=ops, frames=frames)


def test_what_changed_most_stands_first_and_what_one_run_lacks_is_new_or_gone() -> None:
    base = run_of(("aten::linear", "gemm", 70), ("aten::add", "add", 5), ("aten::sdpa", "flash", 20))
    candidate = run_of(("aten::linear", "gemm", 75), ("aten::add", "add", 5), ("aten::softmax", "softmax", 30))
    found = trees(base, candidate, frames="user")
    assert rows(found) == [
        ("model.py(5): forward", None, 95, 110),
        ("aten::softmax", "new", 0, 30),
        ("softmax", "new", 0, 30),
        ("aten::sdpa", "gone", 20, 0),
        ("flash", "gone", 20, 0),
        ("aten::linear", None, 70, 75),
        ("gemm", None, 70, 75),
        ("aten::add", None, 5, 5),
        ("add", None, 5, 5),
    ]
    assert found.frame["ratio"].to_list()[:3] == [110 / 95, None, None]
    (section,) = sections_of(found)
    assert section.frame["indented"].to_list()[:2] == ["model.py(5): forward", "  aten::softmax"]


def test_frames_that_pass_through_in_one_run_alone_are_nodes_of_both() -> None:
    calls_one, calls_two = run_of(("aten::neg", "neg", 9)), run_of(("aten::neg", "neg", 9), ("aten::cat", "cat", 9))
    assert rows(trees(calls_one, calls_two))[0] == ("model.py(5): forward", None, 9, 18)
    assert rows(trees(calls_one, calls_one))[0] == ("aten::neg", None, 9, 9)


def test_a_function_that_an_edit_moved_is_the_same_node() -> None:
    found = trees(run_of(("aten::neg", "neg", 9), line=5), run_of(("aten::neg", "neg", 9), line=7), frames="user")
    assert rows(found)[0] == ("model.py(7): forward", None, 9, 9)


def test_ranges_that_differ_in_numbers_are_pooled_in_both_or_in_none() -> None:
    def ranges(count: int) -> Trace:
        spans = [{"span": f"block {i}", "start_ns": 100 * i, "dur_ns": 50, **THREAD} for i in range(count)]
        calls = [call(i, 100 * i + 10) for i in range(count)]
        return trace_of([work(i, 9_000 + 100 * i, 10) for i in range(count)], calls=calls, spans=spans)

    one, two = ranges(1), ranges(2)
    assert rows(trees(one, two))[0] == ("block N", None, 10, 20)
    assert [name for name, *_ in rows(trees(one, two, layers="apart"))][::2] == ["block 1", "block 0"]


def marked(steps: int, ns: int, *, before: int = 0) -> Trace:
    """Steps with a launch each; so many launches before the first."""
    marks = [{"span": f"ProfilerStep#{i}", "start_ns": 1_000 * i, "dur_ns": 900, **THREAD} for i in range(steps)]
    numbers = range(-before, steps)
    calls = [call(i + 99, 1_000 * i + 10) for i in numbers]
    return trace_of([work(i + 99, 1_000 * i + 100, ns) for i in numbers], calls=calls, spans=marks)


def test_runs_that_mark_their_steps_alike_are_compared_by_the_step() -> None:
    found = trees(marked(4, 100), marked(2, 150))
    assert (found.per, found.base_ns, found.candidate_ns) == ("step", 100, 150)
    assert found.frame["candidate_count"].to_list() == [1.0, 1.0]
    assert dict(facts_of(found))["Device time"] == "100 ns -> 150 ns a step, 1.500 times (4 and 2 steps)"
    unmarked = trees(marked(4, 100), run_of(("aten::neg", "neg", 9)))
    assert (unmarked.per, unmarked.base_ns, unmarked.candidate_ns) == ("run", 400, 9)
    assert dict(facts_of(unmarked))["Device time"].startswith("400 ns -> 9 ns of the whole runs")


def test_what_no_step_called_for_is_left_out_and_reported() -> None:
    found = trees(marked(4, 100, before=3), marked(2, 150))
    assert (found.base_ns, found.base.outside_ns, found.candidate.outside_ns) == (100, 300, 0)
    assert "Left out as in no step: 300 ns of the base and 0 ns of the candidate." in remarks_of(found)


def test_a_mean_over_phases_is_reported() -> None:
    def served(prefills: int) -> Trace:
        phases = ["prefill"] * prefills + ["decode"] * 3
        steps = [{"step": i, "phase": phase, "start_ns": 1_000 * i, "dur_ns": 900} for i, phase in enumerate(phases)]
        launches = [work(None, 1_000 * i + 100, 50, device="cpu") for i in range(len(steps))]
        return trace_of(launches, steps=[{**step, "source": "recorded", "process": 1} for step in steps])

    assert any(
        "base 3 decode, 1 prefill; candidate 3 decode, 2" in one for one in remarks_of(trees(served(1), served(2)))
    )


def test_shares_are_of_the_larger_total_and_of_the_larger_time_of_a_node() -> None:
    found = trees(run_of(("aten::neg", "neg", 50)), run_of(("aten::cat", "cat", 200)), min_share=0.3, frames="none")
    assert found.frame.select("name", "share").rows()[::2] == [("aten::cat", 1.0), ("aten::neg", 0.25)]
    assert found.shown["name"].to_list() == ["aten::cat", "cat"]


def test_folded_lines_have_the_time_of_both_runs() -> None:
    found = trees(
        run_of(("aten::neg", "neg", 50)), run_of(("aten::neg", "neg", 40), ("a;b", "cat 3", 7)), frames="none"
    )
    assert render_folded_difference(found).splitlines() == ["aten::neg;neg 50 40", "a,b;cat_3 0 7"]


def test_a_run_without_launches_is_refused() -> None:
    with pytest.raises(InputError, match="expected launches, found none"):
        trees(trace_of(), run_of(("aten::neg", "neg", 9)))
