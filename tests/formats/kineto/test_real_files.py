"""Real captures, to the nanosecond: every kernel's sums equal the text's, added up by a slow reader of another make.

The files are those of the fixture `shared_data`, from TraceLens and HolisticTraceAnalysis.
"""

import gzip
import json
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from tests.kineto_files import CALLS, KINDS, event, exact_ns, write_file
from tests.traces import rows

import inferometer
from inferometer import Trace
from inferometer.reports.views.view import facts_of, remarks_of

FILES = {
    "a100_simple_add": {"kernel": 79, "memcpy": 16, "memset": 3},
    "cpu_only": {},
    "h100_qwen1.5-0.5b": {"kernel": 1465, "memcpy": 1, "memset": 241},
    "mi250_minitoy": {"kernel": 14, "memcpy": 2},
    "mi300_qwen1.5-0.5b": {"kernel": 1516, "memcpy": 1},
    "mi300_sglang_qwen3-8b_decode": {"kernel": 555, "memcpy": 3},
    "mi300_sglang_qwen3-8b_graph_capture_bs32": {"kernel": 2},
    "rank0_sampled": {"kernel": 1154, "memcpy": 40, "memset": 10},
    "rank1_sampled": {"kernel": 1104, "memcpy": 40, "memset": 10},
    "triton_example": {"kernel": 1},
}
Launches = dict[tuple[str, str], list[int]]


