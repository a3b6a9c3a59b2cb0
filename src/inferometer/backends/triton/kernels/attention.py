# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Causal attention with grouped queries, of a prompt and of one new token, over keys that lie anywhere in memory.

The queries of all heads that share keys are the rows of one matrix, token by token, so each key is read once for them.
A program takes some rows and goes along the keys that any of them sees; only tiles at the ends of that need a mask.
Where rows are too few for a GPU, the keys are split among programs, and a second kernel joins what they found.

B sequences, T queries, S keys, Hq query heads, Hk key heads, G = Hq / Hk, D head size. The queries are the last T of
the S positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._flash import LOG2_E, absorb, empty, load_tile
from inferometer.backends.triton.kernels._launching import interpreted, is_amd, on_device_of
from inferometer.backends.triton.kernels._rounding import rounded

LARGEST_HEAD = 256
MOST_SPLITS = 32
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Tile:
    """What a program takes at once: rows of queries, keys of its head."""

    rows: int
    keys: int
    warps: int
    stages: int


_FEW_ROWS = 16  # the least that matrix instructions take
_INTERPRETED = Tile(64, 128, warps=4, stages=1)
_LARGE_SHARED_BYTES = 200 * 1024

# By the largest head size. None spills at the first two, as compiled by Triton 3.7; none was tuned on a GPU.
_NARROW: Mapping[str, Mapping[int, Tile]] = {
    "large": {64: Tile(128, 64, 8, 3), 128: Tile(128, 64, 8, 3), 256: Tile(128, 32, 8, 3)},
    "small": {64: Tile(128, 64, 8, 3), 128: Tile(128, 32, 8, 2), 256: Tile(64, 32, 8, 2)},
    "amd": {64: Tile(128, 64, 4, 2), 128: Tile(128, 32, 4, 2), 256: Tile(64, 32, 4, 1)},
}
"""Tiles for 16-bit dtypes, by the kind of GPU: NVIDIA's with much or little shared memory, AMD's."""

_NARROW_FEW: Mapping[str, Mapping[int, Tile]] = {
    "large": {64: Tile(16, 128, 4, 3), 128: Tile(16, 64, 4, 3), 256: Tile(16, 64, 4, 3)},
    "small": {64: Tile(16, 128, 4, 2), 128: Tile(16, 64, 4, 2), 256: Tile(16, 32, 4, 2)},
    "amd": {64: Tile(16, 64, 4, 2), 128: Tile(16, 64, 4, 1), 256: Tile(16, 32, 4, 1)},
}
"""The same for few rows, as in decoding."""

_WIDE: Mapping[int, Tile] = {64: Tile(32, 32, 4, 1), 128: Tile(32, 16, 8, 1), 256: Tile(16, 16, 4, 1)}
"""Tiles for float32, which is multiplied as such, never as TF32: without matrix instructions on NVIDIA's GPUs."""


