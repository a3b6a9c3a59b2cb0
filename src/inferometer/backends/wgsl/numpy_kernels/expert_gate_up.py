"""The first half of experts. T tokens, k experts of each, K hidden size, N an expert's size."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.numpy_kernels.gate_up import activate
from inferometer.backends.wgsl.numpy_kernels.moe_route import routes
from inferometer.backends.wgsl.weight_formats import decode, format_of


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[t, j] = act(x[t] @ gate.T) * (x[t] @ up.T)` where row t's j-th expert is in these matrices."""
    K, N, k, T = (*(int(constants[name]) for name in ("K", "N", "EACH")), int(arrays["state"][1]))
    x_TK, out_TkN = arrays["x"].reshape(-1, K)[:T], arrays["out"].reshape(-1, k, N)[:T]
    for expert, place in chosen(arrays, constants):
        x_nK = x_TK[place[0]]
        gate_nN = x_nK @ expert_matrix(arrays["gate"], expert, constants).T
        up_nN = x_nK @ expert_matrix(arrays["up"], expert, constants).T
        out_TkN[place] = activate(gate_nN, int(constants["ACTIVATION"])) * up_nN


def chosen(arrays: Mapping[str, Any], constants: Mapping[str, float]) -> Iterator[tuple[int, tuple[Any, Any]]]:
    """Each expert of the matrices' part that a row has, counted from its first, and where: rows, and slots of these."""
    expert_Tk, first = routes(arrays, constants)[0], int(constants["EXPERT0"])
    for expert in np.unique(expert_Tk):
        if first <= expert < first + constants["EXPERTS"]:
            yield int(expert) - first, np.nonzero(expert_Tk == expert)  # type: ignore[misc]


def expert_matrix(weight: Any, expert: int, constants: Mapping[str, float]) -> Any:
    """The [N, K] float32 numbers of one expert."""
    N, K, form = int(constants["N"]), int(constants["K"]), format_of(constants["WEIGHTS"])
    size = N * form.row_bytes(K)
    return decode(weight.view(np.uint8)[expert * size : (expert + 1) * size], N, K, form)
