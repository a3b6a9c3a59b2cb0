"""Products of rows with a weight matrix, for every `linear_*` of one row and every `matmul_*` of many.

T tokens, K columns of x, N columns of the result.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.weight_formats import F16, decode, format_of


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[:, OUT0 : OUT0 + N] = x @ weight.T + bias`, with ADD `+=`; only kernels of one row have LAST_ROW."""
    K, T = int(constants["K"]), int(arrays["state"][1])
    x_TK = arrays["x"].reshape(-1, K)
    if "LAST_ROW" in constants:
        row = T - 1 if constants["LAST_ROW"] else 0
        x_TK = x_TK[row : row + 1] if T else x_TK[:0]
    else:
        x_TK = x_TK[:T]
    y_TN = x_TK @ matrix(arrays["weight"], constants).T
    if constants["HAS_BIAS"]:
        y_TN += arrays["bias"][: y_TN.shape[1]]
    put(y_TN, arrays["out"], constants)


def matrix(weight: Any, constants: Mapping[str, float]) -> Any:
    """The [N, K] float32 numbers of a binding in the format that WEIGHTS names; kernels without it read float16."""
    return decode(weight, int(constants["N"]), int(constants["K"]), format_of(constants.get("WEIGHTS", F16.code)))


def put(y_TN: Any, out: Any, constants: Mapping[str, float]) -> None:
    """Write columns OUT0 to OUT0 + N of the first rows of `out`, whose rows are STRIDE long, the last maybe shorter.

    With ADD they are added to what is there.
    """
    T, N = y_TN.shape
    if T:
        at_TN = np.arange(T)[:, None] * int(constants["STRIDE"]) + int(constants["OUT0"]) + np.arange(N)
        out[at_TN] = out[at_TN] + y_TN if constants.get("ADD") else y_TN
