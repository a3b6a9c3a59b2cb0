"""Traces for rules about kernels: launches in a row by a short word, with real kernels' names, and generated files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.generated_traces import generated_trace
from tests.traces import trace_of
from tools.kineto_maker import Options

import inferometer
from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule
from inferometer.trace.trace import Trace

_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, {}, std::array<char*, 2ul> >(int, {}, std::array<char*, 2ul>)"
)


def _elementwise(functor: str) -> str:
    return _ELEMENTWISE.format(functor, functor)


KERNELS = {
    "gemm": "nvjet_tst_192x32_64x8_2x1_v_bz_TNT",
    "other_gemm": "nvjet_tst_128x64_64x8_2x1_v_bz_TNT",
    "split_gemm": "nvjet_tst_64x32_64x16_4x1_v_bz_splitK_TNT",
    "reduce": "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(float const*)",
    "attention": "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 1u, 8u, 16u>",
    "kv_indices": "create_flashinfer_kv_indices_triton",
    "norm": "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*)",
    "silu": "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu>(__nv_bfloat16*, int)",
    "add": _elementwise("at::native::CUDAFunctor_add<c10::BFloat16>"),
    "add_long": _elementwise("at::native::CUDAFunctorOnSelf_add<long>"),
    "mul": _elementwise(
        "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >"
    ),
    "pow": _elementwise("at::native::(anonymous namespace)::pow_tensor_scalar_kernel_impl<float, float>"),
    "rsqrt": _elementwise("at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}"),
    "to_fp32": (
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::"
        "{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>"
        ", 4, TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, "
        "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)"
    ),
    "to_bf16": _elementwise("at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}"),
    "sample": (
        "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)2, float>(float*)"
    ),
    "memset": "Memset (Device)",
}


def launches(*words: str | tuple[str, dict[str, Any]], start_ns: int = 0, gap_ns: int = 1_000) -> list[dict[str, Any]]:
    """Launches in a row, 10 μs each unless reported; a word with a dict sets what differs."""
    rows = []
    for word in words:
        name, changes = (word, {}) if isinstance(word, str) else word
        kind = "memset" if name == "memset" else "kernel"
        row: dict[str, Any] = {"kind": kind, "kernel": KERNELS[name], "start_ns": start_ns, "dur_ns": 10_000} | changes
        start_ns = row["start_ns"] + row["dur_ns"] + gap_ns
        rows.append(row)
    return rows


def layers(*words: str | tuple[str, dict[str, Any]], times: int, **options: Any) -> Trace:
    """A trace of the same launches so many times in a row; `options` are those of `trace_of`."""
    return trace_of(launches(*(words * times)), **options)


def ask(rule: Rule, trace: Trace) -> list[Finding]:
    """The findings of one rule."""
    return list(rule.find(Evidence(trace)))


def generated(folder: Path, **options: Any) -> Trace:
    """A trace of a small model of the generator: lean, 4 layers unless reported."""
    path = folder / "trace.json"
    chosen = Options(**{"steps": 12, "layers": 4, "batch": 32, "mode": "graph", "lean": True, **options})
    path.write_bytes(generated_trace(chosen)[0])
    return inferometer.open(path)


HEALTHY: Sequence[dict[str, Any]] = (
    {},
    {"mode": "eager", "batch": 64, "seed": 3},
    {"model": "llama-3.2-1b", "batch": 128, "seed": 5, "marks": "vllm"},
    {"batches": (16, 64), "seed": 9, "marks": "profiler", "steps": 20},
)
"""Options of runs without a fault."""
