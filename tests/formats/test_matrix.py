"""Every real sample against every reader: one knows it, and no other takes it for its own."""

from pathlib import Path

import pytest

from inferometer.formats.base import known_formats
from inferometer.formats.source import Source

ROOT = Path(__file__).parents[2]
SAMPLES = {
    "samples/decode.json.gz": "kineto",
    "samples/nsys.sqlite.gz": "nsys",
    "samples/webgpu.log.gz": "webgpu-log",
    "samples/h200/kineto_graph.json.gz": "kineto",
    "samples/h200/jax.trace.json.gz": "kineto",
    "samples/h200/jax.xplane.pb": "xplane",
    "samples/engines/llama.log": "llama-log",
    "samples/engines/llama_bench.csv": "llama-bench",
    "samples/engines/llama_bench.json": "llama-bench",
    "samples/engines/llama_bench.md": "llama-bench",
    "samples/engines/onnxruntime.json.gz": "onnxruntime",
    "samples/h200/ncu_raw.csv.gz": "ncu",
    "samples/h200/ncu_details.csv.gz": "ncu",
    "../shared/data/traces/xplane/mi300_jax_conv.xplane.pb": "xplane",
}
PERFETTO = b"\x0a\x0c\x40\xc0\x84\x3d\x12\x06\x0a\x04\x08\x01\x12\x00"  # a packet: its time, then a tree of processes


@pytest.mark.parametrize(("name", "expected"), SAMPLES.items(), ids=SAMPLES)
def test_one_reader_knows_a_real_sample(name: str, expected: str) -> None:
    path = ROOT / name
    if not path.is_file():
        pytest.skip("needs ../shared")
    head = Source(path).head
    assert [fmt.name for fmt in known_formats().values() if fmt.sniff(head)] == [expected]


def test_a_trace_of_perfetto_is_no_xspace_though_its_first_byte_is_the_same() -> None:
    assert [fmt.name for fmt in known_formats().values() if fmt.sniff(PERFETTO)] == ["perfetto"]
