"""When sources are read, how rows are stamped, what happens to those that fail; and one real run."""

import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from tests.record.counters.pretended import Clockwork, pretend
from tests.record.sinks import MemorySink

from inferometer.analyses.compare.causes.counters import find_entities
from inferometer.analyses.compare.causes.metric_roles import role_of_metric
from inferometer.errors import InputError, Unavailable
from inferometer.record.clock import Clock
from inferometer.record.counters.lane import SamplingThread
from inferometer.record.counters.metric import CounterSource, HostProbe, Metric, Reading, SystemRoots
from inferometer.record.counters.sampler import CounterSampler, find_sources

SECOND = 1_000_000_000
METRICS = (Metric("a", "%", "", "context"), Metric("b", "B/s", "", "context", own=True))


def source(read: Callable[[int], Reading], *, most_hz: float = 10.0, name: str = "pretended") -> CounterSource:
    return CounterSource(name, METRICS, lambda place: [HostProbe(read)], most_hz=most_hz)


def one_lane(
    root: Path, *sources: CounterSource, hz: float = 10.0
) -> tuple[SamplingThread, MemorySink, Clockwork, CounterSampler]:
    clock = Clockwork()
    sink = MemorySink(Clock(origin_ns=SECOND, base_ns=5))
    sampler = CounterSampler(sink, hz=hz, sources=sources, place=pretend(root)[0], clock=clock)
    (lane,) = sampler.make_lanes()
    lane.open()
    return lane, sink, clock, sampler


def run(lane: SamplingThread, clock: Clockwork, ticks: int, period_s: float = 0.1) -> None:
    for i in range(ticks):
        lane.sample(is_last=i == ticks - 1)
        clock.pass_s(period_s)


