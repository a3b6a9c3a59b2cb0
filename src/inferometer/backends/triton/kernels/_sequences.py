# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Attention of packed sequences, causal or not, over packed keys or over those of a paged cache.

As in `attention.py`, the query heads that share keys are rows of one matrix. Programs are for tiles of rows: no
sequence needs more of them than its place among all rows leaves to it, so no length is asked of the device; a program
finds its sequence by halving, and a few find nothing to do. Keys aren't split: one program goes along all of a
sequence, which leaves much of a GPU idle where few sequences decode over many keys.

T queries, n sequences, Hq query heads, Hk key heads, G = Hq / Hk, D head size, L keys of a sequence.
"""

from dataclasses import replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from inferometer.backends.triton.kernels._flash import LOG2_E, absorb, empty, load_tile
from inferometer.backends.triton.kernels._launching import interpreted, on_device_of
from inferometer.backends.triton.kernels._rounding import rounded
from inferometer.backends.triton.kernels.attention import block_of, choose_tile

_WHOLE_PAGES = (16, 32, 64)
"""Sizes of a page that is a tile where its keys lie side by side: then they are loaded so."""


@triton.jit
def _sequence_of(starts_q, program, n, GROUP: tl.constexpr, ROWS: tl.constexpr):
    """The last sequence whose first program isn't after this one."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tl.load(starts_q + middle) * GROUP // ROWS + middle <= program:
            low = middle
        else:
            high = middle - 1
    return low


