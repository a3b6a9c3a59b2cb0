"""Without kernels: what the file has instead is reported, never that only the host was recorded."""

from collections.abc import Callable

import pytest
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.absent_work import say_no_launches, say_why_none
from inferometer.analyses.selection import Selection
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.analyses.tables.summary import device_times
from inferometer.analyses.tables.summary_remarks import find_remarks
from inferometer.reports.views.view import remarks_of

Read = Callable[..., Trace]
RANGES = """{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
  {"ph": "X", "cat": "mtia_runtime", "name": "launch", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
  {"ph": "X", "cat": "async_of_another", "name": "r0", "pid": 0, "tid": 0, "ts": 2, "dur": 5},
  {"ph": "X", "cat": "of_a_third", "name": "c", "pid": 0, "tid": 0, "ts": 2, "dur": 5},
  {"ph": "X", "cat": "async_of_another", "name": "r1", "pid": 0, "tid": 0, "ts": 9, "dur": 5}%s]}"""
FOUND = (
    "No kernels: apart from what the host did, the file has 2 async_of_another events and 1 of_a_third event, "
    "but no kernel, copy or memory set."
)


@pytest.mark.parametrize("tables", [None, {"launches"}, {"launches", "totals"}])
def test_events_of_another_kind_are_named(read: Read, tables: set[str] | None) -> None:
    trace = read(RANGES % "", tables)
    assert say_why_none(trace, "kernels") == FOUND
    assert list(remarks_of(kernel_table(trace))) == [FOUND]


def test_the_summary_says_the_same(read: Read) -> None:
    trace = read(RANGES % "")
    assert list(find_remarks(trace, device_times(trace), kernel_table(trace))) == [FOUND]


def test_a_file_with_launches_keeps_no_account_of_other_events(read: Read) -> None:
    kernel = ', {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 5}'
    assert read(RANGES % kernel).facts.other_events == {}


def test_a_runtime_of_any_accelerator_is_a_host_call(read: Read) -> None:
    trace = read(RANGES % "")
    assert trace.calls.select("api").collect()["api"].to_list() == ["launch"]


def test_only_the_most_frequent_categories_are_listed() -> None:
    events = {f"kind_{n}": n for n in range(1, 8)}
    sentence = say_why_none(trace_of(facts={"other_events": events}), "launches")
    assert "7 kind_7 events, 6 kind_6 events, " in sentence
    assert "3 kind_3 events and 3 events of 2 other categories, but no" in sentence


def test_copies_alone_are_device_work_without_kernels() -> None:
    copies = [{"kind": "memcpy", "dur_ns": 1}, {"kind": "memcpy", "dur_ns": 1}, {"kind": "memset", "dur_ns": 1}]
    trace = trace_of(copies)
    assert list(remarks_of(kernel_table(trace))) == [
        "No kernels: all device work in the file is 2 copies and 1 memory set."
    ]


def test_what_only_the_selection_lacks_is_the_selection_s() -> None:
    trace = trace_of([{"stream": 7}, {"stream": 8, "kind": "memcpy"}])
    assert list(remarks_of(kernel_table(trace, Selection(stream=8)))) == ["No kernels in the selection."]


def test_what_needs_launches_says_what_a_file_is_that_has_none_by_its_nature() -> None:
    trace = trace_of(facts={"notes": ("These are times of whole tests.",)})
    assert say_no_launches(trace) == "No launches in the file. These are times of whole tests."
    assert say_why_none(trace, "launches") == "No launches in the file."
    copies = trace_of([{"kind": "memcpy"}], facts={"notes": ("a note",)})
    assert say_no_launches(copies) == "No device work in the selection."
