"""AITER's mixtures of experts: both products in one call (`fmoe_…g1u1`), or each alone (`ck_moe_stage1`, `2`).

No trace with such calls was at hand, so where arguments stand is known from the bindings alone: sizes of all that is
counted must agree with each other, and a call whose sizes don't has no model. T tokens, k experts a token, E experts,
H hidden size, I size inside an expert; weights of gated experts are [E, 2 I, H] and [E, H, I], and half as deep where
two 4-bit numbers are in a byte.
"""

from typing import NamedTuple

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import EVEN, matrix_dtype
from inferometer.operators.framework.family import Model
from inferometer.operators.work import Product, Work, active_experts

_PACKED = ("c10::Float4_e2m1fn_x2", "unsigned char")
_INDEX = ("int", "unsigned int")


class _Call(NamedTuple):
    """What is multiplied: rows and hidden states that go in, weights with their depths, and what comes out."""

    tokens: int
    top_k: int
    x: Tensor
    out: Tensor
    weights: tuple[tuple[Tensor, int], ...]
    scales: tuple[Tensor | None, ...]


def _both(call: OpCall) -> Work:
    """Output [T, H], hidden states [T, H], both weights, sorted tokens; k at 8, scales of the weights at 10 and 11."""
    out, x, up, down = (call.tensor(at) for at in range(4))
    if len(x.dims) != 2 or out.dims != x.dims or not _is_index(call, 4):
        raise _unlike(call)
    tokens, hidden = x.dims
    inside = _depth(down)
    if len(up.dims) != 3 or (up.dims[1], _depth(up), down.dims[1]) != (2 * inside, hidden, hidden):
        raise _unlike(call)
    scales = call.maybe_tensor(10), call.maybe_tensor(11)
    return _work(call, _Call(tokens, call.integer(8), x, out, ((up, hidden), (down, inside)), scales))


def _first(call: OpCall) -> Work:
    """Hidden states [T, H], both weights, sorted tokens, experts, count, output [T, k, I], k, …, scales at 9 and 10."""
    x, up, down, out = (call.tensor(at) for at in (0, 1, 2, 6))
    top_k = call.integer(7)
    if len(x.dims) != 2 or len(up.dims) != 3 or not _is_index(call, 3):
        raise _unlike(call)
    inside = _depth(down)
    hidden = _unpacked(x)
    if _depth(up) != hidden or up.dims[1] not in (inside, 2 * inside) or out.dims != (x.dims[0], top_k, inside):
        raise _unlike(call)
    return _work(call, _Call(x.dims[0], top_k, x, out, ((up, hidden),), (call.maybe_tensor(9),)))


def _second(call: OpCall) -> Work:
    """What is inside [T, k, I], both weights, sorted tokens, experts, count, output [T, H], k, …, scales at 9, 10."""
    x, down, out = (call.tensor(at) for at in (0, 2, 6))
    top_k = call.integer(7)
    if len(x.dims) != 3 or x.dims[1] != top_k or not _is_index(call, 3):
        raise _unlike(call)
    inside = _unpacked(x)
    if _depth(down) != inside or out.dims != (x.dims[0], down.dims[1]):
        raise _unlike(call)
    return _work(call, _Call(x.dims[0], top_k, x, out, ((down, inside),), (call.maybe_tensor(9),)))


def _unpacked(x: Tensor) -> int:
    return x.dims[-1] * (2 if x.dtype in _PACKED else 1)


def _depth(weight: Tensor) -> int:
    """Numbers that a row of an expert's weight has."""
    if len(weight.dims) != 3:
        raise Unmodelled(f"expected weights [E, N, K], found {list(weight.dims)}")
    return _unpacked(weight)


def _is_index(call: OpCall, at: int) -> bool:
    found = call.maybe_tensor(at)
    return found is not None and len(found.dims) == 1 and found.dtype in _INDEX


def _unlike(call: OpCall) -> Unmodelled:
    sizes = ", ".join(str(list(each.dims)) for each in call.all_tensors[:4])
    return Unmodelled(f"its arguments aren't those of the binding that is known: the first are {sizes}")


def _work(call: OpCall, found: _Call) -> Work:
    """Products with the k experts of each token; read are weights, and their scales, of experts that have tokens."""
    experts = found.weights[0][0].dims[0]
    if any(weight.dims[0] != experts for weight, _ in found.weights) or not 1 <= found.top_k <= experts:
        raise _unlike(call)
    active = active_experts(found.tokens, experts, found.top_k)
    stored = sum(weight.bytes for weight, _ in found.weights)
    stored += sum(scale.bytes for scale in found.scales if scale and scale.dims and scale.dims[0] == experts)
    plain = [weight for weight, _ in found.weights[:1] if weight.dtype != "unsigned char"]
    dtype, assumes = matrix_dtype(call, found.x, *plain)
    return Work(
        dtype=dtype,
        products=tuple(
            Product(2 * found.tokens * found.top_k * weight.dims[1] * depth) for weight, depth in found.weights
        ),
        read_bytes=found.x.bytes + stored * active // experts,
        written_bytes=found.out.bytes,
        assumes=(EVEN, *assumes),
    )


MODELS: dict[str, Model] = {
    **dict.fromkeys(
        ("aiter::fmoe_g1u1", "aiter::fmoe_fp8_g1u1", "aiter::fmoe_int8_g1u1", "aiter::fmoe_fp8_blockscale_g1u1"), _both
    ),
    "aiter::ck_moe_stage1": _first,
    "aiter::ck_moe_stage2": _second,
}
