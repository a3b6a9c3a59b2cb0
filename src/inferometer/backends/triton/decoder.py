"""A decoder's operators of the backend `triton`: our own Triton kernels, of `kernels/`.

It takes tensors of float32, float16 and bfloat16 that expected no gradient; each condition below says what else. On a
CPU the kernels are interpreted: that shows that they are right, and says nothing about how fast they are. For it the
process must be started with `TRITON_INTERPRET=1`, or must not have loaded Triton before the backend is chosen.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import DecoderKernel, DecoderKernels
from inferometer.backends.triton.loading import (
    interpreter_unavailable,
    load_kernels,
    load_late,
    prepare_interpreter,
    triton_unavailable,
)
from inferometer.errors import UnknownName

if TYPE_CHECKING:
    from torch import Tensor

_DTYPES = ("torch.float32", "torch.float16", "torch.bfloat16")
_LONGEST_ROW = 2**31 - 2**14
"""Places in a row are 32-bit numbers, also that of the end of the last block."""

_MOST_EXPERTS = 4_096
"""A program holds all experts of a token."""

_LONGEST_ROTATED = 4_096
"""A program holds half of a head."""


def _refuse_rms_norm(
    x: "Tensor", weight_H: "Tensor", *, eps: float, offset: float = 0.0, late_cast: bool = False
) -> str | None:
    """A weight of another dtype only where it is rounded late: else PyTorch answers in the wider of the two."""
    return _refuse_dtypes(x, weight_H, alike=not late_cast) or _refuse_long(x)


def _refuse_add_rms_norm(
    x: "Tensor",
    residual: "Tensor",
    weight_H: "Tensor",
    *,
    eps: float,
    offset: float = 0.0,
    late_cast: bool = False,
) -> str | None:
    """Also a residual stream of another dtype or shape."""
    return (
        _refuse_dtypes(x, residual)
        or _refuse_shapes(x, residual)
        or _refuse_rms_norm(x, weight_H, eps=eps, late_cast=late_cast)
    )


def _refuse_rope(q_BHqTD: "Tensor", k_BHkTD: "Tensor", cos_BTD: "Tensor", sin_BTD: "Tensor") -> str | None:
    """Odd heads, heads that are turned in part, and those whose elements don't lie side by side."""
    D = q_BHqTD.shape[-1]
    if D % 2 or D > _LONGEST_ROTATED:
        return f"head size {D}"
    if cos_BTD.shape[-1] != D:
        return f"turns {cos_BTD.shape[-1]} of {D}"
    if any(each.stride(-1) != 1 for each in (q_BHqTD, k_BHkTD, cos_BTD, sin_BTD)):
        return "heads with gaps"
    return _refuse_dtypes(q_BHqTD, k_BHkTD, cos_BTD, sin_BTD)


def _refuse_linear(x: "Tensor", weight_NK: "Tensor", bias_N: "Tensor | None" = None) -> str | None:
    """Several dtypes at once."""
    return _refuse_dtypes(x, weight_NK) if bias_N is None else _refuse_dtypes(x, weight_NK, bias_N)


def _refuse_gated(gate: "Tensor", up: "Tensor") -> str | None:
    """Operands of two dtypes or shapes."""
    return _refuse_dtypes(gate, up) or _refuse_shapes(gate, up)


def _refuse_softmax(logits_BV: "Tensor", *, temperature: float = 1.0) -> str | None:
    """No temperature."""
    if not temperature > 0:
        return f"temperature {temperature:g}"
    return _refuse_rows(logits_BV)


def _refuse_top_k_top_p(prob_BV: "Tensor", uniform_B: "Tensor", *, k: int = 0, p: float = 1.0) -> str | None:
    """Probabilities or draws that aren't float32."""
    if k < 0 or not p > 0:
        return f"k {k}, p {p:g}"
    if any(str(each.dtype) != _DTYPES[0] for each in (prob_BV, uniform_B)):
        return f"dtypes {_names(prob_BV, uniform_B)}"
    return _refuse_rows(prob_BV)


