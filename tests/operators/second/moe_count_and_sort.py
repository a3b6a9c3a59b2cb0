"""Counts first, then each slot put where the counts say."""

import numpy as np

COUNTED_OTHERWISE = "integers have no published FLOPs"


def second(ids: np.ndarray, *, num_experts: int) -> tuple[np.ndarray, ...]:
    counts = [int(np.count_nonzero(ids == expert)) for expert in range(num_experts)]
    starts = [sum(counts[:expert]) for expert in range(num_experts + 1)]
    out, place = np.full(ids.size, -1), list(starts)
    for slot, expert in enumerate(ids.flat):
        out[place[expert]] = slot
        place[expert] += 1
    return out, np.array(counts), np.array(starts)
