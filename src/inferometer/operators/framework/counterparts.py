"""The operator of the catalogue that a recorded call is, with its arguments: a shape that `bench` can run.

A call has a counterpart where the operator's contract is what it computes: of the same types, and from tensors whose
sizes it records. Strides don't count: the catalogue's tensors are contiguous. Positions of arguments: the bindings of
vLLM, SGLang's sgl-kernel, AITER and flash-attention, and PyTorch's native_functions.yaml. Attention over a cache
decodes alone: each sequence has one new token, and lengths are equal, as far as their sum allows.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.family import plain_name

Args = dict[str, Any]
_Rule = Callable[[OpCall], Args]
_BF16: Final = "c10::BFloat16"
_FP8: Final = {"c10::Float8_e4m3fn": "fp8_e4m3fn", "c10::Float8_e4m3fnuz": "fp8_e4m3fnuz"}
_NONE: Final = "the catalogue has no such operator"
_LATENT_ROPE: Final = 64  # columns of a latent that carry positions
_MOST_SEQUENCES: Final = 65_536  # of one call; each is listed, and a damaged file may say any number


class Counterpart(msgspec.Struct, frozen=True):
    """`operator` by its name in the catalogue; `args` its arguments, as JSON."""

    operator: str
    args: str


def counterpart_of(call: OpCall) -> Counterpart | None:
    """The catalogue's operator that this call is; None where there is none."""
    found = _RULES.get(plain_name(call.op))
    if found is None:
        return None
    operator, rule = found
    try:
        return Counterpart(operator, json.dumps(rule(call)))
    except Unmodelled:
        return None


def _rows(x: Tensor, dtype: str = _BF16) -> tuple[int, int]:
    """Rows of a tensor of this type and their length."""
    _require(x.dtype == dtype and len(x.dims) > 0 and x.dims[-1] > 0)
    return x.numel // x.dims[-1], x.dims[-1]


def _require(holds: bool) -> None:
    if not holds:
        raise Unmodelled(_NONE)


def _eps(call: OpCall, at: int) -> Args:
    """The epsilon, where one is given."""
    value = call.value(at)
    return {"eps": float(value)} if isinstance(value, int | float) else {}


def _rms_norm(*, x_at: int, weight_at: int, eps_at: int) -> _Rule:
    def rule(call: OpCall) -> Args:
        tokens, hidden = _rows(call.tensor(x_at))
        weight = call.tensor(weight_at)
        _require(weight.dims == (hidden,) and weight.dtype == _BF16)
        return {"token_count": tokens, "hidden_size": hidden, **_eps(call, eps_at)}

    return rule


def _layer_norm(call: OpCall) -> Args:
    """Over the last dimension, with weight and bias."""
    x, weight, bias = call.tensor(0), call.tensor(2), call.tensor(3)
    _, length = _rows(x)
    _require(all(each.dims == (length,) and each.dtype == _BF16 for each in (weight, bias)))
    return {"shape": list(x.dims), **_eps(call, 4)}


def _silu_and_mul(call: OpCall) -> Args:
    """Output, x [..., 2 d]."""
    x = call.tensor(1)
    _require(x.dtype == _BF16 and len(x.dims) > 0 and x.dims[-1] % 2 == 0)
    return {"shape": list(x.dims)}


def _topk_softmax(call: OpCall) -> Args:
    """Weights [T, k], ids, places, logits [T, E], and whether weights are made to add up to 1."""
    weights, (tokens, experts) = call.tensor(0), _rows(call.tensor(3), "float")
    _require(len(weights.dims) == 2 and call.value(4) is not True)
    return {"token_count": tokens, "num_experts": experts, "top_k": weights.dims[1]}


def _align(call: OpCall) -> Args:
    """Ids [T, k], experts, block."""
    ids = call.tensor(0)
    _require(len(ids.dims) == 2)
    tokens, top_k = ids.dims
    sizes = {"token_count": tokens, "num_experts": call.integer(1), "top_k": top_k}
    return {**sizes, "block_size": call.integer(2)}


def _expert_sum(call: OpCall) -> Args:
    """Results [T, k, H] of the experts."""
    x = call.tensor(0)
    _require(x.dtype == _BF16 and len(x.dims) == 3)
    tokens, top_k, hidden = x.dims
    return {"token_count": tokens, "top_k": top_k, "hidden_size": hidden, "routed_scaling_factor": 1.0}