@triton.jit
def _along_keys(
    q, k, v, begin, end, position, S, k_s, k_d, v_s, v_d, window, scale, softcap, largest, total, values,
    MASKED: tl.constexpr, WINDOWED: tl.constexpr, CAPPED: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
    KEYS: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """The state after the tiles from `begin` until before `end`."""
    key, column = tl.arange(0, KEYS), tl.arange(0, BLOCK_D)
    k_offset = column[:, None] * k_d + key[None, :] * k_s
    v_offset = key[:, None] * v_s + column[None, :] * v_d
    for first in range(begin, end, KEYS):
        k_at = k + tl.cast(first, tl.int64) * k_s + k_offset
        v_at = v + tl.cast(first, tl.int64) * v_s + v_offset
        there = first + key < S
        seen = first + key[None, :] <= position[:, None]
        if WINDOWED:
            seen = seen & (first + key[None, :] > position[:, None] - window)
        inside = column < D
        k_tile = load_tile(k_at, inside[:, None] & there[None, :], MASKED or D != BLOCK_D)
        v_tile = load_tile(v_at, inside[None, :] & there[:, None], MASKED or D != BLOCK_D)
        largest, total, values = absorb(
            q, k_tile, v_tile, seen, largest, total, values, scale, softcap, MASKED, CAPPED, INTERPRETED
        )
    return largest, total, values


@triton.jit(do_not_specialize=["T", "S", "chunk", "splits", "window"])
def attend_rows(
    q, k, v, out, part_largest, part_total, part_values, T, S, chunk, splits,
    q_b, q_h, q_t, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d, window, scale, softcap,
    GROUP: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    WINDOWED: tl.constexpr, CAPPED: tl.constexpr, SPLIT: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Fills `out`; where SPLIT, the three tables of parts. Rows that see most come first, as they take longest."""
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    batch = (tl.program_id(2) // splits).to(tl.int64)
    row, column = tile * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK_D)
    query, member = row // GROUP, row % GROUP
    inside = (query < T)[:, None] & (column < D)[None, :]
    q += batch * q_b + head * GROUP * q_h
    q_at = q + member.to(tl.int64)[:, None] * q_h + query.to(tl.int64)[:, None] * q_t + column[None, :] * q_d
    q_tile = tl.load(q_at, mask=inside, other=0.0)

    position = tl.minimum(S - T + query, S - 1)  # rows beyond the last are like it
    lowest = S - T + tile * ROWS // GROUP
    highest = tl.minimum(S - T + (tile * ROWS + ROWS - 1) // GROUP, S - 1)
    begin, end = 0, highest + 1
    if WINDOWED:
        begin = tl.maximum(lowest - window + 1, 0) // KEYS * KEYS
    if SPLIT:
        begin += tl.program_id(2) % splits * chunk
        end = tl.minimum(end, begin + chunk)
    all_from, all_until = begin, (lowest + 1) // KEYS * KEYS  # keys between these are seen by all rows

    k += batch * k_b + head * k_h
    v += batch * v_b + head * v_h
    largest, total, values = empty(ROWS, BLOCK_D)
    if WINDOWED:
        all_from = tl.maximum(tl.cdiv(tl.maximum(highest - window + 1, 0), KEYS) * KEYS, begin)
        largest, total, values = _along_keys(
            q_tile, k, v, begin, tl.minimum(all_from, end), position, S, k_s, k_d, v_s, v_d, window, scale, softcap,
            largest, total, values, True, WINDOWED, CAPPED, D, BLOCK_D, KEYS, INTERPRETED,
        )  # fmt: skip
    largest, total, values = _along_keys(
        q_tile, k, v, all_from, tl.minimum(all_until, end), position, S, k_s, k_d, v_s, v_d, window, scale, softcap,
        largest, total, values, False, WINDOWED, CAPPED, D, BLOCK_D, KEYS, INTERPRETED,
    )  # fmt: skip
    largest, total, values = _along_keys(
        q_tile, k, v, tl.maximum(all_from, all_until), end, position, S, k_s, k_d, v_s, v_d, window, scale, softcap,
        largest, total, values, True, WINDOWED, CAPPED, D, BLOCK_D, KEYS, INTERPRETED,
    )  # fmt: skip

    place = (batch * T + query) * (tl.num_programs(1) * GROUP) + head * GROUP + member
    if SPLIT:
        rows = tl.num_programs(2) // splits * T.to(tl.int64) * (tl.num_programs(1) * GROUP)
        place += tl.program_id(2) % splits * rows
        tl.store(part_largest + place, largest, mask=query < T)
        tl.store(part_total + place, total, mask=query < T)
        tl.store(part_values + place[:, None] * D + column[None, :], values, mask=inside)
    else:
        answer = rounded(values / total[:, None], out.dtype.element_ty, INTERPRETED)
        tl.store(out + place[:, None] * D + column[None, :], answer, mask=inside)


@triton.jit(do_not_specialize=["rows", "splits"])
def join_parts(
    part_largest, part_total, part_values, out, rows, splits,
    D: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """One row of `out` from those of all parts. A part in which nothing was seen weighs nothing."""
    row, part, column = tl.program_id(0).to(tl.int64), tl.arange(0, SPLITS), tl.arange(0, BLOCK_D)
    there = part < splits
    at = part * rows.to(tl.int64) + row
    largest = tl.load(part_largest + at, mask=there, other=-1e30)
    total = tl.load(part_total + at, mask=there, other=0.0)
    values = tl.load(
        part_values + at[:, None] * D + column[None, :], mask=there[:, None] & (column < D)[None, :], other=0.0
    )
    weight = tl.exp2(largest - tl.max(largest, 0))
    answer = tl.sum(values * weight[:, None], 0) / tl.sum(total * weight, 0)
    tl.store(out + row * D + column, rounded(answer, out.dtype.element_ty, INTERPRETED), mask=column < D)


def attention_prefill(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, window: int | None = None, softcap: float | None = None
) -> Tensor:
    """A new, dense [B, T, Hq, D] of q [B, Hq, T, D], k and v [B, Hk, S, D].

    A query sees the last `window` keys up to its own. Scores are q times k times `scale`, capped as
    softcap * tanh(score / softcap); softmax in float32. Any distances in memory will do.
    """
    return attend(q, k, v, scale=scale, window=window, softcap=softcap)


def attention_decode(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, window: int | None = None, softcap: float | None = None
) -> Tensor:
    """The same for T = 1."""
    return attend(q, k, v, scale=scale, window=window, softcap=softcap)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float,
    window: int | None,
    softcap: float | None,
    tile: Tile | None = None,
    splits: int | None = None,
) -> Tensor:
    """Both. `tile` and `splits`, at most `MOST_SPLITS`, take the place of those chosen by size."""
    (B, Hq, T, D), (_, Hk, S, _) = q.shape, k.shape
    group = Hq // Hk
    tile = tile or choose_tile(T * group, D, q.dtype)
    row_tiles = ceil(T * group / tile.rows)
    reach = S if window is None else min(S, window + T - 1 + tile.keys)  # keys that a program goes along, at most
    key_tiles = ceil(reach / tile.keys)
    splits = splits or _choose_splits(row_tiles * Hk * B, key_tiles, q)
    chunk = ceil(key_tiles / splits) * tile.keys
    out = torch.empty(B, T, Hq, D, dtype=q.dtype, device=q.device)
    parts = _parts(splits, out) if splits > 1 else (out, out, out)
    powers = (scale * LOG2_E, 0.0) if softcap is None else (scale / softcap, softcap * LOG2_E)
    flags = {"D": D, "BLOCK_D": block_of(D), "INTERPRETED": interpreted(attend_rows)}
    with on_device_of(q):
        attend_rows[(row_tiles, Hk, B * splits)](
            q, k, v, out, *parts, T, S, chunk, splits, *q.stride(), *k.stride(), *v.stride(), window or 0, *powers,
            GROUP=group, ROWS=tile.rows, KEYS=tile.keys, WINDOWED=window is not None, CAPPED=softcap is not None,
            SPLIT=splits > 1, **flags, num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
        if splits > 1:
            rows = B * T * Hq
            join_parts[(rows,)](*parts, out, rows, splits, SPLITS=MOST_SPLITS, **flags)
    return out


def _parts(splits: int, out_BTHqD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest score and the sum of weights of each row of each part, and its weighted values."""
    shape = (splits, *out_BTHqD.shape)
    largest, total = torch.empty(2, *shape[:-1], dtype=torch.float32, device=out_BTHqD.device)
    return largest, total, torch.empty(shape, dtype=torch.float32, device=out_BTHqD.device)


def choose_tile(rows: int, D: int, dtype: torch.dtype) -> Tile:
    """By the rows of queries that share keys, the head size and the dtype."""
    if interpreted(attend_rows):
        tile = _INTERPRETED
    elif dtype == torch.float32:
        tile = _smallest(_WIDE, D)
    else:
        tile = _smallest((_NARROW_FEW if rows <= _FEW_ROWS else _NARROW)[_kind_of_gpu()], D)
    return replace(tile, rows=min(tile.rows, max(_FEW_ROWS, int(triton.next_power_of_2(rows)))))


def _smallest(tiles: Mapping[int, Tile], D: int) -> Tile:
    return next(tile for largest, tile in tiles.items() if largest >= D)


@cache
def _kind_of_gpu() -> str:
    """The kind of the current GPU; all are taken for alike."""
    if is_amd():
        return "amd"
    driver = triton.runtime.driver.active
    shared = driver.utils.get_device_properties(driver.get_current_device())["max_shared_mem"]
    return "large" if shared >= _LARGE_SHARED_BYTES else "small"


def block_of(D: int) -> int:
    """Elements of a head as a program holds them: a power of 2 that a matrix instruction takes."""
    return max(16, int(triton.next_power_of_2(D)))


def _choose_splits(programs: int, key_tiles: int, q: Tensor) -> int:
    """So many that all multiprocessors have work, and each program two tiles at least."""
    return max(1, min(MOST_SPLITS, key_tiles // 2, ceil(2 * _multiprocessors(q.device.index) / programs)))


@cache
def _multiprocessors(index: int | None) -> int:
    """Of a GPU; interpreted, one program runs at a time."""
    if interpreted(attend_rows):
        return 1
    return int(torch.cuda.get_device_properties(index or 0).multi_processor_count)


def refuses_prefill(q: Tensor, k: Tensor, v: Tensor, *, scale: float, **settings: object) -> str | None:
    """Why these aren't for `attention_prefill`; None where they are."""
    if q.dtype not in _DTYPES or k.dtype != q.dtype or v.dtype != q.dtype:
        return f"dtypes {', '.join(str(each.dtype).removeprefix('torch.') for each in (q, k, v))}"
    if q.shape[3] > LARGEST_HEAD:
        return f"head size {q.shape[3]}, above {LARGEST_HEAD}"
    if k.shape != v.shape or k.shape[3] != q.shape[3]:
        return f"shapes {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}"
    if q.shape[1] % k.shape[1]:
        return f"{q.shape[1]} query heads for {k.shape[1]} of keys"
    if not 0 < q.shape[2] <= k.shape[2] or not q.shape[0]:
        return f"{q.shape[2]} queries of {k.shape[2]} keys"
    if not q.is_cuda and not interpreted(attend_rows):
        return f"device {q.device}: set TRITON_INTERPRET=1 for a CPU"
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return "a gradient is wanted"
    return None


def refuses_decode(q: Tensor, k: Tensor, v: Tensor, *, scale: float, **settings: object) -> str | None:
    """Why these aren't for `attention_decode`; None where they are."""
    return f"{q.shape[2]} queries, not 1" if q.shape[2] != 1 else refuses_prefill(q, k, v, scale=scale, **settings)
