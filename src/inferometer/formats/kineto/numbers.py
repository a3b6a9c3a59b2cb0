"""Times as integer nanoseconds, read from the text of a column of JSON numbers in microseconds.

Never through float: float64 at 1.7e15 µs has steps of 0.25 µs. Plain decimals, which is what profilers write, go
through NumPy in bulk; anything else (exponents, quoted numbers) goes one by one (`decimals`). Digits below a
nanosecond are rounded half to even.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inferometer.formats.kineto.decimals import PLAIN, parse_one

_MAX_DIGITS = 18
_POWERS = 10 ** np.arange(_MAX_DIGITS + 1, dtype=np.int64)


def parse_ns(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Nanoseconds of JSON numbers in µs, and for each whether it is `OK`, `UNREADABLE` or `OUT_OF_RANGE` (then 0).

    Args:
        texts: JSON text of each number (bytes or anything with the buffer protocol); empty where the field is missing.
    """
    n = len(texts)
    joined = b"\n".join(texts) + b"\n"
    if not joined.translate(None, PLAIN):
        values = _parse_plain(joined, n)
        if values is not None:
            return values, np.zeros(n, np.int8)
    return _parse_each(texts)


def _parse_plain(joined: bytes, n: int) -> NDArray[np.int64] | None:
    """All of them when each is digits, or digits, a point and digits; else None."""
    chars = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(chars == ord("\n"))
    points = np.flatnonzero(chars == ord("."))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    if len(ends) != n or lengths.min(initial=1) == 0:
        return None
    decimals = np.zeros(n, np.int64)
    if len(points):
        lines = np.arange(n) if len(points) == n else np.searchsorted(ends, points)
        inside = (points > starts[lines]) & (points < ends[lines] - 1)
        if not inside.all() or (len(points) != n and (np.diff(lines) == 0).any()):
            return None
        decimals[lines] = ends[lines] - points - 1
    if (lengths - (decimals > 0) + np.maximum(3 - decimals, 0)).max(initial=0) > _MAX_DIGITS:
        return None
    values: NDArray[np.int64] = np.fromstring(joined.replace(b".", b""), np.int64, sep="\n")
    fine = decimals > 3
    if not fine.any():
        return values * _POWERS[3 - decimals]
    scaled = values * _POWERS[np.where(fine, 0, 3 - decimals)]
    scaled[fine] = _round_half_even(values[fine], _POWERS[decimals[fine] - 3])
    return scaled


def _round_half_even(values: NDArray[np.int64], divisors: NDArray[np.int64]) -> NDArray[np.int64]:
    whole, rest = np.divmod(values, divisors)
    up = (2 * rest > divisors) | ((2 * rest == divisors) & (whole % 2 == 1))
    rounded: NDArray[np.int64] = whole + up
    return rounded


def _parse_each(texts: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    values, states = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int8)
    for i, text in enumerate(texts):
        values[i], states[i] = parse_one(bytes(text))
    return values, states
