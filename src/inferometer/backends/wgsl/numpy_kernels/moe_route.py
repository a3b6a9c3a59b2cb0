"""Each row's experts and their weights. T tokens, E experts, k of them a token."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out` [T, 2k]: the k greatest scores' experts, of equals the first, then their weights as bits of float32."""
    E, k, T = int(constants["EXPERTS"]), int(constants["EACH"]), int(arrays["state"][1])
    score_TE = arrays["scores"][: T * int(constants["STRIDE"])].reshape(T, -1)[:, :E]
    expert_Tk = np.argsort(-score_TE, axis=-1, kind="stable")[:, :k]
    chosen_Tk = np.take_along_axis(score_TE, expert_Tk, -1)
    top_T1 = chosen_Tk[:, :1]
    total_T1 = np.exp((chosen_Tk if constants["RENORMALIZE"] else score_TE) - top_T1).sum(-1, keepdims=True)
    out_T2k = arrays["out"].reshape(-1, 2 * k)[:T]
    out_T2k[:, :k] = expert_Tk
    out_T2k[:, k:] = (np.exp(chosen_Tk - top_T1) / total_T1).astype(np.float32).view(np.uint32)


def routes(arrays: Mapping[str, Any], constants: Mapping[str, float]) -> tuple[Any, Any]:
    """Experts [T, k] and their weights [T, k] of the pass's rows, as `run` left them."""
    k = int(constants["EACH"])
    route_T2k = arrays["routes"].reshape(-1, 2 * k)[: int(arrays["state"][1])]
    return route_T2k[:, :k], np.ascontiguousarray(route_T2k[:, k:]).view(np.float32)
