"""Attention over a paged cache by the kernels of vLLM, AITER, FlashInfer and FlashMLA, where heads stand elsewhere.

vLLM's first kernels and AITER's split the size of a head in the cache; FlashInfer's have a layout among their values,
and names that go on with the types that they were built for.
How long sequences are stands in no argument, as in `serving_attention`. Positions: the bindings of these projects.
"""

from typing import NamedTuple

from msgspec.structs import replace

from inferometer.operators.framework.attention import FEWEST_PAIRS, Heads, Sight, attention_work, fewest_pairs
from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.framework.serving_attention import (
    NO_LENGTHS,
    SEVERAL_TOKENS,
    cached_attention,
    context_seen,
    latent_attention,
)
from inferometer.operators.work import Work

_MIXED = "its step has sequences with several new tokens: which of them it serves isn't recorded"


def _decode(*, q_at: int, heads_at: int | None) -> Model:
    """Q [B, H, D], then caches of keys and values; heads of these as a value, or by the cache's second dimension."""

    def work(call: OpCall) -> Work:
        q, cache = call.tensor(q_at), call.tensor(q_at + 1)
        heads = cache.dims[1] if heads_at is None else call.integer(heads_at)
        return _of_one_token(call, q, Tensor((1, heads, q.dims[-1]), cache.dtype))

    return work


def _of_one_token(call: OpCall, q: Tensor, kept: Tensor) -> Work:
    """Of queries that are one token of a sequence each; `kept` has the heads of keys and values, and their type."""
    context = context_seen(call, q)
    if context.pairs != context.keys:
        raise Unmodelled(_MIXED)
    return cached_attention(call, q, kept, kept, kept)


class _Values(NamedTuple):
    """Numbers after FlashInfer's output: the mask (of prefills: 0 none, 1 causal), the layout, keys to the left."""

    mask: int | None
    layout: int | None
    left: int | None


def _values(call: OpCall, after: int, *, has_mask: bool) -> _Values:
    given = (call.value(at) for at in range(after, len(call.inputs)))
    numbers = [each for each in given if type(each) is int]
    mask, layout, left = ([] if has_mask else [None]) + (numbers + [None] * 3)[: 3 if has_mask else 2]
    return _Values(mask, layout, left)


def _query_at(call: OpCall) -> int:
    """Where q [T, H, D] stands, and caches of the same head behind it: after workspaces and a plan, if there are any.

    Raises:
        Unmodelled: Nowhere.
    """
    for at in range(len(call.inputs) - 2):
        q, keys, values = (call.maybe_tensor(at + step) for step in range(3))
        if q and keys and values and len(q.dims) == 3 and _are_caches(keys, values, q.dims[-1]):
            return at
    raise Unmodelled("its query and its caches can't be told apart")


def _are_caches(keys: Tensor, values: Tensor, head: int) -> bool:
    return keys.dims[-1:] == (head,) and len(keys.dims) in (3, 4) and keys.dims[:-1] == values.dims[:-1]


def _flashinfer_decode(call: OpCall) -> Work:
    """q, caches, beginnings, pages, last pages, output: each sequence has one query."""
    at = _query_at(call)
    values = _values(call, at + 7, has_mask=False)
    kept = _kept(call.tensor(at + 1), values.layout)
    return _of_one_token(_windowed(call, values.left), call.tensor(at), kept)


def _flashinfer_prefill(call: OpCall) -> Work:
    """q, caches, beginnings of queries and of keys, pages, last pages, output."""
    at = _query_at(call)
    q, starts, values = call.tensor(at), call.tensor(at + 3), _values(call, at + 8, has_mask=True)
    kept = _kept(call.tensor(at + 1), values.layout)
    if values.mask != 1:
        raise Unmodelled("it isn't causal: the step's name doesn't tell what its queries see")
    if call.lengths.context is None and starts.numel - 1 < q.dims[0]:
        raise Unmodelled(NO_LENGTHS if call.lengths.each is None else SEVERAL_TOKENS)
    if call.lengths.context is not None and call.lengths.context.queries > q.dims[0]:
        raise Unmodelled(_MIXED)
    return cached_attention(_windowed(call, values.left), q, kept, kept, kept)


