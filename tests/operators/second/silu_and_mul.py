"""SiLU an element at a time in float64, rounded to bf16 before the product as the contract has it."""

from typing import Any

import numpy as np


def second(x: np.ndarray) -> np.ndarray:
    import torch

    columns = x.shape[-1] // 2
    out = np.empty((*x.shape[:-1], columns))
    for place in np.ndindex(out.shape):
        *row, column = place
        gate, up = x[(*row, column)], x[(*row, column + columns)]
        out[place] = torch.tensor(gate / (1 + np.exp(-gate))).bfloat16().item() * up
    return out


def eager(x: Any) -> Any:
    import torch

    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up
