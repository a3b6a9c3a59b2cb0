"""Events whose arguments are decoded in the same pass give what the general way gives, whatever is odd about one."""

from pathlib import Path
from typing import Any

import pytest
from tests.kineto_files import COMPACT, call, event, kernel, write_file
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.formats.kineto.events import Event, decode_events
from inferometer.formats.kineto.typed import TypedDecoder
from inferometer.formats.native.library import VARIABLE as NATIVE

USUAL = [
    kernel("void a<1>(float*)", "100.001", "2.5", grid=[1, 2, 3], block=[32, 1, 1], External_id=4),
    call(kernel="b", stream=7),
    event("cpu_op", "aten::mm", "80", "50.5", Input_Dims=[[1, 2], []], External_id=4),
    event("python_function", "nn.Module: é😀", "70", "80", Python_id=3),
    event("user_annotation", "step", "60", "99"),
]
ODD: list[dict[str, Any]] = [
    {"cat": "kernel", "name": "no phase", "pid": 0, "tid": 7, "ts": 1, "dur": 2},
    {"ph": "X", "name": "no category", "pid": 0, "tid": 7, "ts": 1, "dur": 2},
    {"ph": "X", "cat": "Kernel", "name": "another case", "pid": 0, "tid": 7, "ts": 1, "dur": 2},
    {"ph": "X", "cat": "kernel", "name": None, "pid": 0, "tid": 7, "ts": 1, "dur": 2},
    {"ph": "X", "cat": "kernel", "name": "null", "pid": "null", "tid": "7", "ts": "1", "dur": 2, "args": None},
    {"ph": "X", "cat": "cpu_op", "name": "floats", "pid": 1.0, "tid": 1.5, "ts": 1, "dur": 2},
    {"ph": "X", "cat": "cpu_op", "name": "large", "pid": 2**64, "tid": 1, "ts": 1, "dur": 2},
    {"ph": "X", "cat": "cuda_runtime", "name": "text", "pid": "7", "tid": "thread 1", "ts": 1, "dur": 2, "args": []},
    {"ph": "X", "cat": "kernel", "name": "args", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"grid": 3}},
    {"ph": "X", "cat": "kernel", "name": "args", "ts": 1, "dur": 2, "args": {"correlation": "12", "stream": "7"}},
    {"ph": "X", "cat": "kernel", "name": "nccl", "ts": 1, "dur": 2, "args": {"Collective name": "allreduce"}},
    {"ph": "B", "cat": "cpu_op", "name": "begun", "pid": 1, "tid": 1, "ts": 1},
    {"ph": "E", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 4},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 3, "pid": 1, "tid": 1, "ts": 4},
    {"ph": "X", "cat": "ac2g", "name": "no arrow", "pid": 1, "tid": 1, "ts": 4, "dur": 1},
    {"ph": "M", "cat": "kernel", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
]


@pytest.fixture(autouse=True)
def _python_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NATIVE, "0")


@pytest.mark.parametrize("odd", ODD, ids=lambda each: f"{each.get('ph')} {each.get('cat')} {each.get('name')}")
def test_both_ways_give_the_same_rows_and_losses(
    odd: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file([*USUAL, odd, *USUAL], layout=COMPACT))
    typed = inferometer.open(path)
    monkeypatch.setattr(TypedDecoder, "decode", lambda _, text: decode_events(text))
    assert_same(typed, inferometer.open(path))


def assert_same(one: Trace, other: Trace) -> None:
    assert one.losses == other.losses
    assert stored_facts(one) == stored_facts(other)
    for name, frame in one.tables.items():
        assert frame.collect().equals(other.tables[name].collect()), name


def test_usual_events_have_their_arguments_decoded() -> None:
    text = b'[{"ph": "X", "cat": "kernel", "name": "a", "args": {"correlation": 5}}]'
    (event,) = TypedDecoder(["launches"], decode_events).decode(text)
    assert (event.cat, event.category, event.name, event.args.correlation) == ("kernel", "kernel", "a", 5)


def test_one_odd_event_sends_its_chunk_the_general_way() -> None:
    decoder = TypedDecoder(["launches"], decode_events)
    assert type(decoder.decode(b'[{"ph": "X", "cat": "kernel"}, {"ph": "M"}]')[0]) is Event
    assert type(decoder.decode(b'[{"ph": "X", "cat": "kernel"}]')[0]) is not Event


def test_after_odd_chunks_fewer_are_tried() -> None:
    decoder = TypedDecoder(["launches"], decode_events)
    for _ in range(200):
        assert type(decoder.decode(b'[{"ph": "M"}]')[0]) is Event
    general = [type(decoder.decode(b'[{"ph": "X", "cat": "kernel"}]')[0]) is Event for _ in range(200)]
    assert 0 < general.index(False) <= 63
    assert not any(general[general.index(False) :])
