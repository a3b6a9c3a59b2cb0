"""Launches of a small serving engine, made by hand, with the step that each belongs to."""

from collections.abc import Sequence
from typing import Any

from tests.traces import trace_of

from inferometer.trace.trace import Trace

GEMM = "nvjet_tst_64x32_64x16_4x1_v_bz_TNT"
BIG_GEMM = "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT"
DECODE = "void flashinfer::BatchDecodeWithPagedKVCacheKernel<int>(int)"
UNIFIED = "kernel_unified_attention_2d"
NORM = "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)"
SAMPLE = "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, float>(float*)"
EMBED = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int)"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, int> >(X)"
ADAM = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>(int)"
SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, X>(float*)"
TO_HOST = "Memcpy DtoH (Device -> Pinned)"
TO_DEVICE = "Memcpy HtoD (Pinned -> Device)"
ATTENTION = {"prefill": (UNIFIED,), "decode": (DECODE,), "mixed": (UNIFIED, DECODE)}
PAUSE_NS = 40_000
BETWEEN_NS = 1_000


def step_kernels(phase: str, layers: int) -> list[str]:
    """The names of a step's launches in order: inputs, embedding, layers, logits, sampler, tokens to the host."""
    gemm = GEMM if phase == "decode" else BIG_GEMM
    layer = [gemm, *ATTENTION[phase], gemm, NORM, gemm, NORM]
    return [FILL, TO_DEVICE, EMBED, NORM, *layer * layers, gemm, SOFTMAX, SAMPLE, TO_HOST]


def serve(
    phases: Sequence[str], *, layers: int = 3, pause_ns: int = PAUSE_NS, **others: Any
) -> tuple[list[dict[str, Any]], list[int]]:
    """Launches of these steps on one stream, and the step of each. Steps that prefill take ten times as long."""
    rows: list[dict[str, Any]] = []
    steps: list[int] = []
    now = 1_000_000
    for number, phase in enumerate(phases):
        for name in step_kernels(phase, layers):
            dur = 3_000 if phase == "decode" else 30_000
            kind = "memcpy" if name.startswith("Mem") else "kernel"
            rows.append({"kernel": name, "kind": kind, "start_ns": now, "dur_ns": dur, **others})
            steps.append(number)
            now += dur + BETWEEN_NS
        now += pause_ns
    return rows, steps


def traced(rows: Sequence[dict[str, Any]], **others: Any) -> Trace:
    """A trace of these launches."""
    return trace_of(rows, **others)
