"""Device time by call, from traces of a few lines in the forms that torch.profiler writes."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.kineto_files import Event, call, event, kernel, write_file

from inferometer.bench.profiles.kernel_times import KernelTimes, kernel_times
from inferometer.errors import FormatError

Write = Callable[[Iterable[Event]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(events: Iterable[Event]) -> Path:
        path = tmp_path / "trace.json"
        path.write_bytes(write_file(events))
        return path

    return write


def range_of(number: int, ts: str, dur: str, tid: int = 2) -> Event:
    return event("user_annotation", f"inferometer.call {number}", ts, dur, tid=tid, External_id=number + 1)


def on_track(number: int, ts: str, dur: str) -> Event:
    """The profiler's projection of a range to the device."""
    name = f"inferometer.call {number}"
    return event("gpu_user_annotation", name, ts, dur, pid=0, tid=7, device=0, stream=7, External_id=number + 1)


def launched(correlation: int, at: str, ts: str, dur: str, *, stream: int = 7, tid: int = 2) -> list[Event]:
    """A runtime call at `at` and its kernel."""
    api = event("cuda_runtime", "cudaLaunchKernel", at, "1", tid=tid, correlation=correlation, External_id=1)
    return [api, kernel("k", ts, dur, correlation=correlation, stream=stream)]


def found(times: KernelTimes) -> list[tuple[int, ...]]:
    columns = (times.numbers, times.busy_ns, times.summed_ns, times.span_ns, times.launches, times.streams)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_each_call_has_the_work_that_it_queued_though_that_ends_long_after_its_range(write: Write) -> None:
    events = [range_of(0, "10", "5"), range_of(1, "20", "5")]
    events += launched(1, "11", "30", "4") + launched(2, "12", "36", "2") + launched(3, "21", "50", "8")
    times = kernel_times(write(events))
    assert found(times) == [(0, 6_000, 6_000, 8_000, 2, 1), (1, 8_000, 8_000, 8_000, 1, 1)]
    assert (times.unattributed, times.lost, times.damage) == (0, 0, ())


def test_overlap_of_two_streams_counts_once_in_busy_and_twice_in_summed_time(write: Write) -> None:
    events = [range_of(0, "10", "5"), *launched(1, "11", "20", "6"), *launched(2, "12", "23", "5", stream=13)]
    assert found(kernel_times(write(events))) == [(0, 8_000, 11_000, 8_000, 2, 2)]


def test_copies_and_sets_are_device_work_too(write: Write) -> None:
    copy = event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", "20", "3", pid=0, tid=7, device=0, stream=7, bytes=8)
    fill = event("gpu_memset", "Memset (Device)", "25", "1", pid=0, tid=7, device=0, stream=7, bytes=8)
    apis = [call("cudaMemcpyAsync", "11", "1", correlation=1), call("cudaMemsetAsync", "12", "1", correlation=2)]
    copy["args"]["correlation"], fill["args"]["correlation"] = 1, 2
    assert found(kernel_times(write([range_of(0, "10", "5"), *apis, copy, fill]))) == [(0, 4_000, 4_000, 6_000, 2, 1)]


def test_work_that_another_thread_queues_in_the_meantime_belongs_to_the_call(write: Write) -> None:
    events = [range_of(0, "10", "5"), *launched(1, "11", "20", "1", tid=2), *launched(2, "12", "30", "1", tid=99)]
    assert found(kernel_times(write(events))) == [(0, 2_000, 2_000, 11_000, 2, 1)]


def test_all_kernels_of_a_graphs_replay_belong_to_the_call_that_launched_it(write: Write) -> None:
    nodes = [
        kernel("k", f"{ts}", "2", correlation=5, graph_id=1, graph_node_id=node)
        for node, ts in enumerate((30, 33, 36), 1)
    ]
    api = event("cuda_runtime", "cudaGraphLaunch", "11", "1", correlation=5)
    assert found(kernel_times(write([range_of(0, "10", "5"), api, *nodes]))) == [(0, 6_000, 6_000, 8_000, 3, 1)]


def test_ranges_on_the_devices_track_arent_taken_for_the_hosts(write: Write) -> None:
    queued = launched(1, "11", "20", "5")
    later = launched(2, "22", "40", "7")  # between calls, but within the projection of call 0
    times = kernel_times(write([range_of(0, "10", "5"), on_track(0, "20", "5"), *queued, *later]))
    assert found(times) == [(0, 5_000, 5_000, 5_000, 1, 1)]
    assert (times.unattributed, times.unattributed_ns) == (1, 7_000)


