"""Mixtures of experts: each token's products with its k experts, and the weights of the experts that any token chose.

How tokens spread over experts isn't recorded: they are assumed to choose evenly. A skewed choice reads fewer weights,
so a call can be faster than its bound.
"""

from math import prod

from inferometer.operators.framework.aiter_experts import MODELS as AITER
from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import EVEN, matrix_dtype
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Product, Work, active_experts

_MX_BLOCK = 32  # 4-bit weights that share a scale of one byte
_PACKED = "unsigned char"


def _moe_forward(call: OpCall) -> Work:
    """Hidden states [T, H] and router logits [T, E]: top-k and weights are seen in what the call does.

    Weights of gpt-oss are [E, K / 2, N], two 4-bit numbers in a byte, which the kernels multiply in the activations'
    type: its peak counts.
    """
    hidden, logits = call.tensor(0), call.tensor(1)
    top_k = next((each.integer(1) for each in call.inside if each.op == "TopK"), None)
    weights = _weights(call, logits.dims[-1])
    if top_k is None or not weights:
        raise Unmodelled("its weights, or how many experts a token has, can't be seen in what it does")
    return _work(call, hidden, weights, hidden.dims[0], top_k)


def _weights(call: OpCall, experts: int) -> list[Tensor]:
    """Views of three dimensions whose first is the number of experts, each once."""
    seen = (each.maybe_tensor(0) for each in call.inside if each.op == "aten::view")
    found = [each for each in seen if each and len(each.dims) == 3 and each.dims[0] == experts and each.dims[1] > 1]
    return list(dict.fromkeys(found))


def _fused_experts(call: OpCall) -> Work:
    """Hidden states [T, H], w1 [E, 2 I, H], w2 [E, H, I], weights and ids [T, k] of the chosen experts."""
    hidden, ids = call.tensor(0), call.tensor(4)
    if len(ids.dims) != 2:
        raise Unmodelled(f"expected ids [T, k] of experts, found {list(ids.dims)}")
    return _work(call, hidden, [call.tensor(1), call.tensor(2)], hidden.dims[0], ids.dims[1])


def _one_product(call: OpCall) -> Work:
    """Rows A, weights [E, N, K], results at 3, ids [T, k] at 8: one of both products, by SGLang's Triton kernel.

    Rows are hidden states of tokens, or what is inside of each of their experts; scales of the weights at 5.
    """
    a, weight, out, ids = (call.tensor(at) for at in (0, 1, 3, 8))
    if len(weight.dims) != 3 or len(a.dims) != 2 or len(ids.dims) != 2 or not ids.dims[0]:
        raise Unmodelled(f"expected rows, weights [E, N, K] and ids [T, k], found {list(a.dims)}, {list(weight.dims)}")
    (experts, n, k), (tokens, top_k) = weight.dims, ids.dims
    packed = weight.dtype == _PACKED and 2 * k == a.dims[1]
    if a.dims[1] != k and not packed:
        raise Unmodelled(f"expected weights as deep as the rows, found {list(a.dims)} and {list(weight.dims)}")
    active = active_experts(tokens, experts, min(top_k, experts))
    scales = call.maybe_tensor(5)
    stored = weight.bytes + (scales.bytes if scales and scales.dims and scales.dims[0] == experts else 0)
    dtype, assumes = matrix_dtype(call, a, *([] if packed else [weight]))
    chosen = tokens * top_k
    return Work(
        dtype=dtype,
        products=(Product(2 * chosen * n * a.dims[1]),),
        read_bytes=a.bytes + stored * active // (experts or 1) + ids.bytes,
        written_bytes=chosen * n * out.item_bytes,
        assumes=(EVEN, *assumes),
    )


def _work(call: OpCall, hidden: Tensor, weights: list[Tensor], tokens: int, top_k: int) -> Work:
    """Products with each of the weights, and what moves: hidden states in and out, and the active experts' weights."""
    experts = weights[0].dims[0]
    if any(len(each.dims) != 3 or each.dims[0] != experts for each in weights):
        raise Unmodelled(f"expected weights of {experts} experts, found {[list(each.dims) for each in weights]}")
    active = active_experts(tokens, experts, min(top_k, experts))
    elements = [prod(each.dims[1:]) * (2 if each.dtype == _PACKED else 1) for each in weights]
    stored = [
        count // 2 + count // _MX_BLOCK if each.dtype == _PACKED else count * each.item_bytes
        for each, count in zip(weights, elements, strict=True)
    ]
    plain = [each for each in weights if each.dtype != _PACKED]
    dtype, assumes = matrix_dtype(call, hidden, *plain[:1])
    moved = hidden.numel * hidden.item_bytes
    return Work(
        dtype=dtype,
        products=tuple(Product(2 * tokens * top_k * count) for count in elements),
        read_bytes=moved + active * sum(stored),
        written_bytes=moved,
        assumes=(EVEN, *assumes),
    )


_FUSED = tuple(f"{engine}::{way}place_fused_experts" for engine in ("vllm", "sglang") for way in ("in", "out"))
FAMILY = OpFamily(
    name="mixtures of experts",
    models={
        **AITER,
        "vllm::moe_forward": _moe_forward,
        **dict.fromkeys(_FUSED, _fused_experts),
        "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel": _one_product,
    },
    covering=frozenset({"vllm::moe_forward", *_FUSED}),
    looks_inside=frozenset({"vllm::moe_forward"}),
)
