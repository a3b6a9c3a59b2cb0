"""Attention of serving engines over a paged cache: how long each sequence is stands in no argument.

It is taken from the name of the step that the call ran in, or from what the user says (`Lengths`); otherwise the call
can't be modelled. Keys and values are read once for each of their heads, in the cache's own type. Captured graphs
run with padded batches: queries beyond those of the step count as nothing.
"""

from msgspec.structs import replace

from inferometer.operators.framework.attention import BSHD, Heads, attention_work, dense, either, varlen
from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.counting import matrix_dtype
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.framework.lengths import Context
from inferometer.operators.work import Product, Work

NO_LENGTHS = "how long its sequences are isn't recorded: neither in the step's name nor by --context"
WINDOW_UNKNOWN = "how much of each sequence its window holds isn't told by the sums in the step's name"
SEVERAL_TOKENS = "its sequences have several new tokens each: --context is of steps that decode"
_CACHE_TYPE = "the cache has the type of the new keys: its own isn't recorded"


def _paged(*, q_at: int, cache_at: tuple[int, int], starts_at: int) -> Model:
    """Of a query [T, H, D], caches [pages, page, heads, D] of keys and values, and where sequences begin, [B + 1]."""

    def work(call: OpCall) -> Work:
        q, keys, values = call.tensor(q_at), call.tensor(cache_at[0]), call.tensor(cache_at[1])
        starts = call.maybe_tensor(starts_at)
        if call.lengths.context is None and starts is not None and starts.numel - 1 < q.dims[0]:
            raise Unmodelled(NO_LENGTHS if call.lengths.each is None else SEVERAL_TOKENS)
        return cached_attention(call, q, keys, values, keys)

    return work


def _unified(call: OpCall) -> Work:
    """`q` [T, H, D], and k and v of the new tokens [T, heads, D]; the cache is seen where the call takes it apart."""
    q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
    cache = next((each.all_tensors[0] for each in call.inside if each.op == "aten::unbind" and each.all_tensors), None)
    found = cached_attention(call, q, k, v, cache or k)
    return found if cache else replace(found, assumes=(*found.assumes, _CACHE_TYPE))


def cached_attention(call: OpCall, q: Tensor, k: Tensor, v: Tensor, cache: Tensor) -> Work:
    """Of queries [T, H, D] over keys and values of which the last two dimensions count, in the cache's type.

    Raises:
        Unmodelled: How long the sequences are isn't known, or sizes don't fit.
    """
    context = context_seen(call, q)
    if len(q.dims) != 3 or len(k.dims) < 3 or q.dims[-1] != k.dims[-1]:
        raise Unmodelled(f"expected a query [T, H, D] and keys with heads, found {list(q.dims)} and {list(k.dims)}")
    heads = Heads(q, k, v, q.dims[1], k.dims[-2], q.dims[-1], v.dims[-1])
    queries = min(q.dims[0], context.queries)
    per_query = heads.query_heads * q.item_bytes
    per_key = heads.key_heads * (heads.head + heads.value_head) * cache.item_bytes
    read = queries * per_query * heads.head + context.keys * per_key
    return attention_work(call, heads, context.pairs, read, queries * per_query * heads.value_head, context.assumes)


def latent_attention(call: OpCall, q: Tensor, latents: Tensor) -> Work:
    """MLA's decode: q [T, H, 576] and a cache of latents [pages, page, 1, 576], whose first 512 are the values.

    Raises:
        Unmodelled: How long the sequences are isn't known, or sizes don't fit.
    """
    context = context_seen(call, q)
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


def _latent(call: OpCall) -> Work:
    return latent_attention(call, call.tensor(0), call.tensor(1))


_FA3 = either(
    7,
    dense(BSHD, causal_at=24, windows_at=25, from_end=True),
    varlen(causal_at=24, sequences_at=7, max_q_at=12, max_k_at=13, windows_at=25),
)
"""flash-attention 3 without a cache: its results, and the logs of the sums, are written."""


def _flash_attention_3(call: OpCall) -> Work:
    """q, k, v, and from 6 on the output, beginnings of sequences, tokens in use, greatest lengths and a page table.

    The causal flag is at 24, both sizes of the window after it. With a page table, or tokens in use, k and v are
    caches: how much of them is read isn't in the arguments.
    """
    if any(call.maybe_tensor(at) for at in (3, 4, 5)):
        raise Unmodelled("it takes new keys and values, or a second query: there is no model of that")
    if call.maybe_tensor(8) and call.maybe_tensor(7) is None:
        raise Unmodelled("its keys have sequences of their own, and its queries have none")
    if not any(call.maybe_tensor(at) for at in (10, 11, 14)):
        return _FA3(call)
    q, k, v = call.tensor(0), call.tensor(1), call.tensor(2)
    if len(q.dims) == 4:
        q = replace(q, dims=(q.dims[0] * q.dims[1], *q.dims[2:]), strides=None)
    if not call.value(24) and call.integer(12, 0) != 1:
        raise Unmodelled("it isn't causal, and sequences have several new tokens: which keys they see isn't known")
    if call.lengths.context is None and call.lengths.each is not None:
        new = call.tensor(0).dims[1] if len(call.tensor(0).dims) == 4 else call.integer(12, 0)
        if new != 1:
            raise Unmodelled(SEVERAL_TOKENS)
    left = call.integer(25, -1)
    windowed = call if left < 0 else replace(call, lengths=replace(call.lengths, window=left + 1))
    return cached_attention(windowed, q, k, v, k)


_ROPE = 64  # of a latent, what carries positions and is no value


def context_seen(call: OpCall, q: Tensor) -> Context:
    """What the queries [T, …] see.

    Raises:
        Unmodelled: That isn't known.
    """
    context = call.lengths.seen_by(q.dims[0] if q.dims else 0)
    if context is None:
        raise Unmodelled(NO_LENGTHS if call.lengths.context is None else WINDOW_UNKNOWN)
    return context


_UNIFIED = ("vllm::unified_attention_with_output", "vllm::unified_attention")
_MODELS = {
    **dict.fromkeys(_UNIFIED, _unified),
    "sglang_profiler::attention_paged_attention_ragged": _paged(q_at=2, cache_at=(3, 4), starts_at=5),
    "aiter::mha_batch_prefill": _paged(q_at=0, cache_at=(1, 2), starts_at=3),
    **dict.fromkeys(("aiter::mla_decode_fwd", "aiter::mla_decode_stage1_asm_fwd"), _latent),
    **dict.fromkeys(("flash_attn_3::fwd", "sgl_kernel::fwd"), _flash_attention_3),
}
FAMILY = OpFamily(
    name="serving attention",
    models=_MODELS,
    covering=frozenset(_UNIFIED),
    looks_inside=frozenset(_UNIFIED),
    needs_lengths=frozenset(_MODELS),
)
