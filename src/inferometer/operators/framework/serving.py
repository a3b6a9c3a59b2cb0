"""Norms and activations of serving engines.

Outputs that are passed in are written and not read. Positions: the bindings of vLLM, SGLang's sgl-kernel, FlashInfer
and AITER, as recorded in real traces or as registered. FLOPs of an element as the catalogue counts them.
"""

from inferometer.operators.framework.call import OpCall
from inferometer.operators.framework.counting import moved, row_count
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work


def _rms_norm(x_at: int, weight_at: int, out_at: int | None) -> Model:
    def work(call: OpCall) -> Work:
        x = call.tensor(x_at)
        out = call.tensor(out_at).bytes if out_at is not None else x.numel * x.item_bytes
        rows = row_count(x)
        return moved(x.bytes + call.tensor(weight_at).bytes, out, vector=4 * x.numel, special=rows)

    return work


def _add_rms_norm_in_place(call: OpCall) -> Work:
    """`x` and residual, both written: x by the norm, the residual by the sum; weight."""
    x, residual = call.tensor(0), call.tensor(1)
    rows = row_count(x)
    both = x.bytes + residual.bytes
    return moved(both + call.tensor(2).bytes, both, vector=5 * x.numel, special=rows)


def _add_rms_norm(call: OpCall) -> Work:
    """Output, x, residual in, residual out, weight."""
    out, x, residual, kept = (call.tensor(at) for at in range(4))
    rows = row_count(x)
    read = x.bytes + residual.bytes + call.tensor(4).bytes
    return moved(read, out.bytes + kept.bytes, vector=5 * x.numel, special=rows)


def _activation(vector: int) -> Model:
    """Output [T, d], x [T, 2 d]: an activation of one half times the other, one exponential an element."""

    def work(call: OpCall) -> Work:
        out, x = call.tensor(0), call.tensor(1)
        return moved(x.bytes, out.bytes, vector=vector * out.numel, special=out.numel)

    return work


def _curve(call: OpCall) -> Work:
    """Output, x of the same size: an activation of each element."""
    out, x = call.tensor(0), call.tensor(1)
    return moved(x.bytes, out.bytes, vector=4 * x.numel, special=x.numel)


_GATES = ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")
_OUT_FIRST = (
    *("_C::rms_norm", "aiter::rmsnorm"),
    *(f"{library}::{name}" for library in ("sgl_kernel", "flashinfer") for name in ("rmsnorm", "gemma_rmsnorm")),
)
_IN_PLACE = (
    "_C::fused_add_rms_norm",
    *(
        f"{library}::{name}"
        for library in ("sgl_kernel", "flashinfer")
        for name in ("fused_add_rmsnorm", "gemma_fused_add_rmsnorm")
    ),
)
FAMILY = OpFamily(
    name="serving kernels",
    models={
        **dict.fromkeys(_OUT_FIRST, _rms_norm(1, 2, 0)),
        **dict.fromkeys(("aiter::rms_norm", "aiter::rmsnorm2d_fwd", "aiter::rmsnorm2d_fwd_ck"), _rms_norm(0, 1, None)),
        **dict.fromkeys(_IN_PLACE, _add_rms_norm_in_place),
        **dict.fromkeys(
            ("aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add", "aiter::rmsnorm2d_fwd_with_add_ck"), _add_rms_norm
        ),
        **{
            f"{library}::{name}": _activation(4)
            for library in ("_C", "sgl_kernel", "aiter", "flashinfer")
            for name in _GATES
        },
        **dict.fromkeys(("_C::mul_and_silu", "_C::swigluoai_and_mul"), _activation(4)),
        **dict.fromkeys(("_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick"), _curve),
    },
)
