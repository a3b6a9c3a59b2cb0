"""A device's timestamps on the host's clock, as far as that can be known."""

from typing import Any, Literal

import numpy as np

DeviceTimes = tuple[tuple[int | None, ...], tuple[int | None, ...], int, Literal["shared", "aligned", "none"]]
"""Begins, ends, how many have none, whose clock; as in `Submission`."""


def device_times(ticks: Any, tick_ns: float, start_ns: int, submitted_ns: int, waited_ns: int) -> DeviceTimes:
    """Begin and end of each dispatch in ns of the host's clock, from a device's ticks.

    Some drivers' ticks are the host's monotonic clock (a CPU's are): where all lie between `start_ns` and
    `waited_ns` they are taken as they are. Others are shifted so that the earliest is `submitted_ns`. A pair that
    ends before it begins, was not written, or lasts longer than the whole submit did has no time.

    Args:
        ticks: uint64 (n, 2).
        tick_ns: Nanoseconds of a tick.
        start_ns: When recording began.
        submitted_ns: When the work was handed over.
        waited_ns: When it was done.

    Returns:
        Begins and ends, None where there is none; how many have none; whose clock.
    """
    ordered = (ticks[:, 1] >= ticks[:, 0]) & (ticks[:, 0] > 0)
    length_ns = np.where(ordered, ticks[:, 1] - ticks[:, 0], 0) * tick_ns
    usable = ordered & (length_ns <= waited_ns - start_ns)
    if not usable.any():
        return (None,) * len(ticks), (None,) * len(ticks), len(ticks), "none"
    first = int(ticks[usable, 0].min())
    since_ns = np.where(usable[:, None], ticks - np.uint64(first), 0) * tick_ns
    first_ns = round(first * tick_ns)
    shared = first_ns >= start_ns and first_ns + since_ns.max() <= waited_ns
    base_ns = first_ns if shared else submitted_ns
    begin_ns, end_ns = (
        tuple(base_ns + round(value) if good else None for value, good in zip(column, usable.tolist(), strict=True))
        for column in since_ns.T.tolist()
    )
    return begin_ns, end_ns, int((~usable).sum()), "shared" if shared else "aligned"
