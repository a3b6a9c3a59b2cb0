"""How keys and values lie in a device's memory, as the kernels read and write them: float16, or float32.

Float16 lies in words of two, the first in the low half, so that no feature of an adapter is needed. What is written is
rounded to the nearest, finite numbers beyond the largest float16 to that: 65,504. Sums stay float32 everywhere.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class CacheFormat:
    """One of `CACHE_FORMATS`.

    Attributes:
        name: As users know it.
        code: Value of the kernels' constant CACHE.
        number_bytes: Of a number.
    """

    name: str
    code: int
    number_bytes: int

    @property
    def dtype(self) -> Any:
        """NumPy's."""
        return np.dtype(f"<f{self.number_bytes}")


CACHE_F16, CACHE_F32 = CacheFormat("f16", 0, 2), CacheFormat("f32", 1, 4)
CACHE_FORMATS = {each.name: each for each in (CACHE_F16, CACHE_F32)}


def stored(numbers: Any, form: CacheFormat) -> Any:
    """Numbers as the cache keeps them: rounded, the finite ones finite; infinities and NaN stay."""
    if form is CACHE_F32:
        return np.asarray(numbers, form.dtype)
    most = float(np.finfo(form.dtype).max)
    return np.where(np.isfinite(numbers), np.clip(numbers, -most, most), numbers).astype(form.dtype)


def cache_format_of(code: float) -> CacheFormat:
    """The format that a kernel's constant CACHE names."""
    return next(each for each in CACHE_FORMATS.values() if each.code == code)
