"""Two times of one run that may stand at each other's path: exchanged, both runs agree there as they do elsewhere.

Never sure: a run in which one path takes a third longer and another a third less looks the same. And as many times of
one run as of the other could have been exchanged. So both are named as possible, and times stay as printed.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from inferometer.analyses.path_table.fit import align, distances
from inferometer.analyses.path_table.found import Found, short
from inferometer.analyses.path_table.rows import PathRows, Times
from inferometer.units import format_share

_FEWEST_ROWS = 5  # with both times: else no difference is usual
_FAR, _FAR_SPREADS = 0.1, 10.0  # in logarithms, and times what is usual: as printed both must be farther apart
_NEAR, _NEAR_SPREADS = 0.02, 3.0  # and exchanged both as near as others are


def find_possible_swaps(rows: PathRows, times: Times) -> Iterator[Found]:
    """Of two runs, the pairs of paths; a caller and what it calls are none, since times tell them apart."""
    if len(rows.arms) != 2:
        return
    apart = distances(times)
    known = apart[~np.isnan(apart)]
    if known.size < _FEWEST_ROWS:
        return
    usual = float(np.median(known))
    far, near = max(_FAR, _FAR_SPREADS * usual), max(_NEAR, _NEAR_SPREADS * usual)
    first, second = align(times)
    for one, other in combinations(np.flatnonzero(np.nan_to_num(apart) > far).tolist(), 2):
        exchanged = abs(first[one] - second[other]), abs(first[other] - second[one])
        if max(exchanged) > near or rows.is_above(one, other) or rows.is_above(other, one):
            continue
        paths = [rows.paths[row] for row in (one, other)]
        printed = [_percent(float(apart[row])) for row in (one, other)]
        words = (
            f"The times of {short(paths[0])} and {short(paths[1])} may be exchanged in one of the runs. As printed the "
            f"runs differ by {printed[0]} and {printed[1]} there, exchanged by {_percent(float(exchanged[0]))} and "
            f"{_percent(float(exchanged[1]))}; at most paths by {_percent(usual)}. Possible, not sure: two paths "
            "that differ by as much in opposite directions look the same."
        )
        numbers = {"paths": paths, "printed": [float(apart[one]), float(apart[other])], "exchanged": [*exchanged]}
        yield Found("possible_swap", paths[0], words, {**numbers, "usual": usual})


def _percent(logarithm: float) -> str:
    return format_share(float(np.expm1(logarithm)))
