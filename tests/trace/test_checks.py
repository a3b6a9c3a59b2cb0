"""Launches without their call are counted, whatever ids they have."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.traces import LAUNCH, add_rows

from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_calls

IDS = st.lists(st.none() | st.integers(0, 9) | st.sampled_from([-(2**63), 2**40]), max_size=9)
PROCESSES = st.sampled_from([(1, 1), (1, 2), (None, 1), (1, None), (None, None)])


def orphans(
    launched: Sequence[int | None], called: Sequence[int | None], processes: tuple[int | None, int | None]
) -> int:
    out = TraceBuilder({"launches", "calls"})
    of_launches, of_calls = processes
    add_rows(out, "launches", [LAUNCH | {"process": of_launches, "correlation_id": id_} for id_ in launched])
    call = {"api": "cudaLaunchKernel", "thread": 2, "start_ns": 0, "dur_ns": 1, "process": of_calls}
    add_rows(out, "calls", [call | {"correlation_id": id_} for id_ in called])
    check_calls(out)
    return out.losses.total("launch_before_window")


@given(IDS, IDS, PROCESSES)
def test_ids_that_no_call_has_are_counted(
    launched: list[int | None], called: list[int | None], processes: tuple[int | None, int | None]
) -> None:
    known = {id_ for id_ in called if id_ is not None}
    theirs = processes[0] in (None, processes[1])
    expected = sum(id_ is not None and not (theirs and id_ in known) for id_ in launched)
    assert orphans(launched, called, processes) == (expected if launched and called else 0)


def test_ids_far_from_all_others_are_counted_too() -> None:
    called = [*range(1_000), *range(10**12, 10**12 + 50), -(2**63), 2**63 - 1]
    absent = [1_000, 10**12 - 1, 10**12 + 50, -(2**63) + 1, 2**63 - 2, -1]
    assert orphans([*called, *absent, *absent], called, (1, 1)) == 2 * len(absent)
    assert orphans(absent, called[::-1], (1, 1)) == len(absent)
