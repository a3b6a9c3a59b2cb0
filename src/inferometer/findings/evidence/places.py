"""The device of a rank on which most is at stake, for rules that speak of one device at a time."""

import msgspec
import polars as pl

from inferometer.analyses.timeline.work import PLACE, at_place, place_name
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.finding import Scale, Severity
from inferometer.trace.lean import aggregate


class BusiestDevice(msgspec.Struct, frozen=True):
    """One device of a rank. `name` has the rank only where there are several; `window_ns` is above 0."""

    rank: int | None
    device: str | None
    name: str
    window_ns: int

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of this place, by `rank` and `device`."""
        return at_place(frame, self.rank, self.device)


def worst_place(evidence: LaunchEvidence, rows: pl.DataFrame, column: str) -> tuple[BusiestDevice, int] | None:
    """The place with the largest share of its window in the sum of `column`, ns, and that sum.

    Args:
        evidence: Of the trace.
        rows: Has `rank`, `device` and `column`; any number of rows per place.
        column: Times, ns.

    Returns:
        None where no place has any such time.
    """
    sums = aggregate(rows, PLACE, pl.col(column).sum().alias("sum_ns"))
    known = {(rank, device): int(sum_ns) for rank, device, sum_ns in sums.select(*PLACE, "sum_ns").iter_rows()}
    placed = [(place, known.get((place.rank, place.device), 0)) for place in places_of(evidence)]
    some = [(place, sum_ns) for place, sum_ns in placed if sum_ns > 0]
    return max(some, key=lambda each: each[1] / each[0].window_ns, default=None)


def grave_place(
    evidence: LaunchEvidence, rows: pl.DataFrame, column: str, scale: Scale
) -> tuple[BusiestDevice, int, Severity] | None:
    """`worst_place` with the severity of its share of the window; None where that is below the scale."""
    worst = worst_place(evidence, rows, column)
    severity = scale.severity(worst[1] / worst[0].window_ns) if worst else None
    return None if worst is None or severity is None else (*worst, severity)


def places_of(evidence: LaunchEvidence) -> list[BusiestDevice]:
    """All places whose window has any length."""
    several = evidence.devices["rank"].n_unique() > 1
    rows = evidence.devices.select(*PLACE, "window_ns").filter(pl.col("window_ns") > 0)
    return [
        BusiestDevice(rank, device, place_name(rank if several else None, device), ns)
        for rank, device, ns in rows.iter_rows()
    ]