def _fused_experts(call: OpCall) -> Args:
    """Hidden states [T, H], w1 [E, 2 I, H], w2 [E, H, I], weights, ids [T, k]."""
    (tokens, hidden), w1, w2, ids = _rows(call.tensor(0)), call.tensor(1), call.tensor(2), call.tensor(4)
    _require(len(w2.dims) == 3 and len(ids.dims) == 2 and w1.dtype == w2.dtype == _BF16)
    experts, _, intermediate = w2.dims
    _require(w1.dims == (experts, 2 * intermediate, hidden) and w2.dims[1] == hidden)
    sizes = {"token_count": tokens, "hidden_size": hidden, "intermediate_size": intermediate}
    return {**sizes, "num_experts": experts, "top_k": ids.dims[1]}


def _token_quant(*, x_at: int, out_at: int) -> _Rule:
    def rule(call: OpCall) -> Args:
        tokens, hidden = _rows(call.tensor(x_at))
        return {"token_count": tokens, "hidden_size": hidden, "fp8_dtype": _fp8(call.tensor(out_at))}

    return rule


def _group_quant(call: OpCall) -> Args:
    """Rows, output, scales, columns of a group."""
    tokens, hidden = _rows(call.tensor(0))
    group = call.integer(3)
    _require(group > 0 and hidden % group == 0)
    return {"token_count": tokens, "hidden_size": hidden, "group_size": group, "fp8_dtype": _fp8(call.tensor(1))}


def _fp8(tensor: Tensor) -> str:
    _require(tensor.dtype in _FP8)
    return _FP8[tensor.dtype]


