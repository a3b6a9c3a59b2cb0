"""Slots dealt one by one to blocks: an expert's last block, or a new one where that is full."""

import numpy as np

COUNTED_OTHERWISE = "integers have no published FLOPs"


def second(ids: np.ndarray, *, block_size: int, num_experts: int) -> tuple[np.ndarray, ...]:
    blocks: dict[int, list[list[int]]] = {expert: [] for expert in range(num_experts)}
    for slot, expert in enumerate(ids.flat):
        own = blocks[expert]
        if not own or len(own[-1]) == block_size:
            own.append([])
        own[-1].append(slot)
    entries = [block + [ids.size] * (block_size - len(block)) for own in blocks.values() for block in own]
    experts = [expert for expert, own in blocks.items() for _ in own]
    return np.ravel(entries), np.array(experts), np.array([len(entries) * block_size])