@triton.jit
def _along_keys(
    q, k, v, table, begin, end, last, L, k_page, k_s, k_run, k_d, v_page, v_s, v_d, scale, largest, total, values,
    MASKED: tl.constexpr, PAGE: tl.constexpr, RUN: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
    KEYS: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """The state after the tiles from `begin` until before `end`. A row sees the keys up to its `last`."""
    column = tl.arange(0, BLOCK_D)
    k_column, v_column = column * k_d, column * v_d
    if RUN < D:
        k_column = column // RUN * k_run + column % RUN * k_d
    for first in range(begin, end, KEYS):
        key = first + tl.arange(0, KEYS)
        there = key < L
        k_key, v_key = key.to(tl.int64) * k_s, key.to(tl.int64) * v_s
        if PAGE == KEYS:
            page = tl.load(table + first // PAGE).to(tl.int64)
            k_key, v_key = page * k_page + tl.arange(0, KEYS) * k_s, page * v_page + tl.arange(0, KEYS) * v_s
        elif PAGE > 0:
            page = load_tile(table + key // PAGE, there, MASKED).to(tl.int64)
            k_key, v_key = page * k_page + key % PAGE * k_s, page * v_page + key % PAGE * v_s
        inside = column < D
        k_at, v_at = k + k_column[:, None] + k_key[None, :], v + v_key[:, None] + v_column[None, :]
        k_tile = load_tile(k_at, inside[:, None] & there[None, :], MASKED or D != BLOCK_D)
        v_tile = load_tile(v_at, inside[None, :] & there[:, None], MASKED or D != BLOCK_D)
        seen = key[None, :] <= last[:, None]
        largest, total, values = absorb(
            q, k_tile, v_tile, seen, largest, total, values, scale, 0.0, MASKED, False, INTERPRETED
        )
    return largest, total, values


@triton.jit(do_not_specialize=["n", "table_step"])
def attend_sequences(
    q, k, v, out, starts_q, lengths, table, n, q_t, q_h, q_d, k_page, k_h, k_s, k_run, k_d, v_page, v_h, v_s, v_d,
    table_step, scale,
    GROUP: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr,
    CAUSAL: tl.constexpr, PAGE: tl.constexpr, RUN: tl.constexpr, EIGHTS: tl.constexpr, INTERPRETED: tl.constexpr,
):  # fmt: skip
    """Fills `out`. `lengths` are numbers of keys where they are paged, and else starts of sequences among keys.

    EIGHTS: 8 divides the steps of heads and tokens, as it does for a head size of 72, and Triton only asks for 16.
    """
    if EIGHTS:
        q_t, q_h, k_h, k_s, v_h, v_s = (
            q_t // 8 * 8,
            q_h // 8 * 8,
            k_h // 8 * 8,
            k_s // 8 * 8,
            v_h // 8 * 8,
            v_s // 8 * 8,
        )
    program, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    sequence = _sequence_of(starts_q, program, n, GROUP, ROWS)
    start_q = tl.load(starts_q + sequence)
    t = tl.load(starts_q + sequence + 1) - start_q
    first_row = (program - (start_q * GROUP // ROWS + sequence)) * ROWS
    if first_row >= t * GROUP:
        return
    if PAGE > 0:
        L = tl.load(lengths + sequence)
        table += sequence.to(tl.int64) * table_step
    else:
        start_k = tl.load(lengths + sequence)
        L = tl.load(lengths + sequence + 1) - start_k
        k += start_k.to(tl.int64) * k_s
        v += start_k.to(tl.int64) * v_s

    row, column = first_row + tl.arange(0, ROWS), tl.arange(0, BLOCK_D)
    query, member = row // GROUP, head * GROUP + row % GROUP
    token = (start_q + query).to(tl.int64)
    inside = (query < t)[:, None] & (column < D)[None, :]
    q_tile = tl.load(q + token[:, None] * q_t + member[:, None] * q_h + column[None, :] * q_d, mask=inside, other=0.0)
    if CAUSAL:
        last = tl.minimum(L - t + query, L - 1)
        all_until = (L - t + first_row // GROUP + 1) // KEYS * KEYS
        end = tl.minimum(L - t + (first_row + ROWS - 1) // GROUP, L - 1) + 1
    else:
        last = query * 0 + L - 1
        all_until = L // KEYS * KEYS
        end = L
    k += head * k_h
    v += head * v_h
    largest, total, values = empty(ROWS, BLOCK_D)
    largest, total, values = _along_keys(
        q_tile, k, v, table, 0, all_until, last, L, k_page, k_s, k_run, k_d, v_page, v_s, v_d, scale, largest, total,
        values, False, PAGE, RUN, D, BLOCK_D, KEYS, INTERPRETED,
    )  # fmt: skip
    largest, total, values = _along_keys(
        q_tile, k, v, table, all_until, end, last, L, k_page, k_s, k_run, k_d, v_page, v_s, v_d, scale, largest, total,
        values, True, PAGE, RUN, D, BLOCK_D, KEYS, INTERPRETED,
    )  # fmt: skip
    answer = values / tl.where(total == 0.0, 1.0, total)[:, None]  # zeros where there are no keys
    place = (token * (tl.num_programs(1) * GROUP) + member)[:, None] * D + column[None, :]
    tl.store(out + place, rounded(answer, out.dtype.element_ty, INTERPRETED), mask=inside)


def attend_packed(
    q_THqD: Tensor,
    k_PHkSRX: Tensor,
    v_PHkSD: Tensor,
    starts_q: Tensor,
    lengths: Tensor,
    table: Tensor | None,
    *,
    causal: bool,
) -> Tensor:
    """A new, dense [T, Hq, D], scaled by D^-0.5. Any distances in memory will do.

    Args:
        q_THqD: Queries, packed.
        k_PHkSRX: Keys: P pages of S keys, each of R runs of X elements; packed keys are one page.
        v_PHkSD: Values.
        starts_q: Integers [n + 1], the first query of each sequence and T.
        lengths: Integers; [n], the number of keys of each sequence where they are paged, or like `starts_q`.
        table: Integers [n, most pages], each sequence's pages; None where keys are packed.
        causal: The queries of a sequence are its last tokens, and see no later one; else they see all keys.
    """
    (T, Hq, D), Hk, n = q_THqD.shape, k_PHkSRX.shape[1], starts_q.shape[0] - 1
    out_THqD = torch.empty(T, Hq, D, dtype=q_THqD.dtype, device=q_THqD.device)
    if out_THqD.numel() == 0:
        return out_THqD
    group = Hq // Hk
    tile = choose_tile(max(1, T // n) * group, D, q_THqD.dtype)
    pages = lengths[None] if table is None else table.contiguous()
    page = 0 if table is None else k_PHkSRX.shape[2]
    if v_PHkSD.stride(2) < v_PHkSD.stride(3) and page in _WHOLE_PAGES:
        tile = replace(tile, keys=page)
    steps = (*q_THqD.stride()[:2], *k_PHkSRX.stride()[1:3], *v_PHkSD.stride()[1:3])
    with on_device_of(q_THqD):
        attend_sequences[(T * group // tile.rows + n, Hk)](
            q_THqD, k_PHkSRX, v_PHkSD, out_THqD, starts_q, lengths, pages, n, *q_THqD.stride(), *k_PHkSRX.stride(),
            *v_PHkSD.stride(), pages.stride(0), D**-0.5 * LOG2_E, GROUP=group, D=D, BLOCK_D=block_of(D),
            ROWS=tile.rows, KEYS=tile.keys, CAUSAL=causal, PAGE=page, RUN=k_PHkSRX.shape[4],
            EIGHTS=not any(step % 8 for step in steps), INTERPRETED=interpreted(attend_sequences),
            num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
    return out_THqD
