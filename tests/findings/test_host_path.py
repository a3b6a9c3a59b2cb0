"""What the host did in a gap is the innermost code that was open for most of it, by time."""

import pytest
from tests.findings.rule_traces import frame, launched, op, trace_with

from inferometer.findings.host_path import HostPath, describe_site, find_host_path
from inferometer.findings.launch_evidence import LaunchEvidence
from inferometer.trace.trace import Trace

ROWS = [launched(0, 5, 10), launched(1_015, 1_020, 10)]  # the device is idle from 15 to 1,020 μs
RUN = frame("engine/loop.py(1): run", -10, 2_000)


def path_of(trace: Trace) -> HostPath | None:
    return find_host_path(trace, LaunchEvidence(trace).gaps)


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        ([RUN, frame("engine/a.py(2): a", 20, 1_000)], "engine/loop.py(1): run > engine/a.py(2): a"),
        ([RUN, frame("engine/a.py(2): a", 20, 500), frame("engine/b.py(3): b", 510, 1_000)], "engine/loop.py(1): run"),
        (
            [RUN, *(frame("engine/a.py(2): a", t, t + 8) for t in range(20, 1_000, 10))],
            "engine/loop.py(1): run > engine/a.py(2): a",
        ),
        ([RUN, frame("torch/nn/modules/module.py(1): _call", 20, 1_000)], "engine/loop.py(1): run"),
        ([frame("torch/nn/modules/module.py(1): _call", 20, 1_000)], "torch/nn/modules/module.py(1): _call"),
        ([], None),
    ],
    ids=["one", "two halves", "many short ones", "a framework's", "only a framework's", "none"],
)
def test_the_innermost_code_of_the_user_that_took_most_is_told(
    frames: list[dict[str, object]], text: str | None
) -> None:
    path = path_of(trace_with(ROWS, frames=frames))
    assert path is not None
    assert path.text == text


def test_ops_tell_it_where_frames_are_not_recorded() -> None:
    path = path_of(trace_with(ROWS, ops=[op("aten::convolution", 20, 1_000)]))
    assert path is not None
    assert (path.name, path.share) == ("aten::convolution", 1.0)


def test_without_a_gap_there_is_no_path() -> None:
    assert path_of(trace_with([launched(0, 5, 10), launched(1, 16, 10)])) is None


def test_a_site_is_told_as_far_as_it_is_known() -> None:
    assert describe_site("aten::item > aten::_local_scalar_dense", "a.py(1): f") == "aten::item in a.py(1): f"
    assert describe_site(None, "a.py(1): f") == "a.py(1): f"
    assert describe_site(None, None) is None
