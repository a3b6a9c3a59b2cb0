"""Perfetto traces: a synthetic one of AMD's kind is read to its truth, real ones as Google's own messages have them."""

import gzip
import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.rocprof_files import REAL, needs_real
from tools.make_perfetto import BEGAN_NS, UNIX_NS, Launch, Options, write_perfetto
from tools.make_xplane import block, text, whole

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError, Unavailable
from inferometer.formats.perfetto import schema

SAMPLES = Path(__file__).parents[3] / "samples"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
KEPT = ("launches", "calls", "ops", "frames", "counters")


def open_bytes(folder: Path, data: bytes) -> Trace:
    path = folder / "a.pftrace"
    path.write_bytes(data)
    return inferometer.open(path, format="perfetto")


def launches_of(trace: Trace) -> list[Launch]:
    names = ("kind", "kernel", "device", "queue", "start_ns", "dur_ns", "correlation_id")
    return [Launch(*row) for row in trace.launches.select(names).collect().iter_rows()]


def packet(body: bytes, *, sequence: int = 1) -> bytes:
    return block(1, body + whole(10, sequence))


def event(kind: int, at: int, *, name: str = "", more: bytes = b"", clock: int = 0, track: int = 9) -> bytes:
    when = whole(8, at) + (whole(58, clock) if clock else b"")
    return packet(when + block(11, whole(9, kind) + whole(11, track) + text(23, name) + more))


def pair(begin: int, end: int, name: str, **options: Any) -> bytes:
    return event(1, begin, name=name, **options) + event(2, end, **options)


def slices_of(trace: Trace) -> list[tuple[str, int, int]]:
    return trace.spans.sort("start_ns", "dur_ns").select("span", "start_ns", "dur_ns").collect().rows()


@pytest.mark.parametrize(
    "options",
    [Options(), Options(unit_ns=1_000), Options(packed=True), Options(ids=False), Options(steps=1, ops=True)],
    ids=["plain", "in microseconds", "packed", "joined by flows", "ops"],
)
def test_a_synthetic_file_is_read_to_its_truth(options: Options, tmp_path: Path) -> None:
    data, truth = write_perfetto(options)
    trace = open_bytes(tmp_path, data)
    assert launches_of(trace) == truth.launches
    rows = trace.count_rows()
    assert [rows[name] for name in ("calls", "spans", "ops", "frames", "counters")] == [
        *(truth.calls, truth.spans, truth.ops, truth.frames, truth.samples)
    ]
    counts = {loss.name: loss.count for loss in trace.losses}
    assert counts["unknown_category"] == truth.unread
    assert (counts["begin_without_end"], counts["end_without_begin"]) == (truth.open_slices, truth.orphans)
    assert (counts["needs_lost_packets"], counts["end_of_another_slice"]) == (truth.needs_lost, truth.another_end)
    assert trace.losses.seen.total() == sum(rows.values()) + trace.losses.dropped()
    assert trace.facts.clock_base_ns == UNIX_NS - BEGAN_NS


@pytest.mark.parametrize("options", [Options(), Options(ids=False)], ids=["ids", "flows"])
def test_every_launch_of_it_finds_its_call(options: Options, tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, write_perfetto(options)[0])
    joined = trace.launches.join(trace.calls, on=["process", "correlation_id"], suffix="_call").collect()
    assert joined.height == trace.launches.collect().height == 15
    assert set(joined["api"]) == {"hipLaunchKernel", "hipMemcpyAsync"}


def test_its_arguments_and_tracks_fill_columns(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, write_perfetto(Options())[0])
    kernels = trace.launches.filter(pl.col("kind") == "kernel").collect()
    assert set(kernels.select("registers", "shared_bytes", "process").rows()) == {(64, 2_048, 4_321)}
    assert kernels["grid"].null_count() == kernels.height  # the file has products only
    assert trace.launches.filter(pl.col("kind") == "memcpy").collect()["bytes"].to_list() == [4_096] * 3
    assert set(trace.spans.collect()["domain"]) == {"ROCTx", "RCCL"}
    assert trace.calls.collect()["thread"].unique().to_list() == [77]
    assert trace.facts.notes[0] == (
        "The file doesn't say which of AMD's agents are GPUs: gpu:4 is agent 4, CPUs counted."
    )


def test_calls_that_nest_have_their_own_times_though_the_inner_stands_first(tmp_path: Path) -> None:
    calls = open_bytes(tmp_path, write_perfetto(Options())[0]).calls.collect()
    took = calls.group_by("api").agg(pl.col("dur_ns").unique())
    assert dict(took.rows()) == {
        "hsa_signal_store_screlease": [7_000], "hipLaunchKernel": [20_000], "hipMemcpyAsync": [20_000],
    }  # fmt: skip


