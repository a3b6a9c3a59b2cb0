"""What launches that communicate exchange: by name and record, in bytes, and never of another launch."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.selection import Selection
from inferometer.analyses.timeline.collectives import recorded_collectives, sum_messages, work_collectives
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.analyses.timeline.work import find_work
from inferometer.reports.views.view import sections_of

GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
SEND = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
BROADCAST = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
PLACE = {"device": "gpu:0", "stream": 7, "rank": 0}


def launch(start_ns: int, kernel: str = GENERIC, dur_ns: int = 1_000, **more: Any) -> dict[str, Any]:
    return PLACE | {"kernel": kernel, "start_ns": start_ns, "dur_ns": dur_ns} | more


def record(start_ns: int, kernel: str = GENERIC, **more: Any) -> dict[str, Any]:
    about = {"collective": "allreduce", "dtype": "BFloat16", "elements_in": 500, "elements_out": 500, "group_size": 8}
    return PLACE | {"kernel": kernel, "start_ns": start_ns} | about | more


def told(trace: Trace, *columns: str) -> list[Any]:
    return work_collectives(find_work(trace), recorded_collectives(trace)).select(columns).rows()


@pytest.mark.parametrize(
    ("kernel", "recorded", "collective"),
    [
        (GENERIC, "allreduce", "all_reduce"),
        (GENERIC, "barrier", "other"),
        (GENERIC, None, "other"),
        (SEND, "all_to_allv", "all_to_all"),  # which is made of sends and receives
        (SEND, "gather", "send_recv"),
        (BROADCAST, "all_gather", "broadcast"),  # an uneven all-gather is several of them, and ranks may leave apart
    ],
)
def test_the_record_says_what_the_name_does_not(kernel: str, recorded: str | None, collective: str) -> None:
    trace = trace_of([launch(0, kernel)], collectives=[record(0, kernel, collective=recorded)])
    assert told(trace, "collective") == [(collective,)]


@pytest.mark.parametrize(
    ("about", "message_bytes"),
    [
        ({}, 1_000),
        ({"elements_out": 4_000}, 8_000),  # an all-gather gets more out than it puts in
        ({"elements_in": 4_000}, 8_000),  # a reduce-scatter puts in more
        ({"dtype": "Float"}, 2_000),
        ({"dtype": "Long"}, 4_000),
        ({"dtype": "Float8_e4m3fn"}, 500),
        ({"dtype": "Unheard"}, None),
        ({"dtype": None}, None),
        ({"elements_in": None}, 1_000),
        ({"elements_in": -1, "elements_out": -1}, None),
    ],
)
def test_a_message_is_the_larger_side_in_bytes(about: dict[str, Any], message_bytes: int | None) -> None:
    trace = trace_of([launch(0)], collectives=[record(0, **about)])
    assert told(trace, "message_bytes") == [(message_bytes,)]


@pytest.mark.parametrize("other", [{"stream": 8}, {"device": "gpu:1"}, {"rank": 1}, {"start_ns": 1}, {"kernel": SEND}])
def test_a_record_of_another_launch_says_nothing(other: dict[str, Any]) -> None:
    trace = trace_of([launch(0)], collectives=[record(0) | other])
    assert told(trace, "collective", "dtype") == [("other", None)]


def test_records_that_contradict_each_other_say_nothing() -> None:
    launches = [launch(0), launch(5_000)]
    twice = trace_of(launches, collectives=[record(0), record(0), record(5_000), record(5_000, dtype="Float")])
    assert told(twice, "dtype") == [("BFloat16",), (None,)]


def test_where_the_table_was_not_read_names_alone_tell() -> None:
    trace = trace_of([launch(0), launch(9_000, SEND)], tables={"launches"})
    assert told(trace, "collective", "message_bytes") == [("other", None), ("send_recv", None)]


MESSAGES = trace_of(
    [launch(0), launch(10_000, dur_ns=3_000), launch(20_000, SEND, dur_ns=500), launch(30_000, "gemm")],
    collectives=[record(0), record(10_000)],
)


def test_messages_have_bytes_over_the_time_of_their_kernels() -> None:
    found = sum_messages(find_work(MESSAGES), recorded_collectives(MESSAGES))
    columns = ("collective", "message_bytes", "group_size", "count", "dur_ns", "bytes_per_s")
    assert found.select(columns).rows() == [
        ("all_reduce", 1_000, 8, 2, 4_000, 2_000 / 4_000 * 1e9),
        ("send_recv", None, None, 1, 500, None),
    ]


def test_in_a_window_only_whole_launches_have_a_rate() -> None:
    found = find_timeline(MESSAGES, Selection(between_ns=(0, 11_000)))
    assert found.messages.select("collective", "count", "dur_ns").rows() == [("all_reduce", 1, 1_000)]


def test_without_a_record_there_is_no_table_of_messages() -> None:
    found = find_timeline(trace_of([launch(0), launch(10_000)]))
    assert found.messages.is_empty()
    assert "Messages" not in [section.title for section in sections_of(found)]


def test_ranks_are_compared_within_a_group_and_collective() -> None:
    launches, records = [], []
    for rank in (0, 1):
        for step in range(5):
            for place, (name, group) in enumerate(
                (("allreduce", "tp"), ("allreduce", f"dp{rank}"), ("broadcast", "tp"))
            ):
                at, late = step * 100_000 + place * 20_000, 2_000 * rank
                launches.append(launch(at + late, rank=rank, dur_ns=10_000 - late, device=f"gpu:{rank}"))
                of: dict[str, Any] = {"rank": rank, "device": f"gpu:{rank}", "collective": name, "group": group}
                records.append(record(at + late, **of))
    ranks = find_timeline(trace_of(launches, collectives=records)).ranks
    assert ranks.collectives.select("collective", "group", "ranks", "waited_ns", "not_compared").rows() == [
        ("all_reduce", "tp", 2, 10_000, None),
        ("all_reduce", "dp0", 1, None, "on one rank only"),
        ("all_reduce", "dp1", 1, None, "on one rank only"),
        ("broadcast", "tp", 2, None, "ranks may leave apart"),
    ]
    assert ranks.frame.select("rank", "compared", "compared_ns", "waited_ns").rows() == [
        (0, 5, 50_000, 10_000),
        (1, 5, 40_000, 0),
    ]


def test_launches_of_real_captures_have_their_records(shared_data: Path) -> None:
    trace = inferometer.open(shared_data / "traces" / "kineto" / "mi300_resnet_ddp.json.gz")
    found = sum_messages(find_work(trace), recorded_collectives(trace))
    assert found.select("collective", "message_bytes", "group_size", "count").sort(pl.all()).rows() == [
        ("all_reduce", 2 * 2_873_320, 8, 3),
        ("all_reduce", 2 * 8_816_192, 8, 3),
        ("broadcast", 8 * 20, 8, 3),
        ("broadcast", 2 * 9_600, 8, 3),
        ("other", None, None, 5),
    ]
