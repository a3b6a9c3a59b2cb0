"""Ranks against each other: who arrives last, how long the others wait, and what can't be compared."""

from typing import Any

import pytest
from tests.traces import trace_of

from inferometer.analyses.selection import Selection
from inferometer.analyses.timeline.timeline import Timeline, find_timeline
from inferometer.reports.views.view import remarks_of, sections_of

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MS = 1_000_000


def collective(rank: int, arrives_ns: int, leaves_ns: int, kernel: str = ALL_REDUCE, **more: Any) -> dict[str, Any]:
    times = {"start_ns": arrives_ns, "dur_ns": leaves_ns - arrives_ns}
    return {"kernel": kernel, "rank": rank, "device": f"gpu:{rank}", "stream": 20} | times | more


def steps(*late_us: tuple[int, ...], clock_ns: int = 0, kernel: str = ALL_REDUCE) -> list[dict[str, Any]]:
    """A collective each ms, which every rank leaves 100 μs after the last arrival; rank 1's clock is `clock_ns` off."""
    return [
        collective(
            rank,
            step * MS + late * 1_000 + clock_ns * (rank == 1),
            step * MS + max(lates) * 1_000 + 100_000 + clock_ns * (rank == 1),
            kernel,
        )
        for step, lates in enumerate(late_us)
        for rank, late in enumerate(lates)
    ]


def columns(found: Timeline, *names: str) -> list[tuple[Any, ...]]:
    return found.ranks.frame.select(names).rows()


@pytest.mark.parametrize("clock_ns", [0, 40, -7_000_000_000])
def test_the_shortest_arrived_last_and_the_others_waited_for_it(clock_ns: int) -> None:
    found = find_timeline(trace_of(steps((0, 50), (0, 30), (10, 0), (0, 20), clock_ns=clock_ns)))
    assert columns(found, "rank", "compared", "last", "last_share", "waited_ns", "kept_waiting_ns") == [
        (0, 4, 1, 0.25, 100_000, 10_000),
        (1, 4, 3, 0.75, 10_000, 100_000),
    ]
    assert found.ranks.collectives.select("collective", "ranks", "fewest", "most", "compared", "waited_ns").rows() == [
        ("all_reduce", 2, 4, 4, 4, 110_000)
    ]
    assert (
        "gpu:1 of rank 1 arrives last in 75.0 % of 4 collectives; the others wait 100.000 μs for it in all."
        in remarks_of(found)
    )


def test_of_three_ranks_two_wait_for_the_third() -> None:
    found = find_timeline(trace_of(steps((0, 10, 60), (0, 10, 60), (0, 10, 60))))
    assert columns(found, "rank", "last", "waited_ns", "kept_waiting_ns") == [
        (0, 0, 180_000, 0),
        (1, 0, 150_000, 0),
        (2, 3, 0, 330_000),
    ]


def test_nobody_is_last_where_two_are() -> None:
    found = find_timeline(trace_of(steps((0, 0), (0, 0), (0, 0))))
    assert columns(found, "last", "waited_ns") == [(0, 0), (0, 0)]
    assert not [remark for remark in remarks_of(found) if "last" in remark]


def test_the_halves_of_a_collective_are_one() -> None:
    """XLA waits in `all-reduce-done` for what `all-reduce-start` began: they count once."""
    lates = ((0, 50), (0, 30), (10, 0))
    halves = [*steps(*lates, kernel="all-reduce-start.1"), *steps(*lates, kernel="all-reduce-done.1")]
    found = find_timeline(trace_of(halves))
    assert columns(found, "rank", "compared", "last") == [(0, 3, 1), (1, 3, 2)]
    assert found.ranks.collectives["kernel"].to_list() == ["all-reduce-start.1"]


UNEVEN = [*steps((0, 50), (0, 30), (10, 0)), collective(0, 9 * MS, 9 * MS + 1)]


