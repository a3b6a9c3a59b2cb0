"""Attention of serving engines over a paged cache: how long each sequence is stands in no argument.

It is taken from the name of the step that the call ran in, or from what the user says (`Lengths`); otherwise the call
can't be modelled. Keys and values are read once for each of their heads, in the cache's own type. Captured graphs
run with padded batches: queries beyond those of the step count as nothing.
"""

from dataclasses import replace

from inferometer.operators.framework.attention import Heads, attention_work
from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import matrix_dtype
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.framework.lengths import Context
from inferometer.operators.work import Product, Work

NO_LENGTHS = "how long its sequences are isn't recorded: neither in the step's name nor by --context"
WINDOW_UNKNOWN = "how much of each sequence its window holds isn't told by the sums in the step's name"
_SEVERAL_TOKENS = "its sequences have several new tokens each: --context is of steps that decode"
_CACHE_TYPE = "the cache has the type of the new keys: its own isn't recorded"


def _paged(*, q_at: int, cache_at: tuple[int, int], starts_at: int) -> Model:
    """Of a query [T, H, D], caches [pages, page, heads, D] of keys and values, and where sequences begin, [B + 1]."""

    def work(call: OpCall) -> Work:
        q, keys, values = call.tensor(q_at), call.tensor(cache_at[0]), call.tensor(cache_at[1])
        starts = call.maybe_tensor(starts_at)
        if call.lengths.context is None and starts is not None and starts.numel - 1 < q.dims[0]:
            raise Unmodelled(NO_LENGTHS if call.lengths.each is None else _SEVERAL_TOKENS)
        return _cached(call, q, keys, values, keys)

    return work


def _unified(call: OpCall) -> Work:
    """`q` [T, H, D], and k and v of the new tokens [T, heads, D]; the cache is seen where the call takes it apart."""
    q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
    cache = next((each.all_tensors[0] for each in call.inside if each.op == "aten::unbind" and each.all_tensors), None)
    found = _cached(call, q, k, v, cache or k)
    return found if cache else replace(found, assumes=(*found.assumes, _CACHE_TYPE))


def _cached(call: OpCall, q: Tensor, k: Tensor, v: Tensor, cache: Tensor) -> Work:
    context = _seen(call, q)
    if len(q.dims) != 3 or len(k.dims) < 3 or q.dims[-1] != k.dims[-1]:
        raise Unmodelled(f"expected a query [T, H, D] and keys with heads, found {list(q.dims)} and {list(k.dims)}")
    heads = Heads(q, k, v, q.dims[1], k.dims[-2], q.dims[-1], v.dims[-1])
    queries = min(q.dims[0], context.queries)
    per_query = heads.query_heads * q.item_bytes
    per_key = heads.key_heads * (heads.head + heads.value_head) * cache.item_bytes
    read = queries * per_query * heads.head + context.keys * per_key
    return attention_work(call, heads, context.pairs, read, queries * per_query * heads.value_head, context.assumes)


def _latent(call: OpCall) -> Work:
    """MLA's decode: q [T, H, 576] and a cache of latents [pages, page, 1, 576], whose first 512 are the values."""
    q, latents = call.tensor(0), call.tensor(1)
    context = _seen(call, q)
    if len(q.dims) != 3 or latents.dims[-1] != q.dims[-1]:
        raise Unmodelled(
            f"expected q [T, H, D] and latents of the same size, found {list(q.dims)}, {list(latents.dims)}"
        )
    head, value = q.dims[-1], q.dims[-1] - _ROPE
    dtype, assumes = matrix_dtype(call, q, latents)
    pairs = context.pairs * q.dims[1]
    queries = min(q.dims[0], context.queries) * q.dims[1] * q.item_bytes
    return Work(
        dtype=dtype,
        products=(Product(2 * pairs * head), Product(2 * pairs * value)),
        vector_flops=4 * pairs,
        special_ops=pairs,
        read_bytes=queries * head + context.keys * head * latents.item_bytes,
        written_bytes=queries * value,
        assumes=(*context.assumes, *assumes),
    )


_ROPE = 64  # of a latent, what carries positions and is no value


def _seen(call: OpCall, q: Tensor) -> Context:
    context = call.lengths.seen_by(q.dims[0] if q.dims else 0)
    if context is None:
        raise Unmodelled(NO_LENGTHS if call.lengths.context is None else WINDOW_UNKNOWN)
    return context


_UNIFIED = ("vllm::unified_attention_with_output", "vllm::unified_attention")
_MODELS = {
    **dict.fromkeys(_UNIFIED, _unified),
    "sglang_profiler::attention_paged_attention_ragged": _paged(q_at=2, cache_at=(3, 4), starts_at=5),
    "aiter::mha_batch_prefill": _paged(q_at=0, cache_at=(1, 2), starts_at=3),
    "aiter::mla_decode_fwd": _latent,
}
FAMILY = OpFamily(
    name="serving attention",
    models=_MODELS,
    covering=frozenset(_UNIFIED),
    looks_inside=frozenset(_UNIFIED),
    needs_lengths=frozenset(_MODELS),
)
