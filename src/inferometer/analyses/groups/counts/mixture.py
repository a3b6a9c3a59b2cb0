"""Few long launches among many short ones, recognised from printed statistics alone.

If k of n launches take `max` and the rest take the median, the mean is med + k/n (max - med), hence
k = n (mean - med) / (max - med). Where launches vary by little, k says nothing: a tail begins at `TAIL` medians.
"""

TAIL = 10.0
"""In seed 002, the only table looked at, eight rows have a longest of 42 medians or more, all others of 4 at most."""


def long_launches(count: int | None, mean: float | None, median: float | None, longest: float | None) -> int | None:
    """How many launches of the row are the long ones; None where it has no tail, or the statistics weren't printed."""
    if count is None or mean is None or median is None or longest is None:
        return None
    if median <= 0 or longest < TAIL * median or mean <= median:
        return None
    return round(count * (mean - median) / (longest - median))


def mixtures_agree(one: int | None, other: int | None) -> bool:
    """Whether two rows may come from the same calls: neither has long launches, or both have about as many."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= max(2, 0.1 * max(one, other))
