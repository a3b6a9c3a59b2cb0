"""An A/B in the layout of a published table: kernel, kernel_path, seconds a call of two arms, their difference.

The layout is that of the profiler table of a Llama port, with what was wrong in it put right: columns are named by what
ran, both values of a row are of the row's path, and where an arm doesn't call a path, its cell is blank. One row a
path; layers are pooled where the comparison pools them. Left out: calls, spread, verdicts. `formats/` reads it.
"""

import re
from collections.abc import Sequence

from inferometer.analyses.ab.comparison import PathComparison
from inferometer.analyses.ab.rows import ArmPath
from inferometer.errors import InputError, UnknownName, clean

_NS_PER_S = 1e9
_FIXED = re.compile(r"-?\d+\.\d+")  # set flush right; text and powers of ten flush left, as in the published table


def render_ab_table(comparison: PathComparison, candidate: str | None = None) -> str:
    """The table, with a ruler above and below every row.

    Times are those that are compared (device spans on a GPU), mean of all calls, with interruptions.

    Args:
        comparison: Of two arms or more.
        candidate: The arm next to the base; by default the second.

    Raises:
        UnknownName: No such candidate.
        InputError: There is only one arm.
    """
    if not comparison.candidates:
        raise InputError(f"expected two arms for a table of two, found {', '.join(comparison.arms) or 'none'}")
    other = comparison.candidates[0] if candidate is None else candidate
    if other not in comparison.candidates:
        raise UnknownName("candidate", other, comparison.candidates)
    base = comparison.arms[0]
    rows: list[Sequence[str]] = [("kernel", "kernel_path", base, other, f"{base}-{other}")]
    for row in comparison.rows:
        times = [_seconds_per_call(row.arms.get(arm)) for arm in (base, other)]
        both = None if times[0] is None or times[1] is None else times[0] - times[1]
        rows.append((row.name, row.path, *("" if time is None else repr(time) for time in (*times, both))))
    return _table([[clean(cell).replace("|", "/") for cell in row] for row in rows])


def _seconds_per_call(arm: ArmPath | None) -> float | None:
    return None if arm is None else arm.time_ns / arm.calls / _NS_PER_S


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruler = f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    lines = [ruler]
    for row in rows:
        cells = (
            cell.rjust(width) if _FIXED.fullmatch(cell) else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        lines += [f"| {' | '.join(cells)} |", ruler]
    return "\n".join(lines) + "\n"
