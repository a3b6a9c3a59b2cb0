"""What groups and tracks are called, and the numbers that Perfetto knows them by."""

from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor

from inferometer.reports.perfetto.tracks import KEY, Track, Tracks
from inferometer.trace.facts import Facts, NamedId


def described(*tracks: Track, **facts: Any) -> list[TrackDescriptor]:
    some = Tracks(Facts(format="by-hand", source="by hand", **facts))
    for track in tracks:
        some.uuid(some.number(track))
    return [TrackDescriptor.FromString(data) for data in some.describe()]


def names(*tracks: Track, **facts: Any) -> list[str]:
    return [each.process.process_name or each.thread.thread_name or each.name for each in described(*tracks, **facts)]


def track(group: str = "process", **values: Any) -> Track:
    return Track(**{**dict.fromkeys(KEY), "group": group, **values})


def test_threads_and_processes_have_their_names_and_numbers() -> None:
    found = described(
        track(process=77, thread=78), processes=(NamedId(77, name="vllm"),), threads=(NamedId(77, 78, "worker"),)
    )
    assert [(each.process.pid, each.process.process_name) for each in found[:1]] == [(77, "vllm (process 77)")]
    assert [(each.thread.pid, each.thread.tid, each.thread.thread_name) for each in found[1:]] == [(77, 78, "worker")]


def test_ids_that_were_text_have_no_number_in_their_name() -> None:
    facts = {"processes": (NamedId(-5, name="Spans"),), "threads": (NamedId(None, -6, "Profiler"),)}
    assert names(track(process=-5, thread=-6), **facts) == ["Spans", "Profiler"]


def test_nothing_known_is_called_unknown() -> None:
    assert names(track()) == ["unknown process", "unknown thread"]
    assert names(track("device")) == ["unknown device", "unknown stream"]


def test_a_stream_number_that_several_contexts_use_is_told_apart() -> None:
    shared = [track("device", device="gpu:0", stream=7, process=9, context=context) for context in (1, 2)]
    alone = track("device", device="gpu:1", stream=7, process=9, context=1)
    assert names(*shared, alone) == [
        *("gpu:0", "stream 7, process 9, context 1", "stream 7, process 9, context 2"),
        *("gpu:1", "stream 7"),
    ]


def test_ranges_stand_above_the_work_of_their_stream_and_processes_above_devices() -> None:
    device = {"device": "gpu:0", "stream": 7}
    tracks = (track("device", **device), track("device", what="ranges", **device), track(process=1, thread=1))
    assert names(*tracks) == ["process 1", "thread 1", "gpu:0", "stream 7: ranges", "stream 7"]


def test_numbers_that_perfetto_cannot_hold_become_free_ones() -> None:
    found = described(*(track(process=number, thread=3) for number in (None, -4, 0, 2**40, 5)))
    pids = [each.process.pid for each in found if each.HasField("process")]
    assert len(set(pids)) == 5
    assert all(0 < pid < 2**31 for pid in pids)
    assert 5 in pids
    assert len({each.uuid for each in found}) == len(found)
