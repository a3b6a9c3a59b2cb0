"""What the host did in a gap is the innermost code that was open for most of it, by time."""

import pytest
from tests.findings.rule_traces import frame, launched, op, trace_with

from inferometer.findings.evidence.host_path import HostPath, describe_site, find_host_path
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.trace.trace import Trace

ROWS = [launched(0, 5, 10), launched(1_015, 1_020, 10)]  # the device is idle from 15 to 1,020 μs
RUN = frame("engine/loop.py(1): run", -10, 2_000)


def path_of(trace: Trace) -> HostPath | None:
    launches = LaunchEvidence(trace)
    return find_host_path(trace, launches.gaps, launches.work)


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([RUN, frame("engine/a.py(2): a", 20, 1_000)], "engine/loop.py(1): run > engine/a.py(2): a"),
        ([RUN, frame("engine/a.py(2): a", 20, 500), frame("engine/b.py(3): b", 510, 1_000)], "engine/loop.py(1): run"),
        (
            [RUN, *(frame("engine/a.py(2): a", t, t + 8) for t in range(20, 1_000, 10))],
            "engine/loop.py(1): run > engine/a.py(2): a",
        ),
        (
            [RUN, frame("engine/a.py(2): a", 20, 620), frame("engine/b.py(3): b", 500, 1_100)],
            "engine/loop.py(1): run > engine/a.py(2): a",
        ),
        ([RUN, frame("torch/nn/modules/module.py(1): _call", 20, 1_000)], "engine/loop.py(1): run"),
        ([frame("torch/nn/modules/module.py(1): _call", 20, 1_000)], "torch/nn/modules/module.py(1): _call"),
    ],
    ids=["one", "two halves", "many short ones", "ranges that cross", "a framework's", "only a framework's"],
)
def test_the_innermost_code_of_the_user_that_took_most_is_told(frames: list[dict[str, object]], text: str) -> None:
    path = path_of(trace_with(ROWS, frames=frames))
    assert path is not None
    assert path.text == text


def test_ops_tell_it_where_frames_are_not_recorded() -> None:
    path = path_of(trace_with(ROWS, ops=[op("aten::convolution", 20, 1_000)]))
    assert path is not None
    assert (path.name, path.open_ns, path.total_ns) == ("aten::convolution", 980_000, 1_005_000)


def test_how_many_launches_a_frame_holds_tells_work_of_its_own_from_a_loop_of_launches() -> None:
    loop = path_of(trace_with(ROWS, frames=[RUN]))
    between = path_of(trace_with(ROWS, frames=[RUN, frame("engine/a.py(2): a", 20, 1_000)]))
    assert loop is not None
    assert between is not None
    assert (loop.launches, between.launches) == (1.0, 0.0)


def test_a_frame_of_another_thread_is_no_answer() -> None:
    other = frame("engine/other.py(1): wait", -10, 2_000) | {"thread": 77}
    assert path_of(trace_with(ROWS, frames=[other])) is None


def test_without_a_gap_or_a_frame_there_is_no_path() -> None:
    assert path_of(trace_with([launched(0, 5, 10), launched(1, 16, 10)])) is None
    assert path_of(trace_with(ROWS)) is None


def test_a_site_is_told_as_far_as_it_is_known() -> None:
    assert describe_site("aten::item", "a.py(1): f") == "aten::item in a.py(1): f"
    assert describe_site(None, "a.py(1): f") == "a.py(1): f"
    assert describe_site(None, None) is None
