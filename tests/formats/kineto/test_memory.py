"""The allocator's records, as rows of `memory_events` and `counters`."""

import json
from typing import Any

import pytest
from tests.formats.kineto.test_columns import Read
from tests.traces import rows


def record(ts: float, name: str = "[memory]", /, **args: Any) -> dict[str, Any]:
    named = {key.replace("_", " "): value for key, value in args.items()}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": name, "pid": 5, "tid": 6, "ts": ts, "args": named}


def document(*events: dict[str, Any]) -> str:
    return json.dumps({"traceEvents": events})


def test_a_record_is_an_event_of_its_device(read: Read) -> None:
    gpu: dict[str, Any] = {"Device_Type": 1, "Device_Id": 3}
    cpu: dict[str, Any] = {"Device_Type": 0, "Device_Id": -1}
    text = document(
        record(7.5, Bytes=512, Addr=2**63 + 1, Total_Allocated=1536, Total_Reserved=2048, **gpu),
        record(8, Bytes=8, Addr=9, Total_Allocated=8, Total_Reserved=0, **cpu),
        record(9, Bytes=-512, Addr=2**63 + 1, Total_Allocated=1024, Total_Reserved=2048, **gpu),
        record(10, "[OutOfMemory]", Bytes=4096, Total_Allocated=1024, Total_Reserved=2048, **gpu),
    )
    columns = ("action", "device", "process", "thread", "order", "time_ns", "address", "bytes", "allocated_bytes")
    assert rows(read(text), "memory_events", *columns, "reserved_bytes") == [
        ("alloc", "gpu:3", 5, 6, 0, 7_500, 1 - 2**63, 512, 1536, 2048),
        ("alloc", "cpu", 5, 6, 0, 8_000, 9, 8, 8, None),
        ("free", "gpu:3", 5, 6, 1, 9_000, 1 - 2**63, 512, 1024, 2048),
        ("oom", "gpu:3", 5, 6, 2, 10_000, None, 4096, 1024, 2048),
    ]


@pytest.mark.parametrize(
    ("number", "device"),
    [(0, "cpu"), (1, "gpu:2"), (6, "gpu:2"), (12, "gpu:2"), (13, "mps:2"), (15, "hpu:2"), (19, "mtia:2"),
     (20, "privateuse1:2"), (99, "device type 99:2")],
)  # fmt: skip
def test_a_device_is_named_by_the_number_of_its_type(read: Read, number: int, device: str) -> None:
    text = document(record(1, Bytes=1, Device_Type=number, Device_Id=2))
    assert rows(read(text), "memory_events", "device") == [device]


def test_a_record_without_its_fields_has_a_row_with_nulls(read: Read) -> None:
    trace = read(document(record(1), record(2, Bytes="a", Addr=-1, Device_Type=1)))
    assert rows(trace, "memory_events", "action", "device", "address", "bytes", "allocated_bytes") == [
        ("sample", None, None, None, None),
        ("sample", "gpu", None, None, None),
    ]
    assert {loss.name for loss in trace.losses} == {"wrong_type"}


def test_another_mark_of_that_category_is_a_span(read: Read) -> None:
    trace = read(document(record(1, "a mark"), record(2, Bytes=1, Device_Type=0)))
    assert rows(trace, "spans", "span", "domain", "start_ns", "dur_ns") == [("a mark", "instant", 1_000, 0)]
    assert rows(trace, "memory_events", "action") == ["alloc"]
    assert trace.losses.seen["cpu_instant_event"] == 2


def test_places_begin_anew_in_each_trace_object(read: Read) -> None:
    one, other = ({"traceEvents": [record(1, Bytes=1, Device_Type=0)], "distributedInfo": {"rank": n}} for n in (0, 1))
    trace = read(json.dumps([one, other]))
    assert rows(trace, "memory_events", "order", "rank") == [(0, 0), (0, 1)]
