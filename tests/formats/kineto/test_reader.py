"""Whole files: every layout, and every defect that real files have. Each in a few lines, with what becomes of it."""

import gzip
import time
from collections.abc import Callable

import pytest
from tests.kineto_files import LAYOUTS, Layout, call, event, kernel, write_file
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, InputError
from inferometer.trace.facts import NamedId

Read = Callable[..., Trace]
K = '{"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %s, "dur": %s}'
TWO = f'{{"schemaVersion": 1, "traceEvents": [\n{K % ("a", 1, 2)},\n{K % ("b", 5.5, 3)}\n]}}'


def kernels(trace: Trace) -> list[tuple[str, int, int]]:
    return rows(trace, "launches", "kernel", "start_ns", "dur_ns")


A, B = ("a", 1_000, 2_000), ("b", 5_500, 3_000)


# Layouts


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_any_layout_gives_the_same_rows(layout: Layout, read: Read) -> None:
    trace = read(write_file([kernel("a", "1", "2"), call(), kernel("b", "5.5", "3")], layout))
    assert kernels(trace) == [A, B]
    assert rows(trace, "launches", "process") == [1, 1]
    assert counted(trace) == {}


def test_keys_may_stand_in_any_order(read: Read) -> None:
    first = '{"args": {"stream": 7}, "dur": 2, "ts": 1, "tid": 7, "pid": 0, "name": "a", "cat": "kernel", "ph": "X"}'
    assert kernels(read(f'{{"traceEvents": [{first}, {K % ("b", 5.5, 3)}]}}')) == [A, B]


@pytest.mark.parametrize("end", ["]", "", ",", "\n]\n", ",]"])
def test_a_bare_array_of_events_with_or_without_its_bracket(end: str, read: Read) -> None:
    trace = read(f"[{K % ('a', 1, 2)},\n{K % ('b', 5.5, 3)}{end}")
    assert kernels(trace) == [A, B]
    assert counted(trace) == ({} if "]" in end else {"array_not_closed": 1})


def test_a_file_of_several_trace_objects_is_one_trace_of_several_ranks(read: Read) -> None:
    def rank(number: int, pid: int) -> str:
        events = write_file([kernel(str(number)), call(pid=pid)], after={"distributedInfo": {"rank": number}})
        return events.decode()

    trace = read(f"[{rank(0, 10)},{rank(5, 11)}]")
    assert rows(trace, "launches", "kernel", "rank", "process") == [("0", 0, 10), ("5", 5, 11)]
    assert trace.facts.ranks == (0, 5)
    assert counted(trace) == {"several_trace_objects": 2, "correlation_in_several_processes": 1}
    assert rows(read(f"[{rank(0, 10)},{rank(5, 11)}]", {"launches"}), "launches", "kernel", "rank") == [
        ("0", 0),
        ("5", 5),
    ]


def test_the_header_may_stand_behind_the_events(read: Read) -> None:
    trace = read(f'{{"traceEvents": [{K % ("a", 1, 2)}], "distributedInfo": {{"rank": 4}}, "schemaVersion": 1}}')
    assert rows(trace, "launches", "rank") == [4]
    assert trace.facts.tool == "PyTorch profiler (Kineto)"


def test_the_base_of_the_clock_is_a_fact_and_changes_no_time(read: Read) -> None:
    with_base = read(TWO.replace('"schemaVersion"', '"baseTimeNanoseconds": 1700000000000000000, "schemaVersion"'))
    assert with_base.facts.clock_base_ns == 1_700_000_000_000_000_000
    assert kernels(with_base) == [A, B]
    assert read(TWO).facts.clock_base_ns is None


def test_json_text_inside_arguments_stays_there(read: Read) -> None:
    text = r'{"a": [{"ph": "X", "cat": "kernel", "name": "no", "ts": 1, "dur": 1}], "b": "},{\"cat\": \"kernel\""}'
    op = f'{{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "args": {text}}}'
    trace = read(f'{{"traceEvents": [{op}, {K % ("a", 1, 2)}]}}')
    assert kernels(trace) == [A]
    assert rows(trace, "ops", "op") == ["op"]


