"""How the steps of two runs grow with their context, for the classes of kernels that changed most."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.sampling_units import REMAINDERS
from inferometer.analyses.steps.growth import ALL, format_slope
from inferometer.analyses.steps.table import StepTable
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import TimeUnit, axis, cut
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.sampling import keep_extremes, rounded
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import line, marker
from inferometer.reports.views.layout import Field, Section

CLASSES = 4
"""Classes with a chart, besides all together."""

_TITLE = "Growth with context of both runs"
_LACKING = "Decode steps of both runs whose contexts are known, as engines' logs print them."
_MOST = 800  # points of one run in one chart
_FIELDS = (
    Field("class", "Class", "name"),
    Field("base_slope_ns", "Base, a token and position", "ns"),
    Field("candidate_slope_ns", "Candidate, a token and position", "ns"),
    Field("base_intercept_ns", "Base, at position 0", "ns"),
    Field("candidate_intercept_ns", "Candidate, at position 0", "ns"),
    Field("base_r2", "Base R²", "number", spare=1),
    Field("candidate_r2", "Candidate R²", "number", spare=1),
)


def build(look: PageData) -> Block | None:
    """Time a token over context, a chart a class, and the lines' numbers of all classes; for engines' logs."""
    found = look.comparison
    if found is None or look.candidate is None:
        return None
    runs = look.base.steps, look.candidate.steps
    known = [run for run in runs if run is not None and not run.growth.is_empty()]
    if len(known) < len(SIDES):
        return Block("compared_steps", _TITLE, lacking=_LACKING)
    classes = _classes(found, known)
    parts: list[Part] = [
        Words("Points are decode steps, hollow ones disturbed; lines leave these out, as does the table.", "note")
    ]
    if found.comparable.stops:
        parts.append(Words("As recorded, side by side: the runs can't be compared as they are.", "note"))
    return Block("compared_steps", _TITLE, [*parts, *_charts(classes, known), Grid(_table(known), sums=())])


def _classes(found: Comparison, runs: Sequence[StepTable]) -> list[str]:
    """All together, then those that changed most; where none did, or nothing says so, the one with the most time."""
    both = set(runs[0].growth["class"]) & set(runs[1].growth["class"])
    added = [one for one in found.changes.contributions if one.added and one.cls not in REMAINDERS]
    moved = [] if found.comparable.stops else [one for one in added if one.kind != "same"]
    changed = [name for one in sorted(moved, key=lambda one: -abs(one.delta_ns)) for name in one.of[0] if name in both]
    totals = runs[0].classes.filter(pl.col("phase") == "decode").sort("total_ns", "class", descending=[True, False])
    largest = [name for name in totals["class"] if name in both]
    return [ALL, *(changed[:CLASSES] or largest[:1])]


def _charts(classes: Sequence[str], runs: Sequence[StepTable]) -> Iterator[Part]:
    for cls in classes:
        points = [_points(run, cls) for run in runs]
        if all(each.height for each in points):
            yield _chart(cls, runs, points)


def _points(run: StepTable, cls: str) -> pl.DataFrame:
    """`step`, `mean_kv`, `token_ns`, `disturbed` of each decode step that has the class."""
    known = run.steps.filter(pl.col("phase") == "decode", pl.col("mean_kv").is_not_null(), pl.col("tokens") > 0)
    times = run.class_steps.filter(pl.col("class") == cls).select("step", "total_ns")
    if cls == ALL:
        times = run.steps.select("step", pl.col("gpu_busy_ns").alias("total_ns")).drop_nulls()
    joined = known.join(times, on="step", maintain_order="left")
    return joined.select("step", "mean_kv", (pl.col("total_ns") / pl.col("tokens")).alias("token_ns"), "disturbed")


def _chart(cls: str, runs: Sequence[StepTable], points: Sequence[pl.DataFrame]) -> Chart:
    unit = TimeUnit.of(max(float(each["token_ns"].to_numpy().max()) for each in points))
    data: list[dict[str, Any]] = []
    text = []
    for side, (run, own) in enumerate(zip(runs, points, strict=True)):
        kept = own[keep_extremes(own["token_ns"].to_numpy(), _MOST)]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": SIDES[side],
                "x": rounded(kept["mean_kv"], 6),
                "y": unit.scaled(kept["token_ns"]),
                "marker": marker(side) | {"symbol": [_symbol(side, hollow=one) for one in kept["disturbed"]]},
                "customdata": kept["step"].to_list(),
                "hovertemplate": f"{SIDES[side]}, step %{{customdata}}: %{{y}} {unit.name} per token<extra></extra>",
            }
        )
        fit = run.growth.row(by_predicate=pl.col("class") == cls, named=True)
        if fit["slope_ns"] is None:
            text.append(f"can't be seen in the {SIDES[side]}")
            continue
        ends = own.select(low=pl.col("mean_kv").min(), high=pl.col("mean_kv").max()).row(0)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": rounded(ends, 6),
                "y": unit.scaled(fit["intercept_ns"] + fit["slope_ns"] * kv for kv in ends),
                "line": line(side, dash="solid" if side == 0 else "dash"),
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
        text.append(f"{format_slope(fit['slope_ns'])} for each KV position in the {SIDES[side]}")
    layout = {
        "xaxis": axis("KV positions that a token attends to, mean"),
        "yaxis": unit.axis("Time per token", rangemode="tozero"),
    }
    name = "GPU time of a decoded token" if cls == ALL else cut(cls, 80)
    return Chart(name, f"Growth: {' and '.join(text)}.", data, layout, height=320)


def _symbol(side: int, *, hollow: bool) -> str:
    symbol = str(marker(side)["symbol"])
    return f"{symbol}-open" if hollow else symbol


def _table(runs: Sequence[StepTable]) -> Section:
    """The lines of both runs, in the order of the candidate's: the steepest first."""
    numbers = ("slope_ns", "intercept_ns", "r2")
    base, candidate = (
        run.growth.select("class", *(pl.col(name).alias(f"{side}_{name}") for name in numbers))
        for side, run in zip(SIDES, runs, strict=True)
    )
    joined = candidate.join(base, on="class", how="full", coalesce=True, maintain_order="left")
    frame = joined.select(field.column for field in _FIELDS).with_columns(pl.col("base_r2", "candidate_r2").round(5))
    return Section("How classes grow, decode", _FIELDS, frame)


SECTION = PageSection("compared_steps", build, after="compared_counters")
