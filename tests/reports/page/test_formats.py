"""The page of a file of each format: it opens, names the tool, and shows what the file holds."""

import json
from pathlib import Path

import pytest
from tests.conformance.samples import BESIDE, NAMES, SAMPLES
from tests.formats.llama_bench.test_reader import DECODE, PROMPT, opened

import inferometer
from inferometer.errors import InputError
from inferometer.formats.base import known_formats
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks

SHOWS = {  # a section that has what the file holds, and a word of it
    "llama-bench": ("tests", "pp512"),
    "mlc": ("tests", "decode"),
    "tensorrt": ("tests", "GPU compute"),
    "llama-log": ("step_classes", "MUL_MAT"),
    "onnxruntime": ("timeline", "Relu"),
    "torch-memory": ("memory", "gpu:0"),
    "ncu": ("kernels", "gemm"),
    "proton": ("kernels", "gemm"),
    "rocprof": ("kernels", "memset bufferaligned"),
    "rocpd": ("kernels", "memset bufferaligned"),
    "xplane": ("kernels", "gemm_fusion"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_of_each_format_has_a_page(name: str, tmp_path: Path) -> None:
    path = tmp_path / NAMES.get(name, f"sample{known_formats()[name].suffixes[0]}")
    path.write_bytes(SAMPLES[name]())
    for other, make in BESIDE.get(name, {}).items():
        (tmp_path / other).write_bytes(make())
    trace = inferometer.open(path)
    blocks = build_blocks(PageData(trace))
    page = render_page(blocks, title="a").html
    assert (trace.facts.tool or name).replace("'", "&#39;") in page
    whole = {block.name for block in blocks if not block.lacking}
    if name in SHOWS:
        section, word = SHOWS[name]
        assert section in whole
        assert word in page
    assert all(block.lacking.endswith((".", "?")) for block in blocks if block.lacking)


def test_a_page_of_two_results_says_which_command_compares_them(tmp_path: Path) -> None:
    text = json.dumps([PROMPT, DECODE])
    base, candidate = (opened(tmp_path, text, name) for name in ("a.json", "b.json"))
    with pytest.raises(InputError, match="inferometer compare sets two of these side by side"):
        build_blocks(PageData(base, candidate))