@pytest.mark.parametrize(
    ("launches", "why"),
    [
        pytest.param(UNEVEN, "not as many on each rank", id="counts differ"),
        pytest.param(steps((0, 50), (0, 30)), "too few", id="two of them"),
        pytest.param(
            steps((0, 50), (0, 30), (10, 0), kernel="ncclDevKernel_SendRecv(A)"), "ranks may leave apart", id="send"
        ),
        pytest.param(
            steps((0, 50), (0, 30), (10, 0), kernel="ncclDevKernel_Broadcast_RING_LL(A)"),
            "ranks may leave apart",
            id="broadcast",
        ),
        pytest.param(
            [
                *[collective(0, step * MS, step * MS + 9_000) for step in (0, 1, 2, 3, 4)],
                *[collective(1, step * MS, step * MS + 5_000) for step in (0, 3, 4, 9, 11)],
            ],
            "ranks don't leave in step",
            id="other groups",
        ),
        pytest.param(
            [*steps((0,), (0,), (0,)), {"rank": 1, "device": "gpu:1"}], "on one rank only", id="the other has none"
        ),
    ],
)
def test_what_cannot_be_matched_is_not_compared(launches: list[dict[str, Any]], why: str) -> None:
    found = find_timeline(trace_of(launches))
    assert found.ranks.collectives.select("compared", "waited_ns", "not_compared").rows() == [(None, None, why)]
    assert found.ranks.frame["last"].to_list() == [None, None]
    said = "1 kind of communication can't be matched across ranks; the table of collectives says why."
    assert (said in remarks_of(found)) is (why != "on one rank only")


def test_clocks_that_drift_do_not_hide_what_leaves_in_step() -> None:
    """Rank 1's clock gains 1 μs each ms, a hundred times more than real ones."""
    launches = steps(*[(0, 50)] * 50)
    for i, launch in enumerate(launches):
        launch["start_ns"] += launch["rank"] * 1_000 * (i // 2)
    assert columns(find_timeline(trace_of(launches)), "last") == [(0,), (50,)]


def test_one_rank_has_nobody_to_be_compared_with() -> None:
    found = find_timeline(trace_of([*steps((0,), (0,), (0,)), {"rank": 0, "stream": 9, "device": "gpu:0"}]))
    assert found.ranks.frame.is_empty()
    assert found.ranks.collectives.is_empty()
    assert found.ranks.imbalance is None
    assert not {"Ranks", "Collectives"} & {section.title for section in sections_of(found)}


def test_devices_of_one_process_are_compared_as_ranks_are() -> None:
    launches = [{**launch, "rank": None} for launch in steps((0, 50), (0, 30), (10, 0))]
    assert columns(find_timeline(trace_of(launches)), "device", "last") == [("gpu:0", 1), ("gpu:1", 2)]


def test_imbalance_is_the_most_compute_over_the_mean() -> None:
    launches = [{"rank": rank, "device": f"gpu:{rank}", "dur_ns": dur} for rank, dur in enumerate((90, 100, 110))]
    found = find_timeline(trace_of(launches))
    assert found.ranks.imbalance == pytest.approx(0.1)
    assert found.ranks.frame["against_mean"].to_list() == pytest.approx([-0.1, 0.0, 0.1])
    assert "Compute is uneven: gpu:2 of rank 2 computes for 110 ns, 10.0 % above the mean." in remarks_of(found)


def test_ranks_without_compute_have_no_imbalance() -> None:
    assert find_timeline(trace_of(steps((0, 50), (0, 30)))).ranks.imbalance is None


def test_a_window_counts_the_collectives_that_all_ranks_have_in_it() -> None:
    launches = steps((0, 50), (0, 30), (10, 0), (0, 20))
    trace = trace_of(launches, ops=[{"op": "o", "start_ns": 0, "dur_ns": 4 * MS}])
    found = find_timeline(trace, Selection(between_ns=(MS // 2, 3 * MS + 1)))
    assert columns(found, "compared", "last", "waited_ns") == [(2, 1, 30_000), (2, 1, 10_000)]
    found = find_timeline(trace, Selection(between_ns=(MS // 2, MS // 2 + 9)))
    assert columns(found, "compared", "last") == [(None, None), (None, None)]
