"""The glossary's definitions, computed again from the samples in plain Python, and held against our numbers."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import inferometer
from inferometer.analyses.roofline.table import roofline
from inferometer.trace.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ("decode.json.gz", "decode_fixed.json.gz", "nsys.sqlite.gz")
BEGIN_WITHIN_NS, LATE_BEGIN_NS = 5_000, 50_000


class Launch(NamedTuple):
    """One launch with its host call, in order of time."""

    start_ns: int
    end_ns: int
    sort: str
    called_ns: int
    returned_ns: int


@cache
def trace_of(sample: str) -> Trace:
    return inferometer.open(ROOT / "samples" / sample)


@cache
def launches_of(sample: str) -> list[Launch]:
    trace = trace_of(sample)
    calls = {row["correlation_id"]: row for row in trace.calls.collect().iter_rows(named=True)}
    found = []
    for row in trace.launches.collect().iter_rows(named=True):
        call = calls[row["correlation_id"]]
        name = row["kernel"]
        communicates = "nccl" in name or "cross_device_reduce" in name
        sort = "copy" if row["kind"] != "kernel" else "communication" if communicates else "compute"
        end_ns = row["start_ns"] + row["dur_ns"]
        found.append(Launch(row["start_ns"], end_ns, sort, call["start_ns"], call["start_ns"] + call["dur_ns"]))
    return sorted(found)


def moments(launches: Iterable[Launch]) -> Counter[frozenset[str]]:
    """Nanoseconds of the window during which exactly these sorts of work ran."""
    edges = sorted([(one.start_ns, 1, one.sort) for one in launches] + [(one.end_ns, -1, one.sort) for one in launches])
    open_now: Counter[str] = Counter()
    found: Counter[frozenset[str]] = Counter()
    before_ns = edges[0][0]
    for at_ns, change, sort in edges:
        found[frozenset(name for name, count in open_now.items() if count)] += at_ns - before_ns
        open_now[sort] += change
        before_ns = at_ns
    return found


def gaps(launches: Iterable[Launch]) -> list[tuple[int, Launch]]:
    """When the device went idle, and what ended that."""
    found: list[tuple[int, Launch]] = []
    last_end_ns: int | None = None
    for one in launches:
        if last_end_ns is not None and one.start_ns > last_end_ns:
            found.append((last_end_ns, one))
        last_end_ns = max(last_end_ns or 0, one.end_ns)
    return found


@pytest.mark.parametrize("sample", SAMPLES)
def test_window_busy_summed_idle_and_exposed_time(sample: str) -> None:
    launches = launches_of(sample)
    (device,) = inferometer.find_timeline(trace_of(sample)).devices.to_dicts()
    runs = moments(launches)
    window_ns = max(one.end_ns for one in launches) - launches[0].start_ns
    exposed = sum(ns for sorts, ns in runs.items() if "communication" in sorts and "compute" not in sorts)
    assert device["window_ns"] == window_ns
    assert device["busy_ns"] == sum(ns for sorts, ns in runs.items() if sorts)
    assert device["idle_ns"] == window_ns - device["busy_ns"]
    assert device["summed_ns"] == sum(one.end_ns - one.start_ns for one in launches)
    assert device["exposed_communication_ns"] == exposed
    assert device["exposed_copy_ns"] == runs[frozenset({"copy"})]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_late_host_and_launch_gaps(sample: str) -> None:
    late_ns = launch_gap_ns = 0
    for idle_from_ns, one in gaps(launches_of(sample)):
        if one.returned_ns > idle_from_ns:
            assert one.start_ns - one.returned_ns <= LATE_BEGIN_NS
            late_ns += one.start_ns - idle_from_ns
        else:
            assert one.start_ns - idle_from_ns <= BEGIN_WITHIN_NS
            launch_gap_ns += one.start_ns - idle_from_ns
    causes = dict(inferometer.find_timeline(trace_of(sample)).causes.select("cause", "idle_ns").iter_rows())
    assert causes.pop("launch_gap") == launch_gap_ns
    assert causes.pop("host_late") + causes.pop("sync") == late_ns
    assert causes == {}


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_queue_and_starved_time(sample: str) -> None:
    launches = launches_of(sample)
    (queue,) = inferometer.call_table(trace_of(sample)).queues.to_dicts()
    starved_ns = 0
    for idle_from_ns, one in gaps(launches):
        called = min(other.called_ns for other in launches if other.start_ns >= one.start_ns)
        starved_ns += max(0, called - idle_from_ns)
    causes = dict(inferometer.find_timeline(trace_of(sample)).causes.select("cause", "idle_ns").iter_rows())
    assert queue["starved_ns"] == starved_ns
    assert queue["busy_ns"] + queue["queued_idle_ns"] + queue["starved_ns"] == queue["window_ns"]
    assert starved_ns < causes["host_late"] + causes["sync"]


def test_the_finding_s_kinds_and_the_summary_s_causes_part_one_idle_time() -> None:
    trace = trace_of("nsys.sqlite.gz")
    (finding,) = (one for one in inferometer.find_findings(trace).findings if one.rule == "idle_device")
    idle_ns = inferometer.find_timeline(trace).devices["idle_ns"].item()
    assert finding.size_ns == idle_ns
    assert "the host was late" in finding.evidence[0]
    assert "late launches one by one" in finding.evidence[0]


def test_a_step_is_busy_or_in_its_gap() -> None:
    steps = inferometer.step_table(trace_of("decode.json.gz")).to_polars()
    assert steps.height == 6
    assert (steps["gpu_busy_ns"] + steps["gap_ns"] == steps["window_ns"]).all()


def test_reached_is_the_bound_over_the_time_and_above_the_bound_is_the_rest() -> None:
    trace = trace_of("decode.json.gz")
    rows: list[dict[str, Any]] = roofline(inferometer.attribute(trace, with_op_calls=True), trace).as_json()["rows"]
    modelled = [row for row in rows if row["bound_ns"] is not None]
    assert len(modelled) > 10
    for row in modelled:
        assert row["fraction"] == pytest.approx(row["bound_ns"] / row["total_ns"])
        assert row["above_ns"] == pytest.approx(row["total_ns"] - row["bound_ns"])
        assert row["binding"] in ("dependency", "matrix", "vector", "special", "memory", "link", "pcie")
