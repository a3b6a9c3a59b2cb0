"""Kernel families of two runs side by side, where kernels can't be compared: other hardware, other programs."""

from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.compare.activity.activity import HOST, Activity
from inferometer.names import decode


class FamilyLine(msgspec.Struct, frozen=True):
    """Time of a family in each run, as recorded, and its share of the device's function time there. Never a change."""

    name: str
    base_ns: int
    candidate_ns: int
    base_share: float
    candidate_share: float

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": "family",
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "delta_ns": None,
            "share": None,
            "interval_ns": None,
            "base_share": self.base_share,
            "candidate_share": self.candidate_share,
        }


def family_lines(base: Activity, candidate: Activity) -> list[FamilyLine]:
    """All families of either run, the largest share first."""
    before, after = _times(base), _times(candidate)
    whole = [max(1, sum(times.values())) for times in (before, after)]
    lines = [
        FamilyLine(
            name, before.get(name, 0), after.get(name, 0), before.get(name, 0) / whole[0], after.get(name, 0) / whole[1]
        )
        for name in before | after
    ]
    return sorted(lines, key=lambda line: (-max(line.base_share, line.candidate_share), line.name))


def _times(activity: Activity) -> dict[str, int]:
    device = activity.functions.filter(pl.col("cls") != HOST)
    times: dict[str, int] = {}
    for function, ns in device.group_by("function").agg(pl.col("dur_ns").sum()).sort("function").iter_rows():
        family = decode(function).family
        times[family] = times.get(family, 0) + ns
    return times
