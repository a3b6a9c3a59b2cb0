"""The comparison that LatencyPrism publishes, under its titles."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from inferometer.analyses.latencyprism.comparison import Published
from inferometer.analyses.latencyprism.processes import ProcessComparison
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Kind, Section
from inferometer.reports.views.view import View

_CAUTION = (
    "These are the published formulas: cycles are not checked to be the same work, and no score separates a fault from "
    "chance. `inferometer compare` without --published names a cause."
)


def _sections(found: Published) -> Sequence[Section]:
    return [_table_section(found), _summary_section(found.comparisons)]


def _remarks(found: Published) -> Sequence[str]:
    return [_CAUTION]


def _table_section(found: Published) -> Section:
    """The table of the one pair under its published titles; of several pairs, theirs one below the other."""
    names, comparisons = found.names, found.comparisons
    if len(comparisons) == 1:
        titles = comparisons[0].columns
    else:
        runs = replace(comparisons[0], base=names.base, candidate=names.candidate)
        titles = {"base": f"pid_{names.base}", "candidate": f"pid_{names.candidate}", **runs.columns}
    kinds: dict[str, Kind] = {"function": "name", "metric": "text", "device": "text"}
    fields = [Field(name, title, kinds.get(name, "number")) for name, title in titles.items()]
    return Section("Published comparison", fields, found.to_polars())


def _summary_section(comparisons: Sequence[ProcessComparison]) -> Section:
    rows = [
        {
            "base": each.base,
            "candidate": each.candidate,
            "pairing": each.pairing,
            "base_cycles": each.cycles[0],
            "candidate_cycles": each.cycles[1],
            "base_us": each.mean_us[0],
            "candidate_us": each.mean_us[1],
        }
        for each in comparisons
    ]
    fields = [
        Field("base", "Base", "text"),
        Field("candidate", "Candidate", "text"),
        Field("pairing", "Pairing", "text"),
        Field("base_cycles", "Cycles (base)", "count"),
        Field("candidate_cycles", "Cycles (candidate)", "count"),
        Field("base_us", "Mean cycle (base, μs)", "number"),
        Field("candidate_us", "Mean cycle (candidate, μs)", "number"),
    ]
    return Section(
        "Cycles", fields, pl.DataFrame(rows, schema_overrides={"base_us": pl.Float64, "candidate_us": pl.Float64})
    )


VIEW = View(schema=Schema("published", 1), sections=_sections, remarks=_remarks)
