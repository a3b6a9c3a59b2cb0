"""Whether one run's times are at other paths than their own: a path was missing and rows were joined by position.

Every shift that `orders` finds is judged, also the table as it is. What fits best is reported only where it
removes what can't be; and as sure only where no other shift fits nearly as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from inferometer.analyses.path_table.fit import Fit, align, distances, find_offsets, judge
from inferometer.analyses.path_table.orders import ORPHAN, Fits, Shift, find_shifts
from inferometer.analyses.path_table.rows import PathRows, Times

_LEAST_GAIN = 1.5  # in all, of contradictions and factors of e: less may be chance
_MARGIN = 0.3  # a factor of 1.35 in one cell, by which the next best must fit worse
_SPREADS = 3.0
_FITS, _SPREADS_OFF = 0.1, 12.0  # a time that is moved must be as near to the other runs, or its like is chance
_LEAST_APART, _SPREADS_APART = 0.02, 7.0  # by which two times must fit worse when they change places
_NEIGHBOURS = 8  # by their times: who is farther apart never fits
_MOST_TOLD = 5


@dataclass(frozen=True)
class Explained:
    """The shift that explains a table best.

    Attributes:
        shift: It; of several that fit alike the first.
        before: The fit of the table as printed.
        after: The fit with the times where the shift says that they belong.
        next_best: By how much the next best explanation, or none, is worse.
        missing: Rows that may be the missing one, the best first.
        doubtful: Rows whose times other explanations give to others, which take nearly as long.
        is_sure: Whether there is one missing row, all times fit, and nothing is left that can't be.
    """

    shift: Shift
    before: Fit
    after: Fit
    next_best: float
    missing: Sequence[int]
    doubtful: Sequence[int]
    is_sure: bool


def explain(rows: PathRows) -> Explained | None:
    """The shift that removes what can't be in the table; None where the table needs none, or none helps.

    A table of one run has nothing to compare its times with: None.
    """
    if len(rows.arms) < 2:
        return None
    before = judge(rows, rows.times)
    if before.total <= _LEAST_GAIN:
        return None
    printed = find_offsets(rows.times)
    ranked = _ranked(rows, find_shifts(rows, rows.times, printed))
    if not ranked:
        return None
    # Where most times are at other paths, only those that were put back show what the runs differ by.
    offsets = find_offsets(ranked[0][1].apply(rows.times))
    if not np.allclose(offsets, printed, atol=_LEAST_APART):
        ranked = _ranked(rows, [*(shift for _, shift, _ in ranked), *find_shifts(rows, rows.times, offsets)])
    total, shift, after = ranked[0]
    if not _is_worth_telling(before, after, total, shift):
        return None
    margin = _MARGIN + _SPREADS * after.spread * sqrt(len(shift.chain))
    alike = [each for each_total, each, _ in ranked[1:] if each_total < total + margin]
    swaps = list(_swaps(rows, shift, max(_LEAST_APART, _SPREADS_APART * after.spread)))
    missing = dict.fromkeys([shift.missing, *(each.missing for each in alike)])
    missing |= {row: None for pair in swaps if shift.missing in pair for row in pair}
    second = min([before.total, *(each_total for each_total, _, _ in ranked[1:2])])
    return Explained(
        shift=shift,
        before=before,
        after=after,
        next_best=second - total,
        missing=list(missing)[:_MOST_TOLD],
        doubtful=sorted({row for pair in swaps for row in pair} | _differing(rows.times, shift, alike)),
        is_sure=len(missing) == 1 and not after.contradictions and _fits_well(shift, rows.times, after.spread),
    )


def _differing(times: Times, shift: Shift, others: Sequence[Shift]) -> set[int]:
    """Rows that others of the same arm give another time."""
    mine = shift.apply(times)[shift.arm]
    columns = [other.apply(times)[shift.arm] for other in others if other.arm == shift.arm]
    return {row for column in columns for row, (one, two) in enumerate(zip(mine, column, strict=True)) if one != two}


def _swaps(rows: PathRows, shift: Shift, least: float) -> Iterator[tuple[int, int]]:
    """Pairs of rows, one of them of the chain, that could change places and fit as well.

    The search keeps the few best walks, and where siblings take alike those are all alike. A caller never changes
    places with what it calls: one is completed, or called, before the other in every order. A row that is in its
    place may be the missing one's double only where it is of the chain, too.
    """
    moved = shift.apply(rows.times)
    fits = Fits(rows.times, shift.arm, find_offsets(moved))
    own = align(moved, fits.offsets)[shift.arm]
    known = np.argsort(fits.wanted, kind="stable")[: int((~np.isnan(fits.wanted)).sum())].tolist()
    chain = set(shift.chain)
    for at, first in enumerate(known):
        for second in known[at + 1 : at + 1 + _NEIGHBOURS]:
            pair = {first, second}
            if pair.isdisjoint(chain) or (shift.missing in pair and not pair <= chain):
                continue
            if rows.is_above(first, second) or rows.is_above(second, first):
                continue
            both = np.array([first, second])
            here, there = fits.of(own[both], fits.wanted[both]), fits.of(own[both], fits.wanted[both[::-1]])
            if float(there.sum() - here.sum()) < least:
                yield first, second


def _ranked(rows: PathRows, shifts: Sequence[Shift]) -> list[tuple[float, Shift, Fit]]:
    """Judged in full, the best first, of those with one outcome the best; with what each leaves that can't be."""
    judged: dict[tuple[int, tuple[int | None, ...], int], tuple[float, Shift, Fit]] = {}
    for shift in shifts:
        moved = shift.apply(rows.times)
        fit = judge(rows, moved, shift.lost)
        total = fit.total + (ORPHAN if shift.kind == "extra" else 0.0)
        key = (shift.arm, tuple(moved[shift.arm]), shift.missing)
        if key not in judged or total < judged[key][0]:
            judged[key] = (total, shift, fit)
    return sorted(judged.values(), key=lambda each: (each[0], len(each[1].chain)))


def _is_worth_telling(before: Fit, after: Fit, total: float, shift: Shift) -> bool:
    """Odd ratios alone could be what the backends are; times that fit neither their callers nor the others aren't."""
    moved = len(shift.chain) - 1
    fewer = len(after.contradictions) < len(before.contradictions)
    gain = before.total - total
    return gain > _LEAST_GAIN and (fewer or (moved > 1 and gain > 2 * _LEAST_GAIN))


def _fits_well(shift: Shift, times: Times, spread: float) -> bool:
    apart = distances(shift.apply(times))[list(shift.chain)]
    known = apart[~np.isnan(apart)]
    return bool(known.size) and bool((known < max(_FITS, _SPREADS_OFF * spread)).all())
