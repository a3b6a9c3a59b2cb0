"""Write the keys and values of new tokens to their slots of paged caches: slot s is token s % bs of block s // bs.

A token with a negative slot, as engines give the padding of a captured batch, is skipped. The published contract
returns copies of both caches; production writes to them.

T tokens, h key-value heads, d head size; the caches have NB blocks of bs tokens: [NB, bs, h, d].
"""

from collections.abc import Sequence
from math import ceil, inf, nan
from typing import TYPE_CHECKING

from inferometer.operators import index_tensors
from inferometer.operators.axes import Axes, Entry, tiles
from inferometer.operators.catalogue.draws import Draws
from inferometer.operators.hard_cases import (
    HardCase,
    HardCases,
    enlarged,
    few_rows,
    filled,
    no_tokens,
    scaled,
    spoiled,
    zeroed,
)
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work

if TYPE_CHECKING:
    from torch import Tensor


def reference(
    key_Thd: "Tensor", value_Thd: "Tensor", key_cache: "Tensor", value_cache: "Tensor", slot_mapping_T: "Tensor"
) -> "tuple[Tensor, Tensor]":
    """Both caches, each with the new rows; what has no new row stays. No two tokens have the same slot."""
    kept = slot_mapping_T >= 0
    slots, block_size = slot_mapping_T[kept], key_cache.shape[1]
    place = (slots // block_size, slots % block_size)
    key_out, value_out = key_cache.clone(), value_cache.clone()
    key_out[place], value_out[place] = key_Thd[kept], value_Thd[kept]
    return key_out, value_out


def inputs(
    *,
    shape: Sequence[int],
    block_size: int,
    padded_tokens: int = 0,
    spare_blocks: int = 0,
    seed: int,
    device: str = "cpu",
    **_: object,
) -> "dict[str, Tensor]":
    """Three quarters of the tokens are prompts, in order in scattered blocks; the others are single tokens anywhere.

    The caches are in use: no zeros. `padded_tokens` of the tokens have slot -1; `spare_blocks` get nothing.
    """
    draw = Draws(seed, device)
    tokens, heads, size = shape
    cache = (ceil(tokens / block_size) + spare_blocks, block_size, heads, size)
    return {
        "key": draw.normal(*shape),
        "value": draw.normal(*shape),
        "key_cache": draw.normal(*cache),
        "value_cache": draw.normal(*cache),
        "slot_mapping": _slots(draw, tokens, cache[0], block_size, padded_tokens),
    }


def _slots(draw: Draws, tokens: int, blocks: int, block_size: int, padded_tokens: int) -> "Tensor":
    import torch

    inside = torch.arange(block_size, device=draw.device)
    slots = (draw.permutation(blocks, "int64")[:, None] * block_size + inside).flatten()
    single = 3 * tokens // 4
    slots[single:] = slots[single:][draw.permutation(len(slots) - single, "int64")]
    slots = slots[:tokens].clone()
    slots[draw.permutation(tokens, "int64")[:padded_tokens]] = -1
    return slots


def cost(*, shape: Sequence[int], block_size: int, spare_blocks: int = 0, **_: object) -> Cost:
    """No arithmetic; both caches are read and written whole."""
    tokens, heads, size = shape
    caches = 4 * (ceil(tokens / block_size) + spare_blocks) * block_size * heads * size
    return Cost(0, read_bytes=4 * tokens * heads * size + caches + 8 * tokens, written_bytes=caches)


def work(*, shape: Sequence[int], padded_tokens: int = 0, **_: object) -> Work:
    """The new rows are read and written, all slots read."""
    tokens, heads, size = shape
    rows = 4 * (tokens - padded_tokens) * heads * size
    return Work(read_bytes=rows + 8 * tokens, written_bytes=rows)


OPERATOR = Operator(
    name="reshape_and_cache",
    summary="Keys and values of new tokens into their slots of paged caches.",
    dims={
        "T": "tokens",
        "h": "key-value heads",
        "d": "head size",
        "NB": "blocks of a cache",
        "bs": "tokens of a block",
    },
    axes=Axes(
        op_type="reshape_and_cache",
        sizes={
            "T": Entry("shape", 0),
            "h": Entry("shape", 1),
            "d": Entry("shape", 2),
            "bs": "block_size",
            "NB": lambda shape, block_size, spare_blocks: tiles(shape[0], block_size) + spare_blocks,
        },
        varying=("T", "NB"),
        inputs={
            "key": "T h d",
            "value": "T h d",
            "key_cache": "NB bs h d",
            "value_cache": "NB bs h d",
            "slot_mapping": "T: int64",
        },
        outputs={"key_cache": "NB bs h d", "value_cache": "NB bs h d"},
        values={"slot_mapping": lambda T, NB, bs, padded_tokens: index_tensors.slots(T, NB, bs, padded_tokens)},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("key_cache", "value_cache"),
    cost=cost,
    work=work,
    hard=HardCases(
        (
            HardCase("masked", "no token has a slot", "caches as they were", filled(-1, "slot_mapping")),
            HardCase("zeros", "keys and values of zeros", "zeros in their slots", zeroed("key", "value")),
            HardCase("large numbers", "numbers near the type's largest", "copied to the bit", enlarged("key", "value")),
            HardCase(
                "tiny numbers", "denormals", "copied to the bit: nothing is computed", scaled(2.0**-130, "key", "value")
            ),
            HardCase("NaN", "NaN in a key", "copied, and nowhere else", spoiled(nan, "key", (0, 0, 0))),
            HardCase("infinity", "infinity in a value", "copied, and nowhere else", spoiled(inf, "value", (0, 0, 0))),
            no_tokens("key", "value", "slot_mapping"),
        ),
        few=few_rows,
    ),
    updates={"key_cache": "key_cache", "value_cache": "value_cache"},
    exact=frozenset({"key_cache", "value_cache"}),  # copies
    tiny=(
        {"shape": [1, 4, 128], "block_size": 16},
        {"shape": [63, 3, 72], "block_size": 16},
        {"shape": [129, 1, 8], "block_size": 4, "padded_tokens": 30, "spare_blocks": 5},
    ),
)
