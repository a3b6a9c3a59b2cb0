"""Rows of an embedding table. T tokens, D hidden size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferometer.backends.wgsl.weight_formats import decode, format_of


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """`out[t] = table[token] * SCALE` where this chunk of the table has the token."""
    D, first, rows = int(constants["K"]), int(constants["ROW0"]), int(constants["ROWS"])
    position, T = (int(number) for number in arrays["state"][:2])
    tokens_T = arrays["tokens"][position : position + T].astype(np.int64)
    here = np.flatnonzero((tokens_T >= first) & (tokens_T < first + rows))
    form = format_of(constants["WEIGHTS"])
    rows = arrays["table"].view(np.uint8).reshape(-1, form.row_bytes(D))[tokens_T[here] - first]
    out_TD = arrays["out"].reshape(-1, D)
    out_TD[here] = decode(rows, len(here), D, form) * np.float32(constants["SCALE"])
    arrays["seen"][tokens_T[here]] = 1
