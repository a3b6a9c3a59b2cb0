"""How far a class of kernels is below the best rate at which the run moves bytes; for the rules about slow kernels."""

from typing import Any

from inferometer.analyses.model.measured_rows import LEAST_BEST_BYTES
from inferometer.findings.rule import Evidence
from inferometer.units import format_bytes

FAR_BELOW = 3.0
"""So many times below the best, a class is slow: plain kernels of one run lie within a factor of two."""

_LAUNCH_NS = 20_000  # a pass takes 5 to 45 μs however little it does; what needs less for its bytes is bound by that


def far_below_best(evidence: Evidence, row: dict[str, Any]) -> tuple[float, str] | None:
    """What a row of `class_times` would save at the best rate, ns, and the sentence that shows it; None if it is near.

    Also None for what reads few weights, a call or in all: its launch binds it.
    """
    best, bound = evidence.best_bytes_per_s, evidence.bound_of(row["phase"], row["class"])
    rate = bound["bytes_per_s"] if bound else None
    if bound is None or not best or not rate or rate * FAR_BELOW > best:
        return None
    calls = row["layers"] or bound["layers"] or 1
    if bound["weight_bytes"] < LEAST_BEST_BYTES or bound["moved_bytes"] / calls / best * 1e9 < _LAUNCH_NS:
        return None
    return row["total_ns"] * (1 - rate / best), (
        f"It moves {format_bytes(bound['moved_bytes'])} a {bound['unit']} at {format_bytes(rate)}/s; the best class of "
        f"the run reaches {format_bytes(best)}/s, {best / rate:.1f}x as much."
    )
