"""How sure a share is: the lower end of the Wilson score interval. Source: Wilson (1927), JASA 22, 209-212.

Five of five is a share of 1, and its lower bound 0.57: small numbers can't claim much.
"""

import math

Z_95 = 1.959964
"""Deviations within which 95 % of a normal distribution lie."""


def lower_bound(hits: int, trials: int, *, z: float = Z_95) -> float:
    """The least share that `hits` of `trials` are compatible with, at 95 %: between 0 and the share itself.

    0 where nothing was tried.

    Raises:
        ValueError: More hits than trials, or fewer than none.
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"expected 0 <= hits <= trials, found {hits} of {trials}")
    if not hits:
        return 0.0
    share = hits / trials
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, (share + z * z / (2 * trials) - spread) / (1 + z * z / trials))
