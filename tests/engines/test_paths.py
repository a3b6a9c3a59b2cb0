"""Call paths: a tree by name, one row per call, in the context that recorded it and no other."""

import threading

import pytest

from inferometer.engines.device_hold import STRETCH
from inferometer.engines.paths import PathRecorder, current_key, is_recording, scope


def keys_of(recorder: PathRecorder) -> list[str]:
    return [recorder.paths[node].key for node in recorder.path_of]


def test_calls_of_one_path_are_one_node_and_a_row_each() -> None:
    recorder = PathRecorder()
    with recorder.entered(), scope("decode"):
        for _ in range(3):
            with scope("norm", "rms_norm"):
                pass
    assert [path.key for path in recorder.paths] == ["decode", "decode.norm"]
    assert keys_of(recorder) == ["decode.norm"] * 3 + ["decode"]
    assert recorder.paths[1].operator == "rms_norm"
    assert recorder.paths[1].parent == 0
    assert recorder.span_ns == [None] * 4


def test_a_call_lies_within_its_callers() -> None:
    recorder = PathRecorder()
    with recorder.entered(), scope("outer"), scope("inner"):
        pass
    (inner, outer) = zip(recorder.start_ns, recorder.end_ns, strict=True)
    assert outer[0] <= inner[0] <= inner[1] <= outer[1]


def test_a_scope_ends_when_its_block_raises() -> None:
    recorder = PathRecorder()
    with recorder.entered():
        with pytest.raises(KeyError), scope("outer"), scope("inner"):
            raise KeyError
        assert current_key() is None
        with scope("after"):
            assert current_key() == "after"
    assert keys_of(recorder) == ["outer.inner", "outer", "after"]


def test_nothing_is_recorded_outside_of_a_recorder() -> None:
    recorder = PathRecorder()
    with recorder.entered():
        assert is_recording()
    with scope("later"):
        assert not is_recording()
        assert current_key() is None
    assert recorder.path_of == []


def test_a_thread_has_no_part_in_what_another_records() -> None:
    recorder, seen = PathRecorder(), []

    def work() -> None:
        with scope("elsewhere"):
            seen.append(current_key())

    with recorder.entered(), scope("here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [None]
    assert keys_of(recorder) == ["here"]


def test_what_a_call_allocated_is_counted_with_what_it_calls() -> None:
    allocated = iter([100, 110, 150, 155])
    recorder = PathRecorder(allocated=lambda: next(allocated))
    with recorder.entered(), scope("outer"), scope("inner"):
        pass
    assert keys_of(recorder) == ["outer.inner", "outer"]
    assert recorder.allocated_bytes == [40, 55]


def test_on_a_gpu_every_call_has_two_events_that_are_read_after_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    waits: list[str] = []
    now = [0.0]

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            now[0] += 1.5
            self.at = now[0]

        def query(self) -> bool:
            return is_ahead[0]

        def elapsed_time(self, other: "Event") -> float:
            assert waits == ["cuda:0"]
            return other.at - self.at

    def sleep(cycles: int) -> None:
        now[0] += cycles / 2e6

    is_ahead = [False]
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "_sleep", sleep)
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    recorder = PathRecorder("cuda:0")
    with recorder.entered(), scope("outer"), scope("inner"):
        pass
    assert recorder.span_ns == [1_500_000, 4_500_000]  # 1.5 ms apart: outer, inner, inner, outer
    assert recorder.short_waits == 0.0
    recorder.clear()
    waits.clear()
    with recorder.entered(), scope("outer"):
        for _ in range(STRETCH):  # the last of them waits, within outer, which doesn't count it
            with scope("inner"):
                pass
        is_ahead[0] = True
    inner, outer = recorder.span_ns[:-1], recorder.span_ns[-1]
    assert inner == [1_500_000] * STRETCH
    assert outer == pytest.approx(1_500_000 * (2 * STRETCH + 1 + 2), rel=0.02)
    assert recorder.short_waits == 0.5