def _refuse_moe_route(logits_TE: "Tensor", *, k: int, renormalize: bool) -> str | None:
    """More experts than a program holds, or more that are asked for than there are."""
    E = logits_TE.shape[-1]
    if E > _MOST_EXPERTS or not 0 < k <= E:
        return f"{k} of {E} experts"
    return _refuse_rows(logits_TE)


def _refuse_rows(rows: "Tensor") -> str | None:
    if rows.dim() != 2:
        return f"ndim {rows.dim()}"
    return _refuse_dtypes(rows) or _refuse_long(rows)


def _refuse_long(x: "Tensor") -> str | None:
    return None if 0 < x.shape[-1] < _LONGEST_ROW else f"rows of {x.shape[-1]}"


def _refuse_shapes(one: "Tensor", other: "Tensor") -> str | None:
    return None if one.shape == other.shape else f"shapes {list(one.shape)} and {list(other.shape)}"


def _refuse_dtypes(*tensors: "Tensor", alike: bool = True) -> str | None:
    """Also where a gradient is wanted, which no kernel has."""
    first = tensors[0].dtype
    if any(str(each.dtype) not in _DTYPES or (alike and each.dtype != first) for each in tensors):
        return f"dtypes {_names(*tensors)}"
    import torch

    wanted = torch.is_grad_enabled() and any(each.requires_grad for each in tensors)
    return "a gradient is wanted" if wanted else None


def _names(*tensors: "Tensor") -> str:
    return ", ".join(dict.fromkeys(str(each.dtype).removeprefix("torch.") for each in tensors))


_FILES: dict[str, tuple[str, str, Callable[..., str | None]]] = {
    "rms_norm": ("rms_norm", "rms_norm", _refuse_rms_norm),
    "add_rms_norm": ("fused_add_rms_norm", "fused_add_rms_norm", _refuse_add_rms_norm),
    "rope": ("rope", "rope", _refuse_rope),
    "linear": ("linear", "linear", _refuse_linear),
    "silu_mul": ("gated_mul", "silu_mul", _refuse_gated),
    "gelu_mul": ("gated_mul", "gelu_mul", _refuse_gated),
    "softmax": ("softmax", "softmax", _refuse_softmax),
    "argmax": ("argmax", "argmax", _refuse_rows),
    "top_k_top_p": ("top_k_top_p", "top_k_top_p", _refuse_top_k_top_p),
    "moe_route": ("moe_topk_gating_softmax", "moe_route", _refuse_moe_route),
}
"""By operator: the file, its function, and what it refuses."""

_ATTENTION = {"attention_prefill": "refuses_prefill", "attention_decode": "refuses_decode"}
_NORMS = ("rms_norm", "add_rms_norm")


def _load(operator: str) -> DecoderKernel:
    if operator in _ATTENTION:
        return DecoderKernel(load_late("attention", operator), _late_refusal(_ATTENTION[operator]))
    if operator not in _FILES:
        raise UnknownName("operator of a model", operator, (*_FILES, *_ATTENTION))
    file, name, refuses = _FILES[operator]
    call = load_late(file, name)
    return DecoderKernel(_rounding_early(call) if operator in _NORMS else call, refuses)


def _rounding_early(norm: Callable[..., Any]) -> Callable[..., Any]:
    """A model's norms round before the weight unless asked not to, the catalogue's don't."""

    def call(*tensors: Any, late_cast: bool = False, **settings: Any) -> Any:
        return norm(*tensors, late_cast=late_cast, **settings)

    return call


def _late_refusal(name: str) -> Callable[..., str | None]:
    def refuses(q: "Tensor", *others: "Tensor", **settings: Any) -> str | None:
        why: str | None = getattr(load_kernels("attention", q.device.type), name)(q, *others, **settings)
        return why

    return refuses


def _unavailable(device: str) -> str | None:
    missing = triton_unavailable(device)
    return interpreter_unavailable() if missing is None and device == "cpu" else missing


DECODER = DecoderKernels(
    operators=(*_FILES, *_ATTENTION),
    unavailable=_unavailable,
    load=_load,
    prepare=prepare_interpreter,
)