REAL_TRACES = [
    pytest.param(SAMPLES / "decode.json.gz", id="decode"),
    pytest.param(SAMPLES / "nsys.sqlite.gz", id="nsys"),
    pytest.param(SAMPLES / "h200" / "jax.xplane.pb", id="jax"),
    pytest.param(REAL, id="rocprof", marks=needs_real),
]


@pytest.mark.parametrize("path", REAL_TRACES)
def test_what_export_wrote_of_a_real_trace_is_read_back_row_for_row(path: Path, tmp_path: Path) -> None:
    trace = inferometer.open(path)
    inferometer.export(trace, tmp_path / "out.pftrace.gz", to="perfetto")
    again = inferometer.open(tmp_path / "out.pftrace.gz")
    lost = {"module", "queue", "accum_registers", "scalar_registers", "scratch_bytes", "record_function_id"}
    for name in KEPT:
        columns = [column for column in trace.tables[name].collect_schema() if column not in lost]
        order = ["start_ns"] if name != "counters" else ["time_ns", "metric"]
        before, after = (
            each.tables[name].select(columns).collect().sort(*order, *columns[:2], columns[-1], maintain_order=True)
            for each in (trace, again)
        )
        assert before.height == after.height
        if name == "launches":
            assert before.select(pl.exclude("grid", "block")).equals(after.select(pl.exclude("grid", "block")))
            assert before["grid"].to_list() == after["grid"].to_list()
        else:
            first = columns[0]
            assert Counter(before.select(first, order[0]).rows()) == Counter(after.select(first, order[0]).rows())


@pytest.fixture(scope="module")
def browser_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Chromium recorded of itself: written by Perfetto's SDK."""
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "browser.pftrace"
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    words += ["--trace-startup=toplevel,v8,loading", "--trace-startup-duration=2", "--trace-startup-format=proto"]
    words += [f"--trace-startup-file={path}", "--virtual-time-budget=2500", "data:text/html,hello"]
    subprocess.run([CHROMIUM, *words], check=False, capture_output=True, timeout=120)
    if not path.is_file():
        pytest.skip("chromium wrote no trace")
    return path