def test_a_row_has_all_that_is_known_and_the_middle_of_its_reading(tmp_path: Path) -> None:
    def read(now_ns: int) -> Reading:
        clock.pass_s(0.02)
        return {"a": 1.5, "b": None}

    lane, sink, clock, sampler = one_lane(tmp_path, source(read))
    run(lane, clock, 1)
    rows = sink.trace().counters.select("metric", "device", "host", "process", "time_ns", "value", "unit").collect()
    assert rows.rows() == [
        ("a", None, socket.gethostname(), None, SECOND // 100, 1.5, "%"),
        ("b", None, socket.gethostname(), 7, SECOND // 100, None, "B/s"),
    ]
    alignment = sampler.alignment()
    assert alignment is not None
    assert (alignment.samples, alignment.median_ns, alignment.greatest_ns) == (1, SECOND // 100, SECOND // 100)


def test_a_source_is_read_no_more_often_than_it_wants(tmp_path: Path) -> None:
    read_at: dict[str, list[int]] = {"often": [], "seldom": []}

    def note(name: str) -> Callable[[int], Reading]:
        def read(now_ns: int) -> Reading:
            read_at[name].append((now_ns - SECOND) // 1_000_000)
            return {}

        return read

    lane, _, clock, _ = one_lane(
        tmp_path, source(note("often"), most_hz=100.0, name="often"), source(note("seldom"), most_hz=2.0, name="seldom")
    )
    run(lane, clock, 11)
    assert read_at["often"] == list(range(0, 1_001, 100))
    assert read_at["seldom"] == [0, 500, 1_000]


def test_ticks_that_come_late_do_not_shift_the_others(tmp_path: Path) -> None:
    read_at: list[float] = []

    def read(now_ns: int) -> Reading:
        read_at.append((now_ns - SECOND) / 1e9)
        return {}

    lane, _, clock, _ = one_lane(tmp_path, source(read))
    for pause_s in (0.1, 0.104, 0.096, 0.9, 0.1, 0.1):
        lane.sample()
        clock.pass_s(pause_s)
    assert read_at == [0.0, 0.1, 0.204, 0.3, 1.2, 1.3]


def test_what_fails_is_said_once_and_tried_again_after_longer_and_longer_pauses(tmp_path: Path) -> None:
    tried: list[float] = []

    def fail(now_ns: int) -> Reading:
        tried.append(round((now_ns - SECOND) / 1e9, 1))
        if len(tried) < 4:
            raise PermissionError(13, "Permission denied", "/proc/secret")
        return {"a": 1.0}

    lane, sink, clock, _ = one_lane(tmp_path, source(fail), source(lambda now_ns: {"a": 2.0}, name="other"))
    run(lane, clock, 80)
    assert tried[:5] == [0.0, 1.0, 3.0, 7.0, 7.1]
    assert sink.lost == [("counter_unavailable", "pretended: /proc/secret: Permission denied")]
    assert sink.trace().counters.filter(pl.col("value") == 2).collect().height == 80


def test_a_source_that_has_nothing_here_says_why_and_the_rest_goes_on(tmp_path: Path) -> None:
    def nothing(place: SystemRoots) -> Sequence[HostProbe]:
        raise Unavailable("no such thing", hint="buy one")

    lane, sink, clock, _ = one_lane(
        tmp_path,
        CounterSource("lacking", (), nothing),
        source(lambda now_ns: {"a": 1.0}),
        CounterSource("silent", (), lambda place: []),
    )
    run(lane, clock, 2)
    assert sink.lost == [("counter_unavailable", "lacking: no such thing")]
    assert sink.trace().counters.collect().height == 2


def test_rows_are_handed_over_every_half_second(tmp_path: Path) -> None:
    lane, sink, clock, _ = one_lane(tmp_path, source(lambda now_ns: {"a": 1.0}))
    handed: list[int] = []
    sink.add = lambda table, rows, columns: handed.append(rows)  # type: ignore[method-assign]
    run(lane, clock, 12)
    assert handed == [1, 5, 5, 1]


def test_a_sink_that_takes_nothing_more_does_not_end_the_run(tmp_path: Path) -> None:
    def refuse(table: str, rows: int, columns: object) -> None:
        raise OSError(28, "No space left on device")

    lane, sink, clock, _ = one_lane(tmp_path, source(lambda now_ns: {"a": 1.0}))
    sink.add = refuse  # type: ignore[method-assign]
    run(lane, clock, 12)
    assert sink.lost == [("counter_unavailable", "counters: the recording takes no rows: No space left on device")]


@pytest.mark.parametrize("hz", [0.0, -1.0, 101.0, float("nan")])
def test_a_pace_that_cannot_be_kept_is_refused(hz: float) -> None:
    with pytest.raises(InputError, match="samples per second"):
        CounterSampler(MemorySink(), hz=hz)


@pytest.mark.parametrize("name", sorted(find_sources()))
def test_roles_are_those_that_the_analyses_give(name: str) -> None:
    assert {metric.name: role_of_metric(metric.name).kind for metric in find_sources()[name].metrics} == {
        metric.name: metric.role for metric in find_sources()[name].metrics
    }


@pytest.mark.parametrize(
    ("metric", "cause"),
    {
        "others_cpu_usage": "cpu_contention",
        "runq_share": "cpu_contention",
        "cpu_frequency": "cpu_clock",
        "gpu_sm_frequency": "gpu_clock",
        "gpu_mem_frequency": "gpu_memory",
        "gpu_throttle_hw_thermal": "thermal",
        "gpu_temperature": "thermal",
        "gpu_pcie_receive": "pcie_traffic",
        "gpu_link_transmit": "nvlink_traffic",
        "gpu_mem_used": "gpu_memory",
        "net_rx_rate": "network",
        "disk_write": "disk",
        "disk_util": "disk",
        "host_mem_available": "memory_pressure",
        "swap_in": "memory_pressure",
    }.items(),
)
def test_causes_are_of_the_class_that_they_belong_to(metric: str, cause: str) -> None:
    assert role_of_metric(metric).cause_class == cause


def test_this_machine_for_half_a_second() -> None:
    sink = MemorySink()
    before_ns, before_s = sink.clock.now(), time.process_time()
    sampler = CounterSampler(sink, hz=20.0)
    sampler.start()
    sampler.start()
    until = time.perf_counter() + 0.5
    while (now := time.perf_counter()) < until or (sampler.lanes[0].lateness.count < 5 and now < until + 10):
        pass  # a machine that is busy with other things may take longer
    sampler.stop()
    sampler.stop()
    after_ns, taken_s = sink.clock.now(), time.process_time() - before_s
    trace = sink.trace()
    rows = trace.counters.collect()
    declared = {metric.name: metric for each in find_sources().values() for metric in each.metrics}
    assert set(rows["metric"]) <= declared.keys()
    assert rows["time_ns"].is_between(before_ns, after_ns).all()
    assert len(sink.lost) == len(set(sink.lost))
    assert {name for name, _ in sink.lost} <= {"counter_unavailable"}
    (note,) = trace.facts.notes
    assert note.startswith("Counters: time stamps are within ")
    entities = find_entities(trace)
    assert len({entity.key for entity in entities}) == len(entities)  # none is derived again
    assert {entity.metric for entity in entities} == set(rows.filter(pl.col("value").is_not_null())["metric"])
    own = rows.filter(pl.col("metric") == "process_cpu_usage")
    assert own["process"].unique().to_list() == [os.getpid()]
    told_s = (own["value"] * own["time_ns"].diff().fill_null(0)).sum() / 100 / SECOND
    assert 0 < told_s <= 1.05 * taken_s  # of which a part lies before the first sample and behind the last


def test_it_begins_and_ends_within_a_moment() -> None:
    sampler = CounterSampler(MemorySink())
    sampler.start()
    sampler.stop()
    CounterSampler(MemorySink()).stop()


def test_a_fork_neither_samples_nor_ends_it() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork, which this system lacks")
    sink = MemorySink()
    sampler = CounterSampler(sink, sources=[source(lambda now_ns: {"a": 1.0})], hz=100.0)
    sampler.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking next to threads: that is what is tried
        child = os.fork()
    if child == 0:
        sampler.stop()
        os._exit(threading.active_count())  # the caller's alone
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    sampler.stop()
    assert sink.trace().counters.collect().height > 0
