"""Kernels of CuTe-DSL: what its files and host code say, and a candidate compiled where the package is installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from inferometer.bench.builds.building import build_candidate
from inferometer.bench.builds.cute_dsl import CuteLaunch, arch_of, is_used, read_launches, read_usage
from inferometer.bench.builds.limits import ARCHITECTURES
from inferometer.bench.builds.machine_code import Resources
from inferometer.operators.catalogue import rms_norm

USAGE = """
Resource usage:
 Common:
  GLOBAL:0
 Function kernel_cutlass_k_1:
  REG:10 STACK:8 SHARED:1024 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function kernel_cutlass_sm_0:
  REG:14 STACK:0 SHARED:1536 LOCAL:0 CONSTANT[0]:544 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
CONFIG = "!llvm.struct<(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32)>"


def filled(config: str, values: dict[str, str], symbol: str) -> str:
    """Host code of a launch: `values` of the configuration's fields, by what stores them."""
    lines = [f"    {config} = llvm.alloca %10 x {CONFIG} : (i32) -> !llvm.ptr"]
    for number, (field, value) in enumerate(values.items()):
        place, kind = f"{config}{number}", "i64" if field == "2" else "i32"
        lines.append(f"    {place} = llvm.getelementptr {config}[0, {field}] : (!llvm.ptr) -> !llvm.ptr, {CONFIG}")
        lines.append(f"    llvm.store {value}, {place} : {kind}, !llvm.ptr")
    lines.append(f"    %79 = llvm.mlir.addressof @kernels_{symbol} : !llvm.ptr")
    lines.append("    %81 = llvm.call @_cudaLaunchKernelEx(%69, %80, %72) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32")
    return "\n".join(lines)


CONSTANTS = "\n".join(
    f"    %{name} = llvm.mlir.constant({value} : {kind}) : {kind}"
    for name, value, kind in (("1", 1, "i32"), ("8", 8, "i32"), ("128", 128, "i32"), ("s", 4096, "i64"))
)
DIMS = {"0, 0": "%8", "0, 1": "%1", "0, 2": "%1", "1, 0": "%128", "1, 1": "%1", "1, 2": "%1", "2": "%s"}
CANDIDATE = """
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def normed(x: cute.Tensor, w: cute.Tensor, out: cute.Tensor, H: cutlass.Constexpr):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    parts = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
    total = cutlass.Float32(0.0)
    for i in range(lane, H, 128):
        total += x[row, i].to(cutlass.Float32) * x[row, i].to(cutlass.Float32)
    parts[lane] = total
    cute.arch.sync_threads()
    total = cutlass.Float32(0.0)
    for i in range(128):
        total += parts[i]
    for i in range(lane, H, 128):
        scale = cute.math.rsqrt(total / H + 1e-6)
        out[row, i] = (x[row, i].to(cutlass.Float32) * scale * w[i].to(cutlass.Float32)).to(cutlass.BFloat16)


@cute.jit
def launch(x: cute.Tensor, w: cute.Tensor, out: cute.Tensor, T: cutlass.Constexpr, H: cutlass.Constexpr):
    normed(x, w, out, H).launch(grid=[T, 1, 1], block=[128, 1, 1])


def rms_norm(x, weight, *, eps):
    out = torch.empty_like(x)
    launch(from_dlpack(x), from_dlpack(weight), from_dlpack(out), x.shape[0], x.shape[1])
    return out
"""


def test_resources_are_of_each_kernel_without_what_the_system_reserves() -> None:
    assert read_usage(USAGE, ARCHITECTURES["sm_90"]) == {
        "kernel_cutlass_k_1": Resources(registers=10, stack_bytes=8, static_shared_bytes=0),
        "kernel_cutlass_sm_0": Resources(registers=14, stack_bytes=0, static_shared_bytes=512),
    }
    assert read_usage(USAGE, ARCHITECTURES["sm_80"])["kernel_cutlass_k_1"].static_shared_bytes == 1024


def test_launches_are_read_from_host_code() -> None:
    host = "\n".join((CONSTANTS, filled("%15", DIMS, "kernel_cutlass_sm_0"), filled("%87", DIMS, "kernel_cutlass_k_1")))
    assert read_launches(host) == [
        CuteLaunch("kernel_cutlass_sm_0", (8, 1, 1), (128, 1, 1), 4096),
        CuteLaunch("kernel_cutlass_k_1", (8, 1, 1), (128, 1, 1), 4096),
    ]


def test_sizes_that_are_no_constants_are_unknown() -> None:
    host = "\n".join((CONSTANTS, filled("%15", {**DIMS, "0, 0": "%arg3", "2": "%arg4"}, "kernel_cutlass_sm_0")))
    assert read_launches(host) == [CuteLaunch("kernel_cutlass_sm_0", None, (128, 1, 1), None)]
    assert read_launches("") == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sm_80", "sm_80"), ("sm_89", "sm_89"), ("sm_90", "sm_90a"), ("sm_100", "sm_100a"), ("sm_120", "sm_120a")],
)
def test_architectures_are_called_as_it_calls_them(name: str, expected: str) -> None:
    assert arch_of(ARCHITECTURES[name]) == expected


def test_a_file_that_imports_it_is_told() -> None:
    assert is_used(b"import torch\n    import cutlass.cute as cute\n")
    assert is_used(b"from cutlass import cute\n")
    assert not is_used(b"# import cutlass\nimport cutlass_other\n")


def test_a_candidate_is_compiled_without_a_gpu(tmp_path: Path) -> None:
    for package in ("torch", "triton", "cutlass"):
        if find_spec(package) is None:
            pytest.skip(f"{package} isn't installed (cutlass: pip install nvidia-cutlass-dsl)")
    path = tmp_path / "candidate.py"
    path.write_text(CANDIDATE, "utf-8")
    cases = [{"token_count": 4, "hidden_size": 512, "eps": 1e-6}] * 2
    found = build_candidate(path, rms_norm.OPERATOR, cases, ("sm_90", "sm_120"))
    assert found.passed, found.findings
    for each in found.architectures:
        (kernel,) = each.kernels
        assert kernel.kernel.startswith("normed_")
        assert (kernel.grid, kernel.num_warps, kernel.shared_bytes) == ((4, 1, 1), 4, 128 * 4)
        assert kernel.cases == (0, 1)
        assert kernel.registers is not None
        assert 16 <= kernel.registers <= 64
        assert kernel.loads["LDG"] >= 1  # of a GPU's memory: not the generic LD
        assert "LD" not in kernel.loads
        assert kernel.occupancy is not None
        assert kernel.triton.startswith("nvidia-cutlass-dsl ")
