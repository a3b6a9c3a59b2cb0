"""Element-wise kernels of serving engines: norms, rotary positions, activations, cache writes, quantising.

Outputs that are passed in are written and not read. Positions: vLLM's, SGLang's and AITER's bindings, as recorded in
real traces. FLOPs of an element as the catalogue counts them.
"""

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes, row_count
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


def _rms_norm_quant(call: OpCall) -> Work:
    """Output of 8 bits, x, weight, scale."""
    out, x = call.tensor(0), call.tensor(1)
    rows = row_count(x)
    return moved(read_bytes([x, call.tensor(2), call.maybe_tensor(3)]), out.bytes, vector=6 * x.numel, special=rows)


def _activation(vector: int) -> Model:
    """Output [T, d], x [T, 2 d]: an activation of one half times the other, one exponential an element."""

    def work(call: OpCall) -> Work:
        out, x = call.tensor(0), call.tensor(1)
        return moved(x.bytes, out.bytes, vector=vector * out.numel, special=out.numel)

    return work


def _quant(*, out_at: int = 0, x_at: int = 1, dynamic: bool) -> Model:
    """Output of 8 bits and x in this order or the other, scale: read, or written by a dynamic one."""

    def work(call: OpCall) -> Work:
        out, x = call.tensor(out_at), call.tensor(x_at)
        scale = call.maybe_tensor(2)
        size = scale.bytes if scale else 0
        return moved(x.bytes + (0 if dynamic else size), out.bytes + (size if dynamic else 0), vector=2 * x.numel)

    return work


def _rotary(call: OpCall) -> Work:
    """Positions [T], q, k, head size, table of cosines and sines [positions, rot], order of halves.

    `rot` elements of each head are rotated in place, three FLOPs each; of the table one row per token is read.
    """
    positions, q, k, table = call.tensor(0), call.tensor(1), call.maybe_tensor(2), call.tensor(4)
    head = call.integer(3)
    rotated = table.dims[-1] if len(table.dims) == 2 else 0
    if not rotated or not head:
        raise Unmodelled("its head size, or the size of its table, isn't recorded")
    elements = sum(x.numel // head * min(rotated, head) for x in (q, k) if x is not None)
    moved_bytes = elements * q.item_bytes
    rows = positions.numel * rotated * table.item_bytes
    return moved(positions.bytes + moved_bytes + rows, moved_bytes, vector=3 * elements)


def _cache_write(call: OpCall) -> Work:
    """k, v [T, …], caches of both, slots: keys and values of tokens with a slot are read, and written in their type.

    k and v may be padded, with fewer slots than T.
    """
    k, v, key_cache, value_cache, slots = (call.tensor(at) for at in range(5))
    tokens = k.dims[0]
    kept = min(slots.numel, tokens)
    written = (k.numel * key_cache.item_bytes + v.numel * value_cache.item_bytes) * kept // (tokens or 1)
    return moved((k.bytes + v.bytes) * kept // (tokens or 1) + slots.bytes, written)


def _kv_update(call: OpCall) -> Work:
    """Keys and values of the new tokens; the cache isn't an argument: it has their type, or one of 8 bits."""
    k, v = call.tensor(0), call.tensor(1)
    return moved(
        k.bytes + v.bytes, k.numel + v.numel, assumes=("the cache has 8 bits an element: its type isn't recorded",)
    )


def _topk_softmax(call: OpCall) -> Work:
    """Weights [T, k], ids, places, router's logits [T, E]."""
    weights, ids, places, logits = (call.tensor(at) for at in range(4))
    return moved(logits.bytes, weights.bytes + ids.bytes + places.bytes, vector=4 * logits.numel, special=logits.numel)


def _top_k(call: OpCall) -> Work:
    """Router's logits [T, E], k: values, and indices of 2 bytes."""
    logits = call.tensor(0)
    rows = row_count(logits)
    k = call.integer(1)
    return moved(logits.bytes, rows * k * (logits.item_bytes + 2), vector=logits.numel)


def _sort_tokens(call: OpCall) -> Work:
    """Weights and ids [T, k] of the chosen experts, sorted by expert: both are read, and written in another order."""
    weights, ids = call.tensor(0), call.tensor(1)
    return moved(weights.bytes + ids.bytes, weights.bytes + ids.bytes)


def _align(call: OpCall) -> Work:
    """Ids, experts, block, sorted ids, experts of blocks, padded count."""
    ids = call.tensor(0)
    return moved(ids.bytes, ids.numel * 4)


def _expert_sum(call: OpCall) -> Work:
    """Results [T, k, H] of the experts, output [T, H]."""
    x: Tensor = call.tensor(0)
    out = call.tensor(1)
    return moved(x.bytes, out.bytes, vector=x.numel)


FAMILY = OpFamily(
    name="serving kernels",
    models={
        **dict.fromkeys(("_C::rms_norm", "sgl_kernel::rmsnorm", "aiter::rmsnorm"), _rms_norm(1, 2, 0)),
        "aiter::rms_norm": _rms_norm(0, 1, None),
        **dict.fromkeys(("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm"), _add_rms_norm_in_place),
        **dict.fromkeys(("aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add_ck"), _add_rms_norm),
        "_C::rms_norm_static_fp8_quant": _rms_norm_quant,
        **{
            f"{library}::{name}_and_mul": _activation(4)
            for library in ("_C", "sgl_kernel", "aiter")
            for name in ("silu", "gelu", "gelu_tanh")
        },
        "_C::static_scaled_fp8_quant": _quant(dynamic=False),
        **dict.fromkeys(
            ("_C::dynamic_scaled_fp8_quant", "_C::dynamic_per_token_scaled_fp8_quant"), _quant(dynamic=True)
        ),
        "sgl_kernel::sgl_per_token_quant_fp8": _quant(out_at=1, x_at=0, dynamic=True),
        **dict.fromkeys(("_C::rotary_embedding", "sgl_kernel::rotary_embedding"), _rotary),
        **dict.fromkeys(("_C_cache_ops::reshape_and_cache_flash", "sglang::store_cache"), _cache_write),
        "_C_cache_ops::reshape_and_cache": _cache_write,
        "vllm::unified_kv_cache_update": _kv_update,
        "_moe_C::topk_softmax": _topk_softmax,
        "_moe_C::moe_sum": _expert_sum,
        **dict.fromkeys(("_moe_C::moe_align_block_size", "sgl_kernel::moe_align_block_size"), _align),
        "TopK": _top_k,
        "SortTokens": _sort_tokens,
    },
    covering=frozenset({"vllm::unified_kv_cache_update"}),
)
