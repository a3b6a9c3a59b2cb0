"""Profiles of ONNX Runtime: a real one recounted in plain Python, names as its writer leaves them, and damage."""

import gzip
import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.samples import onnxruntime
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats

SAMPLE = Path(__file__).parents[3] / "samples" / "engines" / "onnxruntime.json.gz"
EVENTS: list[dict[str, Any]] = json.loads(gzip.decompress(SAMPLE.read_bytes()))
NODES = [event for event in EVENTS if event["cat"] == "Node"]


def opened(tmp_path: Path, data: bytes) -> Trace:
    path = tmp_path / "profile.json"
    path.write_bytes(data)
    return inferometer.open(path)


def holds_another(node: dict[str, Any]) -> bool:
    """Whether another node began while it ran."""
    return any(
        other is not node and node["ts"] <= other["ts"] < node["ts"] + node["dur"] and other["dur"] <= node["dur"]
        for other in NODES
    )


def test_the_real_file_has_a_launch_for_each_node_that_computes() -> None:
    trace = inferometer.open(SAMPLE)
    leaves = [node for node in NODES if not holds_another(node)]
    assert {node["args"]["op_name"] for node in NODES if holds_another(node)} == {"If"}
    expected = [(node["args"]["op_name"], "cpu", 1000 * node["ts"], 1000 * node["dur"]) for node in leaves]
    assert rows(trace, "launches", "kernel", "device", "start_ns", "dur_ns") == expected
    sums: Counter[str] = Counter()
    for node in leaves:
        sums[node["args"]["op_name"]] += 1000 * node["dur"]
    table = kernel_table(trace).frame
    assert dict(table.select("kernel", "total_ns").iter_rows()) == dict(sums)
    assert counted(trace) == {}


def test_the_real_file_has_an_op_a_span_and_a_shape_for_each_node() -> None:
    trace = inferometer.open(SAMPLE)
    assert rows(trace, "ops", "op") == [node["args"]["op_name"] for node in NODES]
    names = [node["name"].removesuffix("_kernel_time") for node in NODES]
    spans = rows(trace, "spans", "domain", "span")
    assert [span for domain, span in spans if domain == "Node"] == names
    assert [json.loads(dims) for dims in rows(trace, "ops", "input_dims")] == [
        [shape for each in node["args"]["input_type_shape"] for shape in each.values()] for node in NODES
    ]
    runs = [event for event in EVENTS if event["name"] == "model_run"]
    assert rows(trace, "steps", "step", "start_ns", "dur_ns") == [
        (i, 1000 * event["ts"], 1000 * event["dur"]) for i, event in enumerate(runs)
    ]


def test_names_that_are_not_escaped_are_read_as_they_are(tmp_path: Path) -> None:
    name = 'C:\\models\\new "v2"","args'
    text = onnxruntime().replace(b"model_loading_uri", name.encode())
    trace = opened(tmp_path, text)
    assert name in rows(trace, "spans", "span")
    assert 'a "b"' in rows(trace, "spans", "span")
    assert counted(trace)["bad_escape"] == 2


def test_a_node_of_another_provider_is_no_launch_and_the_file_says_so(tmp_path: Path) -> None:
    data = onnxruntime().replace(b"CPUExecutionProvider", b"CUDAExecutionProvider")
    trace = opened(tmp_path, data)
    assert rows(trace, "launches", "kernel", "device", "stream", "grid", "block") == [
        ("gemm", None, 7, [1, 2, 3], [32, 1, 1])
    ]
    without = opened(tmp_path, data.replace(b'"Kernel"', b'"Quantum"'))
    assert rows(without, "launches", "kernel") == []
    assert "CUDAExecutionProvider have no kernels in the file" in without.facts.notes[0]


def test_what_the_profiler_had_no_room_for_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.formats.onnxruntime.reader._LIMIT", len(EVENTS))
    assert counted(inferometer.open(SAMPLE)) == {"dropped_by_profiler": 1}


def test_a_file_that_ends_at_any_byte_has_what_came_before(tmp_path: Path) -> None:
    data, path = onnxruntime(), tmp_path / "profile.json"
    for size in range(len(data) - 2):
        path.write_bytes(data[:size])
        with suppress(InputError):
            assert inferometer.open(path, {"spans"}, format="onnxruntime").losses.total() > 0


@pytest.mark.parametrize("text", ["", "{}", "[", "[]", "null", "[1, 2]", "[" * 9999, '[{"cat": 5}]', "\x00\x01"])
def test_what_has_no_event_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"profile\.json: "):
        inferometer.open(path, format="onnxruntime")


@pytest.mark.parametrize("number", ["9" * 30, "-5", "1e400", '"soon"', "null", "[]"])
def test_a_time_that_is_none_is_counted(number: str, tmp_path: Path) -> None:
    data = onnxruntime().replace(b'"ts" :200', f'"ts" :{number}'.encode())
    trace = opened(tmp_path, data)
    assert rows(trace, "steps", "step") == []
    assert {"without_timestamp", "unreadable_event"} & set(counted(trace))


@pytest.mark.parametrize("which", [0, 7, 40])
def test_an_event_of_the_real_file_that_cannot_be_read_is_seen_and_dropped(which: int, tmp_path: Path) -> None:
    texts = [json.dumps(event) for event in EVENTS[:60]]
    texts[which] = texts[which].replace('"ts": ', '"ts": "soon", "was": ')
    trace = opened(tmp_path, f"[{', '.join(texts)}]".encode())
    losses = trace.losses
    if which == 0:  # without its first event nothing else is left out
        assert losses.total("unreadable_event") == 1
    assert losses.dropped() == losses.dropped("event") == losses.seen["event"] == 1
    assert losses.seen["spans"] + losses.dropped() == len(texts)


def test_other_chrome_traces_are_not_taken_for_it() -> None:
    formats = known_formats()
    other = b'[{"name": "model_run", "cat": "Session", "ph": "X", "pid": 1, "ts": 1, "dur": 2}]'
    assert [name for name, fmt in formats.items() if fmt.sniff(other)] == ["kineto"]
    spaced = b' [ {"cat": "Node", "pid": 1, "ph": "X"'
    assert [name for name, fmt in formats.items() if fmt.sniff(spaced)] == ["onnxruntime"]