def _block_scaled_mm(call: OpCall) -> Args:
    """Rows [M, K], weight [N, K], scales of the rows, scales of tiles of the weight."""
    x, weight, scales = call.tensor(0), call.tensor(1), call.tensor(3)
    _require(all(len(each.dims) == 2 and 0 not in each.dims for each in (x, weight, scales)))
    (m, k), n = x.dims, weight.dims[0]
    group_n, group_k = -(-n // scales.dims[0]), k // scales.dims[1]
    _require(group_k > 0 and k % group_k == 0 and scales.dims == (-(-n // group_n), k // group_k))
    return {"m": m, "n": n, "k": k, "group_n": group_n, "group_k": group_k, "fp8_dtype": _fp8(x)}


def _cache_write(call: OpCall) -> Args:
    """Keys, values [T, h, d], caches [blocks, block, h, d]."""
    k, v, cache = call.tensor(0), call.tensor(1), call.tensor(2)
    _require(k.dtype == cache.dtype == _BF16 and len(k.dims) == 3 and len(cache.dims) == 4 and k.dims == v.dims)
    return {"shape": list(k.dims), "block_size": cache.dims[1]}


def _encoder(*, heads: int, length: int, causal_at: int) -> _Rule:
    """Attention of a batch without a mask, where dimensions are counted from the end."""

    def rule(call: OpCall) -> Args:
        q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
        _require(call.value(causal_at) is False and len(q.dims) == 4 and q.dtype == _BF16)
        _require(q.dims[0] <= _MOST_SEQUENCES and k.dims[0] <= _MOST_SEQUENCES)
        _require(k.dims == v.dims and (q.dims[heads], q.dims[-1]) == (k.dims[heads], k.dims[-1]))
        found = {"num_heads": q.dims[heads], "head_dim": q.dims[-1], "seq_lens": [q.dims[length]] * q.dims[0]}
        return found if q.dims == k.dims else {**found, "key_lens": [k.dims[length]] * k.dims[0]}

    return rule


def _paged(*, q_at: int, cache_at: int) -> _Rule:
    """Queries [T, H, D] and a cache [pages, page, heads, D]."""

    def rule(call: OpCall) -> Args:
        return _decoding(call, call.tensor(q_at), call.tensor(cache_at))

    return rule


def _unified(call: OpCall) -> Args:
    """Queries [T, H, D]; the cache [2, blocks, block, heads, D] is seen where the call takes it apart."""
    cache = next((each.maybe_tensor(0) for each in call.inside if each.op == "aten::unbind"), None)
    if cache is None:
        raise Unmodelled(_NONE)
    return _decoding(call, call.tensor(0), cache)


def _decoding(call: OpCall, q: Tensor, cache: Tensor) -> Args:
    lengths = _lengths(call, q)
    _require(len(q.dims) == 3 and len(cache.dims) >= 4 and q.dims[-1] == cache.dims[-1] and q.dtype == cache.dtype)
    _require(q.dtype == _BF16)
    heads = {"num_query_heads": q.dims[1], "num_kv_heads": cache.dims[-2], "head_size": q.dims[2]}
    return {**heads, "block_size": cache.dims[-3], "seq_lens": lengths, "query_lens": [1] * len(lengths)}


def _latent(call: OpCall) -> Args:
    """Queries [T, H, R + p] and latents."""
    q, latents = call.tensor(0), call.tensor(1)
    lengths = _lengths(call, q)
    _require(len(q.dims) == 3 and q.dims[-1] > _LATENT_ROPE and q.dtype == latents.dtype == _BF16)
    sizes = {"batch_size": len(lengths), "ctx_len": max(lengths), "ctx_lens": lengths, "nhead": q.dims[1]}
    return {**sizes, "kv_lora_rank": q.dims[-1] - _LATENT_ROPE, "qk_rope_head_dim": _LATENT_ROPE}


def _lengths(call: OpCall, q: Tensor) -> list[int]:
    """Keys of each sequence of a step that decodes, equal as far as their sum allows."""
    context = call.lengths.seen_by(q.dims[0] if q.dims else 0)
    if context is None or context.pairs != context.keys or not context.queries:
        raise Unmodelled(_NONE)
    _require(context.queries <= _MOST_SEQUENCES)
    each, more = divmod(context.keys, context.queries)
    return [each + (at < more) for at in range(context.queries)]


def _named(operator: str, rules: Mapping[str, _Rule]) -> dict[str, tuple[str, _Rule]]:
    return {op: (operator, rule) for op, rule in rules.items()}


_LIBRARIES: Final = ("_C", "sgl_kernel", "aiter", "flashinfer")
_NORMS: Final = ("_C::rms_norm", "sgl_kernel::rmsnorm", "aiter::rmsnorm", "flashinfer::rmsnorm")
_ADDED_IN_PLACE: Final = ("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm", "flashinfer::fused_add_rmsnorm")
_OUT_FIRST = _rms_norm(x_at=1, weight_at=2, eps_at=3)
_X_FIRST = _rms_norm(x_at=0, weight_at=2, eps_at=3)
_ADDED_APART = _rms_norm(x_at=1, weight_at=4, eps_at=5)
_RULES: Final[Mapping[str, tuple[str, _Rule]]] = {
    **_named("rms_norm", dict.fromkeys(_NORMS, _OUT_FIRST)),
    **_named("rms_norm", {"aiter::rms_norm": _rms_norm(x_at=0, weight_at=1, eps_at=2)}),
    **_named("rms_norm", dict.fromkeys(("aten::rms_norm", "aten::_fused_rms_norm"), _X_FIRST)),
    **_named("fused_add_rms_norm", dict.fromkeys(_ADDED_IN_PLACE, _X_FIRST)),
    **_named(
        "fused_add_rms_norm", dict.fromkeys(("aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add_ck"), _ADDED_APART)
    ),
    **_named("layer_norm", dict.fromkeys(("aten::native_layer_norm", "aten::layer_norm"), _layer_norm)),
    **_named("silu_and_mul", {f"{library}::silu_and_mul": _silu_and_mul for library in _LIBRARIES}),
    "_moe_C::topk_softmax": ("moe_topk_gating_softmax", _topk_softmax),
    "_moe_C::moe_align_block_size": ("moe_align_block_size", _align),
    "_moe_C::moe_sum": ("moe_sum_reduce", _expert_sum),
    **_named("fused_moe", {
        f"{engine}::{way}place_fused_experts": _fused_experts for engine in ("vllm", "sglang") for way in ("in", "out")
    }),
    **_named("fp8_dynamic_per_token_quant", {
        "_C::dynamic_per_token_scaled_fp8_quant": _token_quant(x_at=1, out_at=0),
        "sgl_kernel::sgl_per_token_quant_fp8": _token_quant(x_at=0, out_at=1),
    }),
    **_named("per_token_group_quant_fp8", dict.fromkeys(
        ("_C::per_token_group_fp8_quant", "sgl_kernel::sgl_per_token_group_quant_fp8"), _group_quant
    )),
    **_named("block_scaled_mm", dict.fromkeys(
        ("aiter::gemm_a8w8_blockscale", "aiter::gemm_a8w8_blockscale_bpreshuffle"), _block_scaled_mm
    )),
    "_C_cache_ops::reshape_and_cache_flash": ("reshape_and_cache", _cache_write),
    **_named("attention_forward", {
        "aten::_scaled_dot_product_flash_attention": _encoder(heads=1, length=2, causal_at=4),
        "aten::_flash_attention_forward": _encoder(heads=2, length=1, causal_at=8),
        "flash_attn::_flash_attn_forward": _encoder(heads=2, length=1, causal_at=5),
    }),
    **_named("unified_attention", {
        **dict.fromkeys(("vllm::unified_attention", "vllm::unified_attention_with_output"), _unified),
        "aiter::mha_batch_prefill": _paged(q_at=0, cache_at=1),
        "sglang_profiler::attention_paged_attention_ragged": _paged(q_at=2, cache_at=3),
    }),
    "aiter::mla_decode_fwd": ("mla_decode_attention", _latent),
}  # fmt: skip
"""By op: the operator, and its arguments by those of a call."""