def _slices_by_googles_messages(path: Path) -> tuple[Counter[str], Counter[str], int]:
    """Slices and their ns by name, samples: event by event, with an open list for each track."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    file = protos.Trace()
    file.ParseFromString(path.read_bytes())
    names: dict[int, dict[int, str]] = defaultdict(dict)
    tracks: dict[int, int] = {}
    clocks: dict[int, dict[int, list[int]]] = defaultdict(dict)
    default: dict[int, int] = defaultdict(int)
    found: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    shift: dict[int, int] = {}
    samples = 0
    for each in file.packet:
        own = each.trusted_packet_sequence_id
        if each.sequence_flags & 1:
            names[own], tracks[own], default[own] = {}, 0, 0
        for entry in each.interned_data.event_names:
            names[own][entry.iid] = entry.name
        if each.HasField("trace_packet_defaults"):
            tracks[own] = each.trace_packet_defaults.track_event_defaults.track_uuid
            default[own] = each.trace_packet_defaults.timestamp_clock_id
        for clock in each.clock_snapshot.clocks:
            unit, at = clock.unit_multiplier_ns or 1, clock.timestamp * (clock.unit_multiplier_ns or 1)
            mono = next(other.timestamp for other in each.clock_snapshot.clocks if other.clock_id == 3)
            clocks[own][clock.clock_id] = [at, unit, clock.is_incremental, mono - at]
        if each.HasField("clock_snapshot"):
            mono = next(clock.timestamp for clock in each.clock_snapshot.clocks if clock.clock_id == 3)
            shift = {clock.clock_id: mono - clock.timestamp for clock in each.clock_snapshot.clocks}
            continue
        used = each.timestamp_clock_id or default[own]
        if used < 64:
            now = each.timestamp + shift.get(used, 0)
        else:
            last = clocks[own][used]
            last[0] = each.timestamp * last[1] + (last[0] if last[2] else 0)
            now = last[0] + last[3]
        if each.HasField("track_event"):
            kind = each.track_event.type
            samples += kind == 4
            if kind in (1, 2, 3):
                track = each.track_event.track_uuid or tracks.get(own, 0)
                found[track].append((now, kind, names[own].get(each.track_event.name_iid, each.track_event.name)))
    count: Counter[str] = Counter()
    took: Counter[str] = Counter()
    for events in found.values():
        opened: list[tuple[int, str]] = []
        for now, kind, name in sorted(events, key=lambda one: one[0]):
            if kind == 2:
                if opened:
                    start, name = opened.pop()
                    count[name] += 1
                    took[name] += now - start
            elif kind == 1:
                opened.append((now, name))
            else:
                count[name] += 1
    return count, took, samples


def test_a_browsers_real_trace_has_the_slices_that_googles_messages_have(browser_trace: Path) -> None:
    trace = inferometer.open(browser_trace)
    assert trace.facts.format == "perfetto"
    count, took, samples = _slices_by_googles_messages(browser_trace)
    ours = trace.spans.group_by("span").agg(pl.len(), pl.col("dur_ns").sum()).collect()
    assert {name: n for name, n, _ in ours.rows()} == dict(count)
    assert {name: ns for name, _, ns in ours.rows() if ns} == {name: ns for name, ns in took.items() if ns}
    assert trace.count_rows()["counters"] == samples
    assert trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()
    assert len(trace.facts.processes) > 1
    assert trace.facts.threads


def test_an_end_closes_what_was_opened_last_and_equal_times_keep_the_files_order(tmp_path: Path) -> None:
    data = event(1, 9, name="outer") + event(1, 10, name="inner") + event(2, 20) + event(2, 20)
    data += pair(20, 30, "next") + event(3, 30, name="mark") + event(2, 40) + event(1, 50, name="open")
    trace = open_bytes(tmp_path, data)
    assert slices_of(trace) == [("outer", 9, 11), ("inner", 10, 10), ("next", 20, 10), ("mark", 30, 0)]
    assert {(loss.name, loss.count) for loss in trace.losses} == {("end_without_begin", 1), ("begin_without_end", 1)}


def test_packets_in_any_order_make_the_same_slices(tmp_path: Path) -> None:
    parts = [pair(at, at + 5, f"slice {at}", track=track) for at in range(0, 100, 10) for track in (1, 2)]
    first = open_bytes(tmp_path, b"".join(parts))
    rows = slices_of(first)
    assert len(rows) == 20
    assert slices_of(open_bytes(tmp_path, b"".join(reversed(parts)))) == rows


def _snapshot(*clocks: bytes, primary: int = 0) -> bytes:
    body = b"".join(block(1, clock) for clock in clocks) + (whole(2, primary) if primary else b"")
    return packet(block(6, body))


def test_times_of_other_clocks_are_moved_to_the_traces(tmp_path: Path) -> None:
    data = _snapshot(whole(1, 3) + whole(2, 1_000), whole(1, 6) + whole(2, 11_000), primary=3)
    data += pair(1_500, 1_600, "monotonic", clock=3) + pair(11_700, 11_900, "boot", clock=6)
    data += event(3, 5, name="nobody's", clock=40) + event(3, 5, name="nobody's", clock=70)
    trace = open_bytes(tmp_path, data)
    assert slices_of(trace) == [("monotonic", 1_500, 100), ("boot", 1_700, 200)]
    assert trace.losses.total("unknown_clock") == 2
    assert trace.facts.clock_base_ns is None


def test_a_counter_has_its_unit_factor_and_sums_where_its_values_are_steps(tmp_path: Path) -> None:
    counters = {1: whole(3, 3) + whole(4, 1_024), 2: text(6, "W") + whole(5, 1), 3: b""}
    data = b"".join(
        packet(block(60, whole(1, uuid) + text(2, f"metric {uuid}") + block(8, body)))
        for uuid, body in counters.items()
    )
    double = b"\xe1\x02" + b"\x00\x00\x00\x00\x00\x00\xf8\x3f"  # field 44, 1.5
    for uuid in counters:
        data += event(4, 10, more=whole(30, 2), track=uuid) + event(4, 20, more=double, track=uuid)
    data += event(4, 30, more=whole(30, 1), track=99) + event(4, 40, track=3)
    trace = open_bytes(tmp_path, data)
    rows = trace.counters.sort("metric", "time_ns").select("metric", "value", "unit").collect().rows()
    assert rows == [
        ("metric 1", 2_048.0, "bytes"), ("metric 1", 1_536.0, "bytes"), ("metric 2", 2.0, "W"), ("metric 2", 3.5, "W"),
        ("metric 3", 2.0, None), ("metric 3", 1.5, None),
    ]  # fmt: skip
    assert trace.losses.total("without_name", category="counters") == 1
    assert trace.losses.total("counter_without_value") == 1


@pytest.mark.parametrize(
    ("data", "loss"),
    [
        (block(1, block(133, b"\x28\xb5\x2f\xfd")), "packed_packets"),
        (block(1, block(50, b"not zlib")), "unreadable_packet"),
        (block(1, block(11, b"\xff\xff\xff")), "unreadable_packet"),
        (block(1, block(1, b"scheduler")), "unknown_category"),
        (event(5, 1), "unknown_phase"),
        (event(1, 2**63, name="far"), "time_out_of_range"),
        (event(3, 1, more=whole(10, 7)), "without_string"),
        (event(3, 1), "without_name"),
        (event(3, 1, more=block(23, b"\xff\xfe")), "invalid_utf8"),
        (event(3, 1, name="a", more=whole(12, 5)), "unknown_category"),
        (packet(whole(13, 2) + block(11, whole(9, 3) + text(23, "a")), sequence=8), "needs_lost_packets"),
    ],
)
def test_what_is_not_read_is_counted(data: bytes, loss: str, tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, pair(1, 2, "fine") + data + pair(3, 4, "fine, too"))
    assert trace.losses.total(loss) == 1
    assert {("fine", 1, 1), ("fine, too", 3, 1)} <= set(slices_of(trace))
    assert trace.losses.seen.total() == sum(trace.count_rows().values()) + trace.losses.dropped()


def test_a_packet_larger_than_the_limit_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.pftrace"
    large = block(1, block(11, b"\0" * 3_000_000))
    path.write_bytes(pair(1, 2, "fine") + large + pair(3, 4, "fine, too"))
    trace = inferometer.open(path, limits=inferometer.Limits(event_bytes=1_000_000))
    assert trace.losses.total("event_too_large") == 1
    assert len(slices_of(trace)) == 2


def test_compressed_packets_that_unpack_to_more_than_the_limit_are_cut(tmp_path: Path) -> None:
    data, truth = write_perfetto(Options(packed=True))
    path = tmp_path / "a.pftrace"
    path.write_bytes(data)
    trace = inferometer.open(path, limits=inferometer.Limits(event_bytes=700))
    assert trace.losses.total("event_too_large") > 0
    assert trace.launches.collect().height < len(truth.launches)


def test_a_packed_file_and_standard_input_are_the_same_trace(tmp_path: Path) -> None:
    data, truth = write_perfetto(Options())
    (tmp_path / "a.pftrace.gz").write_bytes(gzip.compress(data))
    assert launches_of(inferometer.open(tmp_path / "a.pftrace.gz")) == truth.launches
    words = [sys.executable, "-m", "inferometer", "kernels", "-", "--json"]
    done = subprocess.run(words, input=data, capture_output=True, check=True)
    took: Counter[str] = Counter()
    for launch in (each for each in truth.launches if each.kind == "kernel"):
        took[launch.kernel] += launch.dur_ns
    rows = json.loads(done.stdout)["rows"]
    assert {row["kernel"]: row["total_ns"] for row in rows} == dict(took)


def test_without_protobuf_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(schema._SCHEMA.__dict__, "_classes", raising=False)
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pb2", None)
    with pytest.raises(Unavailable, match="a Perfetto trace needs protobuf") as caught:
        open_bytes(tmp_path, write_perfetto(Options())[0])
    assert caught.value.hint == "Install it with: pip install 'inferometer[perfetto]'"


def test_a_file_without_a_packet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected packets of a Perfetto trace, found none that can be read"):
        open_bytes(tmp_path, b"\x0a\xff\x01text")


@pytest.mark.parametrize(
    ("track", "arguments", "place"),
    [
        ("COMPUTE AGENT [4] QUEUE [2] (GPU)", {}, ("gpu:4", 2, 2)),
        ("COMPUTE STREAM [3]", {"agent": 5, "queue": 9}, ("gpu:5", 9, 3)),
        ("GPU 1", {"queue_id": 7, "stream_ID": 8}, ("gpu:1", 7, 8)),
        ("kernels", {"Agent_Id": "GPU 6"}, ("gpu:6", None, None)),
        ("kernels", {}, (None, None, None)),
    ],
)
def test_device_queue_and_stream_are_read_from_any_name_that_amd_gives_them(
    track: str, arguments: dict[str, int | str], place: tuple[str | None, int | None, int | None], tmp_path: Path
) -> None:
    body = text(22, "kernel_dispatch")
    for name, value in arguments.items():
        body += block(4, text(10, name) + (text(6, value) if isinstance(value, str) else whole(4, value)))
    data = packet(block(60, whole(1, 9) + text(2, track))) + pair(1, 5, "k", more=body)
    launches = open_bytes(tmp_path, data).launches.collect()
    assert launches.select("device", "queue", "stream").row(0) == place


def test_kernels_on_a_hosts_thread_are_ranges(tmp_path: Path) -> None:
    data = packet(block(60, whole(1, 9) + block(4, whole(1, 5) + whole(2, 6))))
    trace = open_bytes(tmp_path, data + pair(1, 5, "softirq", more=text(22, "kernel")))
    assert trace.spans.select("span", "domain", "process", "thread", "stream").collect().rows() == [
        ("softirq", "kernel", 5, 6, None)
    ]
