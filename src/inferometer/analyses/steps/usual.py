"""How long a step usually takes: of the phase with the most steps, those that nothing disturbed or cut."""

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.steps.disturbances import is_whole, is_without_work
from inferometer.analyses.steps.table import StepTable


class UsualSteps(msgspec.Struct, frozen=True, eq=False):
    """The steps of one phase.

    Attributes:
        phase: None where it isn't known.
        steps: How many the phase has, the disturbed ones too.
        time_ns: Of those that may be used, shape (used,): until the step's device work has ended; without device work,
            of its mark. Empty where no whole time is known.
        has_work: Whether any step has device work.
    """

    phase: str | None
    steps: int
    time_ns: NDArray[np.int64]
    has_work: bool

    @property
    def median_ns(self) -> float | None:
        """None without a time."""
        return float(np.median(self.time_ns)) if len(self.time_ns) else None


def find_usual(table: StepTable) -> UsualSteps:
    """Those of the phase with the most steps that may be used."""
    phases = table.phases.sort("used", descending=True, maintain_order=True)
    phase, steps = phases.select("phase", "steps").row(0)
    usable = is_whole() & ~is_without_work() & ~pl.col("disturbed") & pl.col("phase").eq_missing(phase)
    used = table.steps.filter(usable).select(pl.coalesce("window_ns", "wall_ns", "gpu_busy_ns")).to_series()
    has_work = table.steps["launches"].drop_nulls().sum() > 0
    return UsualSteps(phase, steps, used.drop_nulls().to_numpy(), has_work)