@pytest.fixture(params=FILES)
def capture(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    return shared_data / "traces" / "kineto" / f"{request.param}.json.gz"


def events_of(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    events: list[dict[str, Any]] = json.loads(text, parse_float=Decimal, strict=False)["traceEvents"]
    return events


def durations_by_kernel(events: list[dict[str, Any]]) -> Launches:
    found: Launches = defaultdict(list)
    for each in events:
        if each.get("ph") == "X" and each.get("cat") in KINDS:
            found[KINDS[each["cat"]], each["name"]].append(exact_ns(each["dur"]))
    return found


def exact_deviation(durations: list[int]) -> float:
    """The sample's, from integers: one rounding, at the end."""
    n, total = len(durations), sum(durations)
    if n == 1:
        return 0.0
    return sqrt(Fraction(sum(n * each * each for each in durations) - total * total, n * (n - 1)))


def check(path: Path, found: Launches, *, tables: set[str] | None) -> None:
    trace = inferometer.open(path, tables)
    table = inferometer.kernel_table(trace, raw=True, copies=True)
    assert table.total_ns == sum(map(sum, found.values()))
    assert table.frame.height == len(found)
    for row in table.frame.iter_rows(named=True):
        durations = found[row["kind"], row["kernel"]]
        assert row["count"] == len(durations)
        assert (row["total_ns"], row["min_ns"], row["max_ns"]) == (sum(durations), min(durations), max(durations))
        assert row["mean_ns"] == pytest.approx(sum(durations) / len(durations), rel=1e-15)
        assert row["median_ns"] == statistics.median(durations)
        assert row["stddev_ns"] == pytest.approx(exact_deviation(durations), rel=1e-9, abs=1e-9)
        assert row["share"] == pytest.approx(sum(durations) / table.total_ns, rel=1e-15)


def test_every_kernels_statistics_equal_those_of_the_text(capture: Path) -> None:
    found = durations_by_kernel(events_of(capture))
    counts: Counter[str] = Counter()
    for (kind, _), durations in found.items():
        counts[kind] += len(durations)
    assert counts == FILES[capture.name.removesuffix(".json.gz")]
    check(capture, found, tables=None)
    check(capture, found, tables={"launches"})


def test_every_event_is_a_row_or_a_counted_loss(capture: Path) -> None:
    trace = inferometer.open(capture)
    written = Counter(each.get("cat") or f"ph {each['ph']}" for each in events_of(capture))
    assert trace.losses.seen == written
    rows_of = {name: frame.collect().height for name, frame in trace.tables.items()}
    assert rows_of.pop("memory_events") == written["cpu_instant_event"]  # each is a sample in `counters`, too
    assert sum(rows_of.values()) == sum(written.values()) - trace.losses.dropped()
    assert {loss.name for loss in trace.losses if loss.dropped} <= {"metadata_event", "flow_event"}
    assert not {loss.name for loss in trace.losses} & {"truncated", "broken_compression", "changed_while_read"}


def test_starts_are_those_of_the_text(capture: Path) -> None:
    want = sorted(exact_ns(each["ts"]) for each in events_of(capture) if each.get("cat") in KINDS)
    assert sorted(rows(inferometer.open(capture, {"launches"}), "launches", "start_ns")) == want


@pytest.mark.parametrize(
    ("name", "early", "gpu"),
    [
        ("h100_qwen1.5-0.5b", {"kernel": 436, "memset": 73}, "NVIDIA H100"),
        ("mi300_qwen1.5-0.5b", {"kernel": 463}, "AMD Instinct MI300X"),
        ("a100_simple_add", {}, "NVIDIA A100-PG509-200"),
    ],
)
def test_work_queued_before_the_window_and_the_device_are_told(
    name: str, early: dict[str, int], gpu: str, shared_data: Path
) -> None:
    path = shared_data / "traces" / "kineto" / f"{name}.json.gz"
    events = events_of(path)
    called = {each["args"].get("correlation") for each in events if each.get("cat") in CALLS}
    launches = [each for each in events if each.get("cat") in KINDS]
    assert Counter(KINDS[each["cat"]] for each in launches if each["args"]["correlation"] not in called) == early
    trace = inferometer.open(path)
    assert trace.losses.total("launch_before_window") == sum(early.values())
    assert dict(facts_of(inferometer.summarize(trace)))["Device"].startswith(gpu)


def test_a_graph_replay_is_one_call_for_many_kernels(shared_data: Path) -> None:
    trace = inferometer.open(shared_data / "traces" / "kineto" / "mi300_sglang_qwen3-8b_decode.json.gz")
    (said,) = [remark for remark in remarks_of(inferometer.summarize(trace)) if "one graph launch" in remark]
    assert said.startswith("544 kernels come from one graph launch, so no framework op is recorded for each.")


def test_ranks_are_those_of_the_files(shared_data: Path) -> None:
    for rank in (0, 1):
        trace = inferometer.open(shared_data / "traces" / "kineto" / f"rank{rank}_sampled.json.gz")
        assert set(rows(trace, "launches", "rank")) == {rank}
        assert (trace.facts.ranks, trace.facts.world_size) == ((rank,), 128)


def as_hta_rounds(start: str, dur: str) -> int:
    """Kernel time in ns as HolisticTraceAnalysis takes it: start up and end down to whole microseconds."""
    end = (Decimal(start) + Decimal(dur)).to_integral_value(ROUND_FLOOR)
    return 1000 * int(end - Decimal(start).to_integral_value(ROUND_CEILING))


def test_short_kernels_are_exact_where_rounding_to_microseconds_is_not(read: Callable[..., Trace]) -> None:
    """1,000 kernels of 1.5 to 2.5 µs, as in a decode step: rounding as HTA does loses half of their time."""
    chance, now, launches = random.Random(5), Decimal("1428625731622.250"), []
    for _ in range(1_000):
        dur = Decimal(chance.randrange(1_500, 2_500)) / 1000
        launches.append((str(now), str(dur)))
        now += dur + Decimal(chance.randrange(300, 2_000)) / 1000
    exact = sum(exact_ns(dur) for _, dur in launches)
    data = write_file([event("kernel", "short", start, dur, device=0, stream=7) for start, dur in launches])
    for tables in (None, {"launches"}):
        table = inferometer.kernel_table(read(data, tables))
        assert (table.total_ns, table.frame["total_ns"].to_list()) == (exact, [exact])
        assert table.frame["median_ns"].to_list() == [statistics.median(exact_ns(dur) for _, dur in launches)]
    rounded = sum(as_hta_rounds(start, dur) for start, dur in launches)
    assert rounded < 0.95 * exact


def test_rounding_to_microseconds_is_wrong_on_a_real_capture_too(shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz"
    kernels = [each for each in events_of(path) if each.get("cat") == "kernel"]
    exact = sum(exact_ns(each["dur"]) for each in kernels)
    rounded = sum(as_hta_rounds(str(each["ts"]), str(each["dur"])) for each in kernels)
    assert inferometer.kernel_table(inferometer.open(path, {"launches"})).total_ns == exact
    assert rounded < 0.97 * exact
