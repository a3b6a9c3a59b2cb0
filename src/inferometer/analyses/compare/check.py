"""May a candidate be merged: is its step no longer than before, beyond noise and what is accepted, and is that shown?

A check fails where a regression is shown, and where times can't be compared at all. Between that and a step that is
shown to be as quick lies a third answer: the interval of its ratio is so wide, or unknown, that a regression may hide
in it. That is `open`, with a sentence; whether it fails is the user's choice.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from inferometer.analyses.comparison_limits import CLEAR_CHANGE, FEW_CHANGE
from inferometer.units import format_share

if TYPE_CHECKING:
    from inferometer.analyses.compare.comparison import Comparison
    from inferometer.analyses.compare.tests import TestComparison

_NARROW = "Longer runs narrow that."


class Checked(msgspec.Struct, frozen=True):
    """The answer of a check. `open`: why no regression is shown and none is excluded; empty where one of both is."""

    failed: bool
    open: str = ""


def check_steps(found: "Comparison", accepted: float) -> Checked:
    """Whether the step is longer beyond noise by more than the part `accepted`, or times can't be compared.

    Where noise can't be known, `FEW_CHANGE` takes its place. A step that calls more than before and is longer by
    more than `CLEAR_CHANGE` on the mean is a regression as well, however much its time varies.
    """
    if _is_regression(found, accepted):
        return Checked(failed=True)
    interval, least = found.comparable.step_ratio_interval, max(FEW_CHANGE, accepted)
    if interval is None:
        passes = f"what is less than {format_share(least)} longer passes"
        return Checked(failed=False, open=f"The noise of a step's time isn't known, and {passes}. {_NARROW}")
    if interval[1] <= 1 + least:
        return Checked(failed=False)
    return Checked(failed=False, open=f"A step may take {interval[1]:.3f} times as long as before (95 %). {_NARROW}")


def check_tests(found: "TestComparison", accepted: float) -> Checked:
    """Whether a test is slower beyond noise by more than the part `accepted`, or the runs can't be compared."""
    if found.is_regression(accepted):
        return Checked(failed=True)
    least = 1 + max(FEW_CHANGE, accepted)
    unknown = [row.name for row in found.of_kind("unknown")]
    wide = [(row.interval[1], row.name) for row in found.rows if row.interval is not None and row.interval[1] > least]
    said = []
    if unknown:
        said.append(f"The noise of {_some(unknown)} isn't known.")
    if wide:
        ratio, name = max(wide)
        said.append(f"{name} may take {ratio:.3f} times as long as before (95 %).")
    return Checked(failed=False, open=" ".join([*said, "More repetitions narrow that."]) if said else "")


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} tests"


def _is_regression(found: "Comparison", accepted: float) -> bool:
    if not found.compares_times:
        return True
    ratio, interval = found.comparable.step_ratio, found.comparable.step_ratio_interval
    work = found.changes.work
    longer = ratio is not None and ratio > 1 + max(CLEAR_CHANGE, accepted)
    if longer and found.verdict == "software change" and work is not None and work.ratio is not None and work.ratio > 1:
        return True  # calls are counted: no noise makes them doubtful
    if interval is None:
        return ratio is None or ratio > 1 + max(FEW_CHANGE, accepted)
    if interval[0] <= 1 + accepted:
        return False
    return found.verdict != "no difference" or longer
