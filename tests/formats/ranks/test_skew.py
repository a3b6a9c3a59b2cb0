"""Skew between ranks: the ends of collectives show it, and nothing else does."""

from typing import Any

from tests.traces import trace_of

from inferometer.formats.ranks.skew import find_skews
from inferometer.trace.combined_facts import Skew

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def all_reduce(rank: int, end_ns: int, *, dur_ns: int = 10, **more: Any) -> dict[str, Any]:
    return {"kernel": ALL_REDUCE, "rank": rank, "start_ns": end_ns - dur_ns, "dur_ns": dur_ns} | more


def skews(*launches: dict[str, Any]) -> dict[int, Skew]:
    return dict(find_skews(trace_of(launches).launches))


def test_the_ends_of_collectives_tell_the_skew_whatever_their_starts() -> None:
    ends = [100, 200, 300]
    reference = [all_reduce(0, end, dur_ns=50) for end in ends]
    late = [all_reduce(1, end + 1_000 + noise) for end, noise in zip(ends, (-2, 0, 5), strict=True)]
    early = [all_reduce(2, end - 40) for end in ends]
    assert skews(*reference, *late, *early) == {1: Skew(1_000, 2, 3), 2: Skew(-40, 0, 3)}


def test_the_reference_is_the_lowest_rank_with_collectives() -> None:
    assert skews({"rank": 0}, all_reduce(3, 100), all_reduce(5, 107)) == {5: Skew(7, 0, 1)}


def test_collectives_that_are_not_as_many_are_not_compared() -> None:
    assert skews(all_reduce(0, 100), all_reduce(1, 100), all_reduce(1, 200)) == {}


def test_other_kernels_and_one_sided_collectives_tell_nothing() -> None:
    send = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    assert skews({"rank": 0}, {"rank": 1, "start_ns": 50}) == {}
    assert skews(all_reduce(0, 100, kernel=send), all_reduce(1, 150, kernel=send)) == {}
    assert skews(all_reduce(0, 100, kind="memcpy"), all_reduce(1, 150, kind="memcpy")) == {}


def test_the_halves_of_a_collective_are_one() -> None:
    halves = [
        all_reduce(rank, 100 + 7 * rank, kernel=f"all-reduce-{half}.1") for rank in (0, 1) for half in ("start", "done")
    ]
    assert skews(*halves) == {1: Skew(7, 0, 1)}


def test_nothing_is_told_without_launches_or_their_columns() -> None:
    assert find_skews(None) == {}
    assert skews() == {}
    assert find_skews(trace_of([all_reduce(0, 1)]).launches.drop("start_ns")) == {}
