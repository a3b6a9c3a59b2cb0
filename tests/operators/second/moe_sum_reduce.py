"""Added an expert after the other in float64."""

from typing import Any

import numpy as np


def second(expert_outputs: np.ndarray, *, routed_scaling_factor: float) -> np.ndarray:
    out = np.zeros((expert_outputs.shape[0], expert_outputs.shape[2]))
    for expert in range(expert_outputs.shape[1]):
        out += routed_scaling_factor * expert_outputs[:, expert]
    return out


def eager(expert_outputs: Any, *, routed_scaling_factor: float) -> Any:
    return (expert_outputs.float().sum(1) * routed_scaling_factor).to(expert_outputs.dtype)
