"""Candidates as text, each with what is wrong or odd about it; the good ones are in `tests/bench/candidates`."""

from pathlib import Path

CANDIDATES = Path(__file__).resolve().parents[1] / "candidates"
MATMUL = (CANDIDATES / "triton_linear_sigmoid_mul.py").read_text("utf-8")


def with_tiles(tiles: str) -> str:
    """The matrix product with other tiles."""
    return f"{MATMUL}\n\nTILES = {tiles}\n"


SPILLING = with_tiles('{"TILE_T": 256, "TILE_F": 128, "TILE_H": 64, "num_warps": 4, "num_stages": 2}')

OVER_SHARED = with_tiles('{"TILE_T": 128, "TILE_F": 128, "TILE_H": 128, "num_warps": 8, "num_stages": 5}')

AUTOTUNED = f"""{MATMUL}
TILES = {{}}
gate_tiles = triton.autotune(
    [
        triton.Config({{"TILE_T": 64, "TILE_F": 64, "TILE_H": 32}}, num_warps=4, num_stages=3),
        triton.Config({{"TILE_T": 128, "TILE_F": 128, "TILE_H": 128}}, num_warps=8, num_stages=5),
        triton.Config({{"TILE_T": 48, "TILE_F": 64, "TILE_H": 32}}, num_warps=4),
    ],
    key=["T", "H", "F"],
)(gate_tiles)
"""

WITHOUT_MATRIX = """
import torch, triton
import triton.language as tl

@triton.jit
def one_gate(x, weight, bias, post, out, H, F, BLOCK: tl.constexpr):
    row, feature = tl.program_id(0), tl.program_id(1)
    depth = tl.arange(0, BLOCK)
    inside = depth < H
    gate = tl.sum(tl.load(x + row * H + depth, mask=inside, other=0.0).to(tl.float32)
                  * tl.load(weight + feature * H + depth, mask=inside, other=0.0).to(tl.float32))
    gate += tl.load(bias + feature).to(tl.float32)
    tl.store(out + row * F + feature, tl.sigmoid(gate) * tl.load(post + row * F + feature).to(tl.float32))

def linear_sigmoid_mul(x, weight, bias, post):
    out = torch.empty_like(post)
    (T, H), F = x.shape, weight.shape[0]
    one_gate[(T, F)](x, weight, bias, post, out, H, F, BLOCK=triton.next_power_of_2(H), num_warps=1)
    return out
"""

SYNTAX_ERROR = "import torch\n\ndef rms_norm(x, weight, *, eps=1e-6:\n    return x\n"

WRONG_NAME = "def rmsnorm(x, weight, *, eps=1e-6):\n    return x\n\ndef _own():\n    pass\n"

HANGING = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])
"""

CRASHING = """
import os, sys, triton, triton.language as tl

@triton.jit
def copied(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))

def rms_norm(x, weight, *, eps=1e-6):
    copied[(1,)](x, BLOCK=64)
    print("LLVM ERROR: out of patience", file=sys.stderr, flush=True)
    os.abort()
"""

RAISING = """
import triton, triton.language as tl

@triton.jit
def broken(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), no_such_name)

@triton.jit
def copied(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))

def rms_norm(x, weight, *, eps=1e-6):
    broken[(1,)](x, BLOCK=64)
    copied[(1,)](x, BLOCK=64)
    raise RuntimeError("no\\x1b[31m further")
"""

ASKS_FOR_A_GPU = """
import torch, triton, triton.language as tl

assert torch.cuda.is_available()
SMS = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count

@triton.jit
def persistent(x, out, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, PROGRAMS * BLOCK):
        places = start + tl.arange(0, BLOCK)
        tl.store(out + places, tl.load(x + places, mask=places < n), mask=places < n)

def rms_norm(x, weight, *, eps=1e-6):
    assert x.is_cuda and torch.cuda.get_device_capability(x.device) == (9, 0)
    out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    planned = persistent.warmup(x, out, x.numel(), PROGRAMS=SMS, BLOCK=256, grid=(1,))
    planned._init_handles()
    assert planned.n_regs > 0
    with torch.cuda.device(x.device):
        persistent[lambda meta: (meta["PROGRAMS"],)](x, out, x.numel(), PROGRAMS=SMS, BLOCK=256)
    _ = x @ x.T
    return out.cuda()
"""

DECLARED = f"""{MATMUL}
BUILDS = [
    {{
        "kernel": gate_tiles,
        "signature": {{
            **dict.fromkeys(("x", "weight", "bias", "post", "out"), "*fp16"), **dict.fromkeys("THF", "i32"),
            **dict.fromkeys(("TILE_T", "TILE_F", "TILE_H"), "constexpr"),
        }},
        "constants": {{"TILE_T": 64, "TILE_F": 128, "TILE_H": 64}},
        "divisible": ["x", "weight", "bias", "post", "out", "H"],
        "num_warps": 8,
    }}
]
"""

PUBLISHED_FORM = (
    (CANDIDATES / "triton_rms_norm.py").read_text("utf-8").replace("def rms_norm(", "def norm(")
    + """

class Model:
    def __init__(self, eps=1e-6):
        self.eps = eps

    def forward(self, x, weight):
        return norm(x, weight, eps=self.eps)
"""
)
