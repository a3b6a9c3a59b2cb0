"""Collectives of made traces: bandwidths by hand, waiting apart from transfer, and what isn't known with the reason."""

from typing import Any

import pytest
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.hardware.known import require_device
from inferometer.reports.views.view import remarks_of, sections_of

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
MS = 1_000_000
LATE_US = ((0, 50), (0, 30), (10, 0))


def launch(rank: int, start_ns: int, dur_ns: int, kernel: str = ALL_REDUCE) -> dict[str, Any]:
    place = {"rank": rank, "device": f"gpu:{rank}", "stream": 20}
    return {"kernel": kernel, "start_ns": start_ns, "dur_ns": dur_ns} | place


def two_ranks() -> list[dict[str, Any]]:
    """Three collectives, which both ranks leave 100 μs after the later one came."""
    return [
        launch(rank, step * MS + late * 1_000, (max(lates) - late) * 1_000 + 100_000)
        for step, lates in enumerate(LATE_US)
        for rank, late in enumerate(lates)
    ]


def records(launches: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    about = {
        "collective": "allreduce", "dtype": "BFloat16", "elements_in": 500_000, "elements_out": 500_000, "group": "0",
        "group_size": 2,
    }  # fmt: skip
    return [{key: each[key] for key in each if key != "dur_ns"} | about | more for each in launches]


def found_in(trace: Trace, hardware: str | None = "H100 SXM") -> Roofline:
    found = attribute(trace, with_op_calls=True)
    device = require_device(hardware) if hardware else None
    return roofline(found, trace, device=device)


def test_waiting_is_apart_from_transfer_where_all_ranks_are_there() -> None:
    launches = two_ranks()
    found = found_in(trace_of(launches, collectives=records(launches)))
    [row] = found.collectives.frame.to_dicts()
    assert (row["collective"], row["message_bytes"], row["group_size"], row["devices"]) == (
        "all_reduce",
        1_000_000,
        2,
        2,
    )
    assert (row["total_ns"], row["wait_ns"], row["transfer_ns"]) == (690_000, 90_000, 600_000)
    assert (row["is_exact"], row["compared"], row["calls"]) == (True, 6, 6)
    assert row["algorithm_bytes_per_s"] == pytest.approx(1e6 / 100e-6)
    assert row["bus_bytes_per_s"] == pytest.approx(1e6 / 100e-6)  # 2 (n - 1) / n is 1 of two ranks
    assert row["fraction"] == pytest.approx(1e10 / 450e9)
    assert found.as_json()["collectives"] == [row]
    assert (
        "90.000 μs of 690.000 μs in collectives that could be compared is waiting for late ranks: 13.0 %."
        in remarks_of(found)
    )
    assert (
        "Longest of those with a bus bandwidth: all_reduce of 1.000 MB over 2 ranks, with 10.000 GB/s of it, "
        "2.2 % of the link's peak." in remarks_of(found)
    )


def test_of_a_group_with_more_ranks_than_the_files_transfer_is_at_most() -> None:
    launches = two_ranks()
    found = found_in(trace_of(launches, collectives=records(launches, group_size=4)))
    [row] = found.collectives.frame.to_dicts()
    assert (row["is_exact"], row["wait_ns"], row["transfer_ns"]) == (False, 90_000, 600_000)
    assert row["bus_bytes_per_s"] == pytest.approx(1.5e6 / 100e-6)
    assert any("with at least 15.000 GB/s of it" in remark for remark in remarks_of(found))


def test_one_rank_has_no_waiting_to_tell() -> None:
    launches = [each for each in two_ranks() if each["rank"] == 0]
    found = found_in(trace_of(launches, collectives=records(launches)))
    [row] = found.collectives.frame.to_dicts()
    assert (row["wait_ns"], row["is_exact"], row["not_compared"]) == (None, False, "on one rank only")
    assert row["transfer_ns"] == row["total_ns"] == 380_000
    [section] = [each for each in sections_of(found) if each.title == "Collectives"]
    assert any("(on one rank only): their times include it" in note for note in section.notes)


def test_sizes_part_rows_and_times_add_up() -> None:
    launches = two_ranks()
    halves = records(launches[:2], elements_in=250_000, elements_out=250_000) + records(launches[2:])
    frame = found_in(trace_of(launches, collectives=halves)).collectives.frame
    assert sorted(frame["message_bytes"]) == [500_000, 1_000_000]
    assert frame["total_ns"].sum() == sum(each["dur_ns"] for each in launches)
    assert (frame["total_ns"] - frame["wait_ns"]).to_list() == frame["transfer_ns"].to_list()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"group_size": None}, "how many ranks take part isn't recorded"),
        ({"elements_in": None, "elements_out": None}, "how many bytes it exchanges isn't recorded"),
        ({"dtype": "Unheard"}, "how many bytes it exchanges isn't recorded"),
        ({"collective": "barrier"}, "what it exchanges isn't known: neither its record nor its name says which"),
    ],
)
def test_what_is_not_known_has_its_reason(more: dict[str, Any], reason: str) -> None:
    launches = [launch(0, 0, 1_000, GENERIC)]
    [row] = found_in(trace_of(launches, collectives=records(launches, **more))).collectives.frame.to_dicts()
    assert row["reason"].startswith(reason)
    assert (row["bus_bytes_per_s"], row["fraction"], row["total_ns"]) == (None, None, 1_000)


def test_gather_and_scatter_are_told_by_the_record() -> None:
    launches = [launch(0, 0, 1_000, GENERIC)]
    trace = trace_of(launches, collectives=records(launches, collective="gather"))
    [row] = found_in(trace).collectives.frame.to_dicts()
    assert (row["collective"], row["bus_bytes_per_s"]) == ("gather", pytest.approx(0.5e6 / 1e-6))


def test_faster_than_the_link_is_flagged() -> None:
    launches = [launch(0, 0, 1_000)]
    found = found_in(trace_of(launches, collectives=records(launches)))
    assert found.collectives.frame["fraction"][0] == pytest.approx(1e6 / 1e-6 / 450e9)
    assert (
        "1 of 1 rows of collectives are faster than the link: a switch reduces on the way (NVLS, multimem), or the "
        "device's link isn't what they used." in remarks_of(found)
    )


def test_without_a_device_there_is_no_link_to_compare_with() -> None:
    launches = [launch(0, 0, 1_000)]
    [row] = found_in(trace_of(launches, collectives=records(launches)), None).collectives.frame.to_dicts()
    assert (row["link_bytes_per_s"], row["fraction"]) == (None, None)
    assert row["bus_bytes_per_s"] == pytest.approx(1e6 / 1e-6)


def test_nothing_that_communicates_has_no_section() -> None:
    found = found_in(trace_of([{"kernel": "gemm"}]))
    assert found.collectives.frame.height == 0
    assert "Collectives" not in [each.title for each in sections_of(found)]