# Packing


def test_gzip_plain_and_stdin_are_told_by_content(read: Read) -> None:
    assert kernels(read(gzip.compress(TWO.encode()), name="trace.json.gz")) == [A, B]
    assert kernels(read(gzip.compress(TWO.encode()), name="trace.json")) == [A, B]
    assert kernels(read(TWO, name="trace.json.gz")) == [A, B]


@pytest.mark.parametrize("at", [1, 50, len(TWO) // 2, len(TWO) - 1])
@pytest.mark.parametrize("padding", [b"", b"\0" * 100])
def test_gzip_members_follow_each_other(at: int, padding: bytes, read: Read) -> None:
    data = TWO.encode()
    trace = read(gzip.compress(data[:at]) + padding + gzip.compress(data[at:]) + padding)
    assert (kernels(trace), counted(trace)) == ([A, B], {})


def test_a_byte_order_mark_is_passed_over(read: Read) -> None:
    assert kernels(read(b"\xef\xbb\xbf" + TWO.encode())) == [A, B]


def test_zeros_at_the_end_of_a_plain_file_are_no_text(read: Read) -> None:
    trace = read(TWO.encode() + b"\0" * 4096)
    assert (kernels(trace), counted(trace)) == ([A, B], {})


def test_text_behind_the_document_is_counted(read: Read) -> None:
    assert counted(read(TWO + "{}")) == {"trailing_data": 1}


# Defects of text


def test_raw_control_characters_become_blanks(read: Read) -> None:
    trace = read(TWO.replace('"a"', '"a\x01b\nc"'))
    assert [row[0] for row in kernels(trace)] == ["a b c", "b"]
    assert counted(trace) == {"control_character": 1}


def test_bytes_that_are_not_utf8_become_replacement_characters(read: Read) -> None:
    trace = read(TWO.encode().replace(b'"a"', b'"a\xff"'))
    assert [row[0] for row in kernels(trace)] == ["a\ufffd", "b"]
    assert counted(trace) == {"invalid_utf8": 1}


def test_shapes_that_are_not_utf8_are_counted_too(read: Read) -> None:
    op = b'{"ph": "X", "cat": "cpu_op", "name": "o", "ts": 1, "dur": 2, "args": {"Concrete Inputs": ["\xff"]}}'
    trace = read(b'{"traceEvents": [' + op + b"]}")
    assert rows(trace, "ops", "scalars") == ['["\ufffd"]']
    assert counted(trace) == {"invalid_utf8": 1}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "inf", "-inf", "nan"])
def test_numbers_that_json_does_not_have_are_null(number: str, read: Read) -> None:
    trace = read(
        f"""{{"traceEvents": [
  {{"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
    "args": {{"est. achieved occupancy %": {number}}}}},
  {{"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 5.5, "dur": 3, "bandwidth": {number}}}]}}"""
    )
    assert kernels(trace) == [A, B]
    assert counted(trace) == {"not_finite": 2}


def test_half_a_surrogate_pair_and_bad_escapes_are_mended(read: Read) -> None:
    trace = read(TWO.replace('"a"', r'"a\ud800"').replace('"b"', r'"C:\dir"'))
    assert [row[0] for row in kernels(trace)] == ["a\ufffd", r"C:\dir"]
    assert counted(trace) == {"bad_escape": 2}


@pytest.mark.parametrize("at", [len(TWO) - 1, len(TWO) - 3])
def test_a_file_cut_behind_its_events_keeps_them_all(at: int, read: Read) -> None:
    trace = read(TWO[:at])
    assert (kernels(trace), counted(trace)) == ([A, B], {"truncated": 1})