def _windowed(call: OpCall, left: int | None) -> OpCall:
    """The call with the window that it says itself: its own key and `left` before it."""
    if left is None or left < 0:
        return call
    return replace(call, lengths=replace(call.lengths, window=left + 1))


def _kept(keys: Tensor, layout: int | None) -> Tensor:
    """Heads and their size of a cache [slots, heads, D], or of pages: layout 0 has tokens first, 1 has heads first."""
    if len(keys.dims) == 4 and layout not in (0, 1):
        raise Unmodelled("how its cache lies isn't recorded")
    heads = keys.dims[2] if len(keys.dims) == 4 and layout == 0 else keys.dims[1]
    return Tensor((1, heads, keys.dims[-1]), keys.dtype)


def _ragged(call: OpCall) -> Work:
    """Q [T, H, D], k, v [K, heads, D], beginnings of both, output: without a cache."""
    at = _query_at(call)
    q, k, v = (call.tensor(at + step) for step in range(3))
    values = _values(call, at + 6, has_mask=True)
    if values.mask not in (0, 1) or len(k.dims) != 3:
        raise Unmodelled("which keys its queries see isn't recorded")
    left = values.left if values.left is not None and values.left >= 0 else None
    sequences, sight = max(1, call.tensor(at + 3).numel - 1), Sight(left, 0 if values.mask else None)
    queries, keys = q.dims[0], k.dims[0]
    pairs = fewest_pairs(queries, keys, sequences, sight)
    heads = Heads(q, k, v, q.dims[1], k.dims[1], q.dims[2], v.dims[2])
    seen = k.bytes + v.bytes if left is None else 0  # of keys outside the window nothing needs to be read
    written = queries * q.dims[1] * v.dims[2] * q.item_bytes
    assumes = () if sequences == 1 else (FEWEST_PAIRS,)
    return attention_work(call, heads, pairs, q.bytes + seen, written, assumes)


def _prefill(call: OpCall) -> Work:
    """Over a cache, or not, as the name ends."""
    return (_ragged if call.op.endswith("_ragged_run") or "_ragged_" in call.op else _flashinfer_prefill)(call)


def _two_parts(*, q_at: int) -> Model:
    """MLA's decode with q in two parts, [B, H, R] and [B, H, p], and then the latents [pages, page, R + p]."""

    def work(call: OpCall) -> Work:
        q, turned, latents = (call.tensor(q_at + step) for step in range(3))
        if len(q.dims) != 3 or q.dims[:-1] != turned.dims[:-1]:
            raise Unmodelled(f"expected both parts of q, found {list(q.dims)} and {list(turned.dims)}")
        return latent_attention(call, Tensor((*q.dims[:-1], q.dims[-1] + turned.dims[-1]), q.dtype), latents)

    return work


def _of_sequences(call: OpCall) -> Work:
    """FlashMLA: q [B, S, H, R + p], latents."""
    q = call.tensor(0)
    if len(q.dims) != 4:
        raise Unmodelled(f"expected q [B, S, H, D], found {list(q.dims)}")
    if call.lengths.context is None and q.dims[1] != 1:
        raise Unmodelled(SEVERAL_TOKENS)
    joined = replace(q, dims=(q.dims[0] * q.dims[1], *q.dims[2:]), strides=None)
    return latent_attention(call, joined, call.tensor(1))


_MODELS = {
    "_C::paged_attention_v1": _decode(q_at=1, heads_at=4),
    **dict.fromkeys(
        ("_C::paged_attention_v2", "_rocm_C::paged_attention", "aiter::paged_attention_rocm"),
        _decode(q_at=4, heads_at=7),
    ),
    "aiter::pa_fwd_asm": _decode(q_at=0, heads_at=None),
    "_C::sm100_cutlass_mla_decode": _two_parts(q_at=2),
    "sgl_kernel::cutlass_mla_decode": _two_parts(q_at=1),
    "_flashmla_C::fwd_kvcache_mla": _of_sequences,
}
_PREFIXES = {"flashinfer::batch_decode_with_": _flashinfer_decode, "flashinfer::batch_prefill_with_": _prefill}
FAMILY = OpFamily(
    name="paged attention",
    models=_MODELS,
    prefixes=_PREFIXES,
    needs_lengths=frozenset({*_MODELS, *_PREFIXES}),
)
