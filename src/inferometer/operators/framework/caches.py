"""Rotary positions, and keys and values written into a cache, in serving engines.

Of a table of cosines and sines one row a token is read, of a cache nothing. Positions: the bindings of vLLM, SGLang,
FlashInfer and AITER. FLOPs of an element as the catalogue counts them.
"""

from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes
from inferometer.operators.framework.family import OpFamily
from inferometer.operators.work import Work

_WHOLE_HEADS = "whole heads turn: how large a head is isn't recorded"


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


def _rotary_by_ids(call: OpCall) -> Work:
    """q, k, their outputs, table [positions, rot], positions; at 9 values and at 10 and 11 caches, if it fills them.

    q and k are [T, H, D]; of [T, H D] the size of a head isn't known, and all of them counts as turned.
    """
    q, k, table, positions = (call.tensor(at) for at in (0, 1, 4, 5))
    if len(table.dims) != 2 or len(q.dims) < 2 or len(k.dims) != len(q.dims):
        raise Unmodelled(f"expected q, k and a table of rows, found {list(q.dims)}, {list(k.dims)}, {list(table.dims)}")
    head = q.dims[-1] if len(q.dims) > 2 else table.dims[-1]
    elements = sum(x.numel // (head or 1) * min(table.dims[-1], head) for x in (q, k))
    read = elements * q.item_bytes + positions.bytes + positions.numel * table.dims[-1] * table.item_bytes
    values, keys_kept, values_kept = (call.maybe_tensor(at) for at in (9, 10, 11))
    written = elements * q.item_bytes
    if values and keys_kept and values_kept:
        read += values.bytes + read_bytes([call.maybe_tensor(12)])
        written += k.numel * keys_kept.item_bytes + values.numel * values_kept.item_bytes
    return moved(read, written, vector=3 * elements, assumes=() if len(q.dims) > 2 else (_WHOLE_HEADS,))


def _norm_and_rotary(call: OpCall) -> Work:
    """q, k and v [T, heads D] in one, heads of each, size of a head, eps, two weights, table, order, positions."""
    qkv, table, positions = call.tensor(0), call.tensor(8), call.tensor(10)
    heads, head = call.integer(1) + call.integer(2), call.integer(4)
    elements = positions.numel * heads * head
    weights = read_bytes((call.tensor(6), call.tensor(7)))
    read = elements * qkv.item_bytes + weights + positions.bytes
    read += positions.numel * table.dims[-1] * table.item_bytes
    turned = positions.numel * heads * min(table.dims[-1], head)
    return moved(read, elements * qkv.item_bytes, vector=4 * elements + 3 * turned, special=positions.numel * heads)


def _rotary_of_two(call: OpCall) -> Work:
    """Outputs of both, q, k, cosines, sines, positions: AITER's."""
    outs, inputs, tables = ([call.tensor(at) for at in places] for places in ((0, 1), (2, 3), (4, 5)))
    positions = call.tensor(6)
    if [each.dims for each in outs] != [each.dims for each in inputs]:
        raise Unmodelled(f"expected outputs as large as q and k, found {[list(each.dims) for each in outs + inputs]}")
    rows = sum(positions.numel * table.dims[-1] * table.item_bytes for table in tables)
    read = read_bytes(inputs) + positions.bytes + rows
    return moved(read, read_bytes(outs), vector=3 * sum(each.numel for each in inputs))


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


def _latent_write(call: OpCall) -> Work:
    """Latents [T, R], keys with positions [T, p], cache, slots: a row of the cache for each slot is written."""
    latents, keys, cache, slots = (call.tensor(at) for at in range(4))
    tokens = latents.dims[0]
    kept = min(slots.numel, tokens)
    read = (latents.bytes + keys.bytes) * kept // (tokens or 1)
    return moved(read + slots.bytes, kept * cache.dims[-1] * cache.item_bytes)


def _append(call: OpCall) -> Work:
    """Keys, values [T, heads, D], sequence and place of each, caches of both: FlashInfer's."""
    k, v, sequences, places, keys_kept, values_kept = (call.tensor(at) for at in range(6))
    written = k.numel * keys_kept.item_bytes + v.numel * values_kept.item_bytes
    return moved(read_bytes((k, v, sequences, places)), written)


_TABLE_WRITES = (
    *("_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache", "sglang::store_cache"),
    *("aiter::reshape_and_cache_flash", "aiter::reshape_and_cache"),
)
FAMILY = OpFamily(
    name="positions and caches",
    models={
        **dict.fromkeys(("_C::rotary_embedding", "sgl_kernel::rotary_embedding"), _rotary),
        **{f"{library}::apply_rope_pos_ids_cos_sin_cache": _rotary_by_ids for library in ("sgl_kernel", "flashinfer")},
        "_C::fused_qk_norm_rope": _norm_and_rotary,
        "aiter::rope_cached_positions_2c_fwd_impl": _rotary_of_two,
        **dict.fromkeys(_TABLE_WRITES, _cache_write),
        **dict.fromkeys(("_C_cache_ops::concat_and_cache_mla", "aiter::concat_and_cache_mla"), _latent_write),
        "flashinfer::append_paged_kv_cache": _append,
        "vllm::unified_kv_cache_update": _kv_update,
    },
    covering=frozenset({"vllm::unified_kv_cache_update"}),
)