def test_work_whose_runtime_call_isnt_recorded_is_counted_as_lost(write: Write) -> None:
    times = kernel_times(
        write([range_of(0, "10", "5"), *launched(1, "11", "20", "5"), kernel("k", "26", "3", correlation=77)])
    )
    assert (times.launches.tolist(), times.lost, times.lost_ns) == ([1], 1, 3_000)
    nothing_recorded = kernel_times(write([range_of(0, "10", "5"), kernel("k", "26", "3", correlation=77)]))
    assert (nothing_recorded.lost, nothing_recorded.launches.tolist()) == (1, [0])


def test_a_call_without_device_work_is_there_with_zeros(write: Write) -> None:
    events = [range_of(3, "40", "5"), range_of(1, "10", "5"), *launched(1, "41", "50", "5")]
    times = kernel_times(write(events))
    assert found(times) == [(1, 0, 0, 0, 0, 0), (3, 5_000, 5_000, 5_000, 1, 1)]


def test_time_is_conserved(write: Write) -> None:
    events = [range_of(i, f"{10 * i}", "5") for i in range(20)]
    for i in range(60):
        events += launched(i, f"{3.7 * i:.1f}", f"{300 + 2.5 * i:.1f}", "4", stream=7 + i % 3)
    events.append(kernel("k", "900", "11", correlation=1_000))
    times = kernel_times(write(events))
    assert times.summed_ns.sum() + times.unattributed_ns + times.lost_ns == 60 * 4_000 + 11_000
    assert times.launches.sum() + times.unattributed + times.lost == 61
    assert 0 < times.unattributed < 60
    assert (times.busy_ns <= times.summed_ns).all()
    assert (times.busy_ns <= times.span_ns).all()


def test_a_range_begins_with_its_start_and_ends_before_its_end(write: Write) -> None:
    events = [range_of(0, "10", "5"), range_of(1, "15", "5")]
    events += launched(1, "10", "30", "1") + launched(2, "15", "40", "2") + launched(3, "20", "50", "4")
    times = kernel_times(write(events))
    assert times.summed_ns.tolist() == [1_000, 2_000]
    assert times.unattributed_ns == 4_000


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([kernel()], "expected a range inferometer.call 0"),
        ([on_track(0, "10", "5")], "expected a range inferometer.call 0"),
        ([event("user_annotation", "inferometer.call seven", "1", "1")], "expected a range inferometer.call 0"),
        ([range_of(4, "10", "5"), range_of(4, "20", "5")], "expected one range inferometer.call 4, found several"),
        ([range_of(0, "10", "5"), range_of(1, "12", "5")], "found two at one time"),
    ],
    ids=["no ranges", "on the device only", "no number", "twice", "overlapping"],
)
def test_what_isnt_a_profile_of_calls_is_refused(events: list[Event], words: str, write: Write) -> None:
    with pytest.raises(FormatError, match=words):
        kernel_times(write(events))


def test_what_cant_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    data = write_file([range_of(0, "10", "5"), *launched(1, "11", "20", "5"), *launched(2, "12", "26", "5")])
    path.write_bytes(data[: data.rindex(b'"dur"')])
    (damage,) = kernel_times(path).damage
    assert damage.startswith("truncated: 1.")


def test_the_steps_of_a_real_capture_hold_what_a_slow_count_finds(shared_data: Path, tmp_path: Path) -> None:
    """PyTorch on an H100; its one ProfilerStep in the place of a call."""
    import gzip
    import json

    text = gzip.decompress((shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz").read_bytes())
    path = tmp_path / "trace.json"
    path.write_bytes(text.replace(b'"ProfilerStep#6"', b'"inferometer.call 6"'))
    events = json.loads(text)["traceEvents"]
    device = [each for each in events if each.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    called = {
        each["args"]["correlation"]: each["ts"]
        for each in events
        if each.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in each.get("args", {})
    }
    (step,) = (each for each in events if each.get("cat") == "user_annotation")
    own = [
        each
        for each in device
        if step["ts"] <= called.get(each["args"]["correlation"], -1.0) < step["ts"] + step["dur"]
    ]
    times = kernel_times(path)
    assert times.numbers.tolist() == [6]
    assert times.launches.tolist() == [len(own)]
    assert times.launches.sum() + times.unattributed + times.lost == len(device)
    assert times.lost == sum(each["args"]["correlation"] not in called for each in device)
    assert len(own) > 100
    assert times.summed_ns[0] == pytest.approx(sum(each["dur"] for each in own) * 1e3, rel=1e-9)
