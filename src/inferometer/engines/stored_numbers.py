"""Numbers as files of weights store them, made float32: a BF16 is the high half of one, which NumPy doesn't know."""

from typing import Any

import numpy as np


def widen(stored: Any) -> Any:
    """float32 of what is stored: BF16 as uint16, or a float type; the same shape, new."""
    if stored.dtype.kind == "f":
        return stored.astype(np.float32)
    wide = stored.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)