def test_a_file_cut_inside_an_event_keeps_those_before(read: Read) -> None:
    trace = read(TWO[: TWO.index("5.5")])
    assert (kernels(trace), counted(trace)) == ([A], {"truncated": 1})


def test_compressed_data_cut_short_keeps_what_can_be_unpacked(read: Read) -> None:
    data = "[" + ",\n".join(K % (f"kernel {i * i * i}", i, 1) for i in range(20_000))
    packed = gzip.compress(data.encode())
    trace = read(packed[: len(packed) // 2])
    found = kernels(trace)
    assert 5_000 < len(found) < 15_000
    assert found == [(f"kernel {i * i * i}", i * 1000, 1000) for i in range(len(found))]
    assert counted(trace)["broken_compression"] == 1


def test_compressed_data_with_a_wrong_checksum_is_told(read: Read) -> None:
    packed = bytearray(gzip.compress(TWO.encode()))
    packed[-6] ^= 1
    with pytest.raises(FormatError, match="the compressed data is broken"):
        read(bytes(packed))


def test_rubbish_behind_the_compressed_data_is_told(read: Read) -> None:
    trace = read(gzip.compress(TWO.encode()) + b"rubbish")
    assert (kernels(trace), counted(trace)) == ([A, B], {"broken_compression": 1})


# Defects of structure


@pytest.mark.parametrize(
    "text", ["{}", '{"schemaVersion": 1}', '{"traceEvents": {"a": 1}}', '{"traceEvents": null, "ph": 1}']
)
def test_a_file_without_a_list_of_events_is_no_trace(text: str, read: Read) -> None:
    with pytest.raises(FormatError, match=r"trace\.json: expected a traceEvents array"):
        read(text, format="kineto")


@pytest.mark.parametrize("text", ['{"traceEvents": []}', "[]", '[{"ph": "M"}]'])
def test_a_list_without_events_is_an_empty_trace(text: str, read: Read) -> None:
    trace = read(text, format="kineto")
    assert trace.launches.collect().height == 0
    assert trace.window() is None


def test_ids_that_are_text_are_numbered_and_named(read: Read) -> None:
    text = """{"traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "a", "pid": "host(123)", "tid": "thread 9", "ts": 1, "dur": 1},
  {"ph": "X", "cat": "cpu_op", "name": "b", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 1, "dur": 1},
  {"ph": "X", "cat": "cpu_op", "name": "c", "pid": "Spans", "tid": "7", "ts": 1, "dur": 1},
  {"ph": "X", "cat": "cpu_op", "name": "d", "pid": "", "tid": 1.0, "ts": 1, "dur": 1}]}"""
    trace = read(text)
    ops = {op: (process, thread) for op, process, thread in rows(trace, "ops", "op", "process", "thread")}
    spans, profiler, nine = ops["b"][0], ops["b"][1], ops["a"][1]
    assert ops == {"a": (123, nine), "b": (spans, profiler), "c": (spans, 7), "d": (None, 1)}
    assert max(spans, profiler, nine) < 0
    assert NamedId(spans, name="Spans") in trace.facts.processes
    assert NamedId(None, profiler, name="PyTorch Profiler") in trace.facts.threads
    assert counted(trace) == {"text_id": 3}


def test_device_work_on_tracks_with_names_for_ids(read: Read) -> None:
    text = K.replace('"pid": 0, "tid": 7', '"pid": "gpu 1", "tid": "stream 7"') % ("a", 1, 2)
    assert rows(read(f'{{"traceEvents": [{text}]}}'), "launches", "device", "stream") == [("gpu:1", 7)]


def test_a_host_in_the_process_id_is_the_host_of_the_launch(read: Read) -> None:
    text = (K % ("a", 1, 2)).replace('"pid": 0', '"pid": "node3(0)"')
    trace = read(f'{{"traceEvents": [{text}]}}')
    assert rows(trace, "launches", "host") == ["node3"]
    assert trace.facts.hosts == ("node3",)


def test_events_without_a_duration_are_counted_under_their_category(read: Read) -> None:
    op = '{"ph": "X", "cat": "cpu_op", "name": "o", "pid": 1, "tid": 2, "ts": 1%s}'
    ops = ",".join(op % dur for dur in ("", ', "dur": null', ', "dur": 2'))
    trace = read(f'{{"traceEvents": [{ops}, {K % ("a", 1, 2)}]}}')
    assert rows(trace, "ops", "dur_ns") == [2_000]
    assert trace.losses.total("without_duration", category="cpu_op") == 2
    assert trace.losses.dropped() == 2


@pytest.mark.parametrize(
    ("field", "loss"),
    [
        ('"ts": 1', "without_timestamp"),
        ('"name": "a"', "without_name"),
        ('"dur": 2', "without_duration"),
        ('"ph": "X"', "unknown_phase"),
    ],
)
def test_an_event_without_what_a_row_needs_is_counted(field: str, loss: str, read: Read) -> None:
    text = (K % ("a", 1, 2)).replace(field, '"other": 0')
    trace = read(f'{{"traceEvents": [{text}, {K % ("b", 5.5, 3)}]}}')
    assert kernels(trace) == [B]
    assert (trace.losses.total(loss, category="kernel"), trace.losses.seen["kernel"]) == (1, 2)


@pytest.mark.parametrize(
    ("ts", "dur", "loss"),
    [
        ("1", "-0.001", "negative_duration"),
        ("1", "1e400", "time_out_of_range"),
        ("1e400", "1", "time_out_of_range"),
        ("-4611686018427388", "1", "time_out_of_range"),
        ("1", "9007199254741", "time_out_of_range"),
        ('"soon"', "1", "without_timestamp"),
        ("1", "[]", "without_duration"),
    ],
)
def test_a_time_that_cannot_be_is_counted_and_the_event_dropped(ts: str, dur: str, loss: str, read: Read) -> None:
    trace = read(f'{{"traceEvents": [{K % ("a", ts, dur)}, {K % ("b", 5.5, 3)}]}}')
    assert (kernels(trace), counted(trace)) == ([B], {loss: 1})
    assert trace.losses.dropped("kernel") == 1


def test_a_duration_of_zero_stays_and_is_counted(read: Read) -> None:
    trace = read(f'{{"traceEvents": [{K % ("a", 1, 0)}]}}')
    assert (kernels(trace), counted(trace)) == ([("a", 1_000, 0)], {"zero_duration_launch": 1})


def test_begin_and_end_events_become_rows_where_they_began(read: Read) -> None:
    text = """[
  {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 2, "ts": 1, "args": {"External id": 4}},
  {"ph": "E", "pid": 1, "tid": 2, "ts": 9.5},
  {"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": 3},
  {"ph": "E", "name": "inner", "pid": 1, "tid": 2, "ts": 4},
  {"ph": "E", "pid": 1, "tid": 2, "ts": 20},
  {"ph": "B", "cat": "cpu_op", "name": "open", "pid": 1, "tid": 2, "ts": 30}]"""
    trace = read(text)
    assert rows(trace, "ops", "op", "start_ns", "dur_ns", "external_id") == [("outer", 1_000, 8_500, 4)]
    assert rows(trace, "spans", "span", "domain", "start_ns", "dur_ns") == [("inner", None, 3_000, 1_000)]
    assert counted(trace) == {"end_event": 2, "end_without_begin": 1, "begin_without_end": 1}


def test_what_begins_where_another_ends_is_not_inside_it(read: Read) -> None:
    text = """[
  {"ph": "B", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, "ts": 1}, {"ph": "E", "pid": 1, "tid": 2, "ts": 2},
  {"ph": "B", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 2}, {"ph": "E", "pid": 1, "tid": 2, "ts": 5}]"""
    assert rows(read(text), "ops", "op", "start_ns", "dur_ns") == [("a", 1_000, 1_000), ("b", 2_000, 3_000)]


def test_an_end_without_a_category_ends_what_was_begun_in_any_scope(read: Read) -> None:
    text = """[
  {"ph": "B", "cat": "cpu_op", "name": "op", "pid": 0, "tid": 7, "ts": 1},
  {"ph": "B", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 2},
  {"ph": "E", "pid": 0, "tid": 7, "ts": 4}, {"ph": "E", "pid": 0, "tid": 7, "ts": 9}]"""
    assert kernels(read(text, {"launches"})) == kernels(read(text)) == [("k", 2_000, 2_000)]
    assert rows(read(text, {"ops"}), "ops", "op", "dur_ns") == [("op", 8_000)]
    assert counted(read(text, {"launches"})) == {}


def test_an_unknown_category_and_an_unknown_phase_are_counted_under_their_names(read: Read) -> None:
    text = """[
  {"ph": "X", "cat": "quantum", "name": "q", "pid": 1, "tid": 2, "ts": 1, "dur": 1},
  {"ph": "b", "cat": "async", "name": "x", "id": 1, "pid": 1, "tid": 2, "ts": 1},
  {"ph": "N", "name": "object", "id": 1, "pid": 1, "tid": 2, "ts": 1}]"""
    assert [(loss.name, loss.category, loss.count, loss.severity) for loss in read(text).losses] == [
        ("unknown_category", "quantum", 1, "warning"),
        ("unknown_phase", "async", 1, "warning"),
        ("unknown_phase", "ph N", 1, "warning"),
    ]


def test_flow_arrows_are_dropped_and_counted(read: Read) -> None:
    flows = ",".join(f'{{"ph": "{ph}", "cat": "ac2g", "id": 1, "pid": 1, "tid": 2, "ts": 1}}' for ph in "sft")
    trace = read(f"[{flows}]")
    assert trace.losses.total("flow_event", category="ac2g") == trace.losses.seen["ac2g"] == 3


# Remarks about rows


def test_a_slice_that_begins_before_the_last_one_ended_is_counted(read: Read) -> None:
    trace = read(f"[{K % ('a', 1, 5)}, {K % ('b', 3, 5)}, {K % ('c', 9, 1)}]")
    assert counted(trace) == {"overlaps_in_stream": 1}


def test_a_slice_that_outlasts_two_others_has_a_wrong_end(read: Read) -> None:
    trace = read(f"[{K % ('giant', 1, 1_600_000)}, {K % ('b', 3, 5)}, {K % ('c', 9, 1)}]")
    assert counted(trace) == {"overflows_stream": 1}
    assert [loss.example for loss in trace.losses] == ["giant: 1,600,000,000 ns"]
    assert kernels(trace)[0] == ("giant", 1_000, 1_600_000_000)  # counted, not changed


def test_neighbours_that_overlap_by_the_rounding_are_no_news(read: Read) -> None:
    assert counted(read(f"[{K % ('a', 1, '2.001')}, {K % ('b', 3, 1)}]")) == {}


def test_work_on_two_streams_may_overlap(read: Read) -> None:
    other = (K % ("b", 2, 5)).replace('"tid": 7', '"tid": 8')
    assert counted(read(f"[{K % ('a', 1, 5)}, {other}]")) == {}


def test_profiler_steps_that_overlap_are_counted(read: Read) -> None:
    steps = [event("user_annotation", f"ProfilerStep#{i}", str(100 * i), "150") for i in range(3)]
    assert counted(read(write_file([*steps, event("user_annotation", "other", "10", "900")]))) == {
        "overlapping_profiler_steps": 2
    }


def test_work_queued_before_the_window_is_counted(read: Read) -> None:
    trace = read(write_file([kernel("early", correlation=5), kernel("k", "200", correlation=6), call(correlation=6)]))
    assert counted(trace) == {"launch_before_window": 1}


def test_without_any_calls_nothing_is_known_of_the_window(read: Read) -> None:
    assert counted(read(write_file([kernel("early", correlation=5)]))) == {}


@pytest.mark.parametrize(
    ("args", "external", "correlation"),
    [
        ({"External id": 4, "correlation": 5}, 4, 5),
        ({"external id": 4, "correlation": 5}, 4, 5),
        ({"External id": 0, "external id": 4}, 0, None),
        ({}, None, None),
    ],
)
def test_ids_may_be_missing_or_under_the_older_key(
    args: dict[str, int], external: int | None, correlation: int | None, read: Read
) -> None:
    given = kernel()
    given["args"] = args
    op = event("cpu_op", "o", "1", "1")
    op["args"] = args
    trace = read(write_file([given, op]))
    assert rows(trace, "launches", "external_id", "correlation_id") == [(external, correlation)]
    assert rows(trace, "ops", "external_id") == [external]


def test_categories_of_older_versions_are_known_by_their_names(read: Read) -> None:
    older = {"Kernel": "launches", "Memcpy": "launches", "Runtime": "calls", "Operator": "ops", "Python": "frames"}
    trace = read(write_file([event(cat, cat, str(i), "0.5") for i, cat in enumerate(older)]))
    assert counted(trace) == {}
    assert {table: len(rows(trace, table)) for table in older.values()} == {
        "launches": 2,
        "calls": 1,
        "ops": 1,
        "frames": 1,
    }


# Sources


def test_a_file_that_is_no_trace_says_what_it_begins_with(read: Read) -> None:
    for data in (b"\x7fELF\x02\x01\x01", b"PK\x03\x04", b"hello", b'{"a": 1}', bytes(range(256))):
        with pytest.raises(FormatError, match="expected one of the known formats"):
            read(data)


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["plain", "packed"])
def test_an_empty_file_is_empty(data: bytes, read: Read) -> None:
    with pytest.raises(FormatError, match="the file is empty"):
        read(data)


@pytest.mark.parametrize("data", [b"  \n", b"\xef\xbb\xbf", b"\0\0\0"], ids=["blank", "mark", "zeros"])
def test_a_file_of_nothing_to_read_is_not_called_empty(data: bytes, read: Read) -> None:
    with pytest.raises(FormatError, match="its first 3 bytes are zeros or blanks"):
        read(data)


def test_what_is_behind_a_url_is_to_be_downloaded() -> None:
    with pytest.raises(InputError) as caught:
        inferometer.open("https://localhost/trace.json")
    assert caught.value.hint == "Download it first: only `inferometer mine` reads what is behind a URL."


def test_unpacking_beyond_the_limit_is_refused_and_said(read: Read) -> None:
    limits = inferometer.Limits(expansion=50, expansion_floor_bytes=1 << 16)
    bomb = gzip.compress(b"[" + b" " * 3_000_000)
    with pytest.raises(FormatError, match="unpacks to more than 50 times its size"):
        read(bomb, limits=limits, format="kineto")
    assert read(bomb, format="kineto").launches.collect().height == 0
    assert kernels(read(gzip.compress(TWO.encode()), limits=limits)) == [A, B]


def test_deep_nesting_anywhere_is_counted_or_passed_over(read: Read) -> None:
    begun, deep = time.process_time(), "[" * 300_000 + "]" * 300_000
    in_args = (K % ("deep", 1, 2))[:-1] + f', "args": {{"x": {deep}}}}}'
    trace = read(f'{{"traceEvents": [{in_args}, {K % ("b", 5.5, 3)}], "metadata": {deep}, "other": {deep}}}')
    assert kernels(trace)[-1] == B
    assert trace.losses.total("unreadable_event") + len(kernels(trace)) == 2
    assert counted(read(deep, format="kineto"))["not_an_object"] == 1
    with pytest.raises(InputError):
        read('{"a":' * 300_000, format="kineto")
    assert time.process_time() - begun < 10
