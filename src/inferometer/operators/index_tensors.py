"""Integer inputs that kernels follow, as numpy arrays from a fixed seed: for `Axes.values`.

Scattered pages, different experts, positions that aren't zero, as the operators draw them (`catalogue/draws.py`), but
not the same numbers, and without torch.
"""

from collections.abc import Sequence
from typing import Any

from inferometer.operators.axes import tiles

_SEED = 0
_FURTHEST = 32_768  # a position, as far as long prompts go
_ROWS = 1 << 12  # rows of experts drawn at once


def lengths(each: Sequence[int]) -> Any:
    """Lengths of sequences, int32."""
    import numpy as np

    return np.array(each, np.int32)


def offsets(each: Sequence[int]) -> Any:
    """Where packed sequences of these lengths begin, and the end of the last: int32."""
    import numpy as np

    return np.cumsum([0, *each], dtype=np.int64).astype(np.int32)


def pages(each: Sequence[int], size: int, pool: int) -> Any:
    """Blocks of each sequence by its length, scattered over the pool; 0 after them."""
    import numpy as np

    counts = [tiles(length, size) for length in each]
    table = np.zeros((len(counts), max(counts, default=0)), np.int32)
    shuffled, at = _draw().permutation(pool), 0
    for row, count in enumerate(counts):
        table[row, :count] = shuffled[at : at + count]
        at += count
    return table


def experts(tokens: int, count: int, top_k: int) -> Any:
    """Different ones for each token, all equally popular."""
    import numpy as np

    draw = _draw()
    parts = [
        draw.random((min(_ROWS, tokens - start), count), np.float32).argsort(1)[:, :top_k]
        for start in range(0, tokens, _ROWS)
    ]
    return np.concatenate([np.zeros((0, top_k)), *parts]).astype(np.int32)


def rows(sequences: int, states: int) -> Any:
    """Different rows of a pool of states, one per sequence.

    Raises:
        ValueError: There are fewer states than sequences.
    """
    import numpy as np

    if sequences > states:
        raise ValueError(f"{sequences} sequences expected a row each of {states}")
    return _draw().permutation(states)[:sequences].astype(np.int32)


def positions(tokens: int) -> Any:
    """Anywhere in a sequence, but not at its begin."""
    import numpy as np

    return _draw().integers(1, _FURTHEST, tokens, dtype=np.int32)


def slots(tokens: int, pool: int, size: int, padded: int) -> Any:
    """Different places in a cache of `pool` blocks, int64; -1 for padded tokens."""
    import numpy as np

    draw = _draw()
    found = draw.permutation(pool * size)[:tokens].astype(np.int64)
    found[draw.permutation(tokens)[:padded]] = -1
    return found


def _draw() -> Any:
    import numpy as np

    return np.random.default_rng(_SEED)
