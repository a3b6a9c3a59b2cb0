"""What commands print at 80, 120 and 200 columns: pictures of the samples to review, and what holds in each.

Of real traces, which stay where they are, the names of the kernels in a summary: each row tells its own.
"""

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

import inferometer
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.site_times import launch_sites
from inferometer.analyses.result import Result
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.findings.engine import Findings, find_findings
from inferometer.findings.first_look import first_look
from inferometer.reports.finding_list import render_findings
from inferometer.reports.screen.screen import Detail
from inferometer.reports.terminal import render_terminal
from inferometer.trace.trace import Trace

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
FILES = {
    "decode": "decode.json.gz",
    "nsys": "nsys.sqlite.gz",
    "webgpu": "webgpu.log.gz",
    "h200": "h200/kineto_eager.json.gz",
}
ASKED: dict[str, Callable[[Trace], Result]] = {
    "summary": first_look,
    "kernels": kernel_table,
    "launches": lambda trace: launch_sites(attribute(trace)),
    "findings": find_findings,
    "timeline": lambda trace: find_timeline(trace, width=50),
}
PICTURES = (
    *((command, "decode") for command in ASKED),
    *(("summary", "nsys"), ("summary", "webgpu"), ("kernels", "h200")),
)


@cache
def answer(command: str, sample: str) -> Result:
    name = FILES[sample]
    there = Path.cwd()
    os.chdir(SAMPLES)
    try:
        return ASKED[command](inferometer.open(name))
    finally:
        os.chdir(there)


def picture(command: str, sample: str, detail: Detail) -> str:
    found = answer(command, sample)
    if isinstance(found, Findings):
        return render_findings(found, is_terminal=False, detail=detail)
    return render_terminal(found, is_terminal=False, detail=detail)


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize(("command", "sample"), PICTURES)
def test_a_picture(
    command: str,
    sample: str,
    width: int,
    golden: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = picture(command, sample, Detail())
    assert max(map(cell_len, text.splitlines())) <= width
    golden(f"screens/{command}-{sample}-{width}.txt", text)


@pytest.mark.parametrize(("command", "sample"), PICTURES)
def test_asked_for_all_no_name_is_cut_and_no_column_left_out(
    command: str, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = picture(command, sample, Detail(full=True))
    assert "Too narrow for" not in text
    assert "…" not in text


REAL_KERNELS = {
    "h100_qwen1.5-0.5b": (
        *("cublas xmma gemm bf16 128x128x64 tn", "mul bf16", "copy bf16", "flash_attn2 fwd bf16 d64 128x128 causal"),
        *("concat", "add bf16", "mul fp32", "copy with cast fp32", "pow fp32 v4", "mul bf16 v4"),
    ),
    "mi300_vllm_gpt-oss_decode": (
        *("moe matmul bf16×mxfp4 16x128x256", "moe matmul bf16×mxfp4 16x128x256 swiglu"),
        "kernel unified attention 3d (triton)",
        *("tensile gemm bf16 TN 32x32x256 bias gfx942 [NTA0]", "tensile gemm bf16 TN 32x32x256 bias gfx942 [NTA4]"),
        *("ck rmsnorm2d fwd bf16", "inductor pointwise: to copy", "tensile gemm bf16 TN 448x32x64 bias gfx942"),
        *("tensile gemm bf16 TN 16x16x256 bias gfx942", "kernel unified attention 2d (triton)"),
    ),
    "mi300_sglang_qwen3-8b_decode": (
        *("tensile gemm bf16 TN 256x32x64 bias gfx942", "paged attention mfma16 bf16 d128"),
        *("tensile gemm bf16 TN 32x32x256 bias gfx942", "tensile gemm bf16 TN 64x32x256 bias gfx942"),
        *("tensile gemm bf16 TN 16x32x512 bias gfx942", "tensile gemm bf16 TN 256x48x64 bias gfx942"),
        *("add + rms_norm bf16", "copy bf16", "rms_norm bf16", "silu_and_mul bf16"),
    ),
    "a100_nccl": (
        *(
            "nccl allreduce ring ll sum float",
            "cudnn nchw to nhwc kernel fp32",
            "cudnn bn_bw_1c11_kernel_new fp32 [128]",
        ),
        *("add fp32 v4", "relu fp32 v4", "cudnn bn_bw_1c11_kernel_new fp32 [32]"),
        *("cutlass gemm tf32 tensorop 256x64x16 s4 nn", "cudnn bn_fw_tr_1c11_kernel_nchw fp32"),
        *("cutlass gemm tf32 tensorop 256x64x16 s4 nt", "cutlass gemm tf32 tensorop 64x64x16 s6 tn"),
    ),
    "rank0_sampled": (
        "nccl sendrecv ring simple sum int8",
        "split embedding backward codegen rowwise adagrad unweighted cta",
        "split embedding codegen forward unweighted fp16",
        "split embedding backward codegen rowwise adagrad unweighted warp",
        "split embedding backward codegen rowwise adagrad weighted cta",
        *("permute pooled embs fp32", "split embedding codegen grad indice weights fp16"),
        *("cutlass gemm tf32 tensorop 128x64x32 s6 nt", "concat fp32", "permute 2 d data"),
    ),
}


@pytest.mark.parametrize("name", REAL_KERNELS)
def test_every_row_of_a_real_summary_tells_its_kernel(
    name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole where it fits; cut in the middle it has the words that tell it from the others, and no two are alike."""
    with inferometer.open(shared_data / f"traces/kineto/{name}.json.gz") as trace:
        found = first_look(trace)
    for width in (80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = render_terminal(found, is_terminal=False).splitlines()
        assert max(map(cell_len, lines)) <= width
        table = lines[lines.index("Top kernels") + 3 :]
        shown = [re.split("  +", line)[0] for line in table[: len(REAL_KERNELS[name])]]
        assert len(set(shown)) == len(shown)
        for text, label in zip(shown, REAL_KERNELS[name], strict=True):
            head, _, tail = text.partition("…")
            assert text == label or (width == 80 and label.startswith(head) and label.endswith(tail)), (width, text)
