"""The second half of experts, weighted and summed. T tokens, k experts of each, K an expert's size, N hidden size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.expert_gate_up import chosen, expert_matrix
from inferometer.backends.wgsl.numpy_kernels.moe_route import routes


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[t]` is the sum over row t's experts in this part of weight * (x[t, j] @ down.T), with ADD added to it."""
    K, N, k, T = (*(int(constants[name]) for name in ("K", "N", "EACH")), int(arrays["state"][1]))
    x_TkK, out_TN = arrays["x"].reshape(-1, k, K)[:T], arrays["out"].reshape(-1, N)[:T]
    weight_Tk = routes(arrays, constants)[1]
    if not constants["ADD"]:
        out_TN[:] = 0
    for expert, place in chosen(arrays, constants):
        product_nN = x_TkK[place] @ expert_matrix(arrays["weight"], expert, constants).T
        np.add.at(out_TN, place[0], weight_Tk[place][:, None] * product_nN)
