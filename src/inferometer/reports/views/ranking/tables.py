"""The tables of a ranking: candidates in order, by operator, every shape, and the runs that all is from."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from inferometer.bench.ranking.ranking import DeviceRanking, Ranked, Ranking
from inferometer.bench.ranking.run_facts import clock_of, versions_of
from inferometer.bench.ranking.score import Score
from inferometer.bench.ranking.shape_figures import (
    FUNCTIONAL_ONLY,
    Figure,
    bound_of,
    sol_fraction,
    speedup_over,
    versus,
    why_no_fraction,
)
from inferometer.bench.results import ShapeResult
from inferometer.reports.views.layout import Field, Section, frame_of
from inferometer.units import format_share

_NAME = Field("contender", "Candidate", "name")
_RANKING = (
    Field("rank", "Rank", "text"),
    _NAME,
    Field("right", "Right", "text"),
    Field("score", "Score", "share", spare=1),
    Field("score_range", "95 %", "text", spare=3),
    Field("speedup", "Speedup", "ratio", spare=1),
    Field("speedup_range", "Speedup 95 %", "text", spare=5),
    Field("fast_1", "fast_1", "share", spare=2),
    Field("fast_1_5", "fast_1.5", "share", spare=6),
    Field("fast_2", "fast_2", "share", spare=6),
    Field("right_only", "Right only", "share", spare=7),
    Field("geometric_mean", "Geo mean", "share", spare=8),
    Field("mean", "Mean", "share", spare=8),
    Field("time_weighted", "Time-weighted", "share", spare=8),
    Field("pooled", "Pooled", "share", spare=9),
    Field("covered", "Covered", "share", spare=7),
    Field("below_launch", "Below launch", "count", spare=5),
    Field("own", "Own kernels", "share", spare=4),
    Field("mark", "Mark", "text", spare=2),
)
_OPERATORS = (
    Field("operator", "Operator", "name"),
    _NAME,
    Field("right", "Right", "text"),
    Field("importance", "Importance", "share", spare=4),
    Field("sol_fraction", "Median S", "share", spare=1),
    Field("geometric_mean", "Geo mean S", "share", spare=5),
    Field("speedup", "Speedup", "ratio", spare=1),
    Field("below_launch", "Below launch", "count", spare=3),
)
_SHAPES = (
    Field("operator", "Operator", "text"),
    Field("shape", "Shape", "name"),
    _NAME,
    Field("right", "Right", "text", spare=2),
    Field("cold_ns", "Cold", "ns", spare=1),
    Field("low_ns", "Low", "ns", spare=8),
    Field("high_ns", "High", "ns", spare=8),
    Field("warm_ns", "Warm", "ns", spare=5),
    Field("samples", "n", "count", spare=9),
    Field("timer", "Timer", "text", spare=7),
    Field("bound_ns", "Bound", "ns", spare=4),
    Field("binding", "Bound by", "text", spare=6),
    Field("launch_ns", "Launch", "ns", spare=9),
    Field("sol_fraction", "S", "share", spare=1),
    Field("speedup", "Speedup", "ratio", spare=2),
    Field("speedup_low", "Speedup low", "ratio", spare=8),
    Field("speedup_high", "Speedup high", "ratio", spare=8),
    Field("verdict", "Verdict", "text", spare=3),
    Field("own", "Own kernels", "share", spare=7),
    Field("note", "Note", "name", spare=4),
    Field("concerns", "Concerns", "name", spare=10),
    Field("device", "Device", "text", spare=11),
)
_RUNS = (
    Field("run", "Run", "name"),
    Field("date", "Date", "text"),
    Field("device", "Device", "text", spare=1),
    Field("stage", "Stage", "text", spare=2),
    Field("clocks", "Clocks, median", "text", spare=3),
    Field("throttled", "Throttled", "text", spare=2),
    Field("inferometer", "Inferometer", "text", spare=5),
    Field("versions", "Versions", "text", spare=4),
)
ABOVE = "S above 100 %"


def ranked_section(found: DeviceRanking) -> Section:
    """The candidates in order."""
    rows = [_ranked_row(each, found) for each in found.candidates]
    return Section(f"Ranking on {found.title}", _RANKING, frame_of(rows, _RANKING), [*_ranking_notes(found)])


def operators_section(found: DeviceRanking) -> Section:
    """One row per operator and candidate, the most important operator first."""
    rows = [_operator_row(name, who, score) for name, scored in found.operators for who, score in scored]
    words = () if found.functional_only else ("Of the shapes that all candidates of the operator ran.",)
    frame = frame_of(rows, _OPERATORS)
    return Section(f"Operators on {found.title}", _OPERATORS, frame, words)


def shapes_section(found: DeviceRanking) -> Section:
    """Every shape of every candidate, shape by shape."""
    order = {name: i for i, (name, _) in enumerate(found.operators)}
    results = sorted(found.results(), key=lambda each: (order[each.operator], *_place(each)))
    rows = [_shape_row(each, found) for each in results]
    frame = frame_of(rows, _SHAPES).with_columns(_texts("instead", rows))
    return Section(f"Shapes on {found.title}", _SHAPES, frame)


def every_shape(ranking: Ranking) -> Section:
    """Those of all devices as one table, with a column that says why there is no S."""
    rows = [_shape_row(each, device) for device in ranking.devices for each in device.results()]
    fields = (*_SHAPES, Field("instead", "No S", "text"))
    return Section("Shapes", fields, frame_of(rows, fields))


def runs_section(ranking: Ranking) -> Section:
    """The conditions that each run was made under."""
    rows = [
        {
            "run": name,
            "date": run.date,
            "device": run.device,
            "stage": f"{run.stage}, {FUNCTIONAL_ONLY}" if run.functional_only else run.stage,
            "clocks": clock_of(run),
            "throttled": ", ".join(f"{why} {format_share(part)}" for why, part in run.conditions.throttled.items())
            or None,
            "inferometer": run.inferometer,
            "versions": versions_of(run),
        }
        for name, run in ranking.runs
    ]
    return Section("Runs", _RUNS, frame_of(rows, _RUNS))


def rank_words(each: Ranked) -> str:
    """`2`, or `2=` of a tie."""
    return "-" if each.rank is None else f"{each.rank}=" if each.is_tied else f"{each.rank}"


def _ranked_row(each: Ranked, found: DeviceRanking) -> dict[str, Any]:
    score = each.score
    fast = score.fast or {}
    return {
        "rank": rank_words(each),
        "contender": each.name,
        "right": f"{score.right:,} of {score.asked:,}",
        "score": _value(score.strict.median),
        "score_range": _range(score.strict.median),
        "speedup": _value(score.speedup),
        "speedup_range": _range_of_ratio(score.speedup),
        "fast_1": fast.get("1"),
        "fast_1_5": fast.get("1.5"),
        "fast_2": fast.get("2"),
        "right_only": _value(score.over_right.median),
        "geometric_mean": _value(score.over_right.geometric_mean),
        "mean": _value(score.over_right.mean),
        "time_weighted": _value(score.over_right.time_weighted),
        "pooled": _value(score.pooled),
        "covered": None if found.functional_only else score.importance_covered,
        "below_launch": score.below_launch or None,
        "own": each.own,
        "mark": ", ".join(_marks(each, found)) or None,
    }


def _marks(each: Ranked, found: DeviceRanking) -> Iterator[str]:
    if found.functional_only:
        yield FUNCTIONAL_ONLY
    if each.name == found.base:
        yield "base"
    if each.is_library:
        yield "library"
    if each.score.above_one:
        yield ABOVE


def _ranking_notes(found: DeviceRanking) -> Iterator[str]:
    if found.functional_only:
        yield "Functional only: times of a CPU show that the kernels run, not how fast they are. There is no score."
        return
    if found.by == "score":
        yield "Score: importance-weighted median of S; wrong or untimed shapes count as 0. All right stand first."
    elif found.by == "speedup":
        yield f"No score, as no S is known: ordered by the geometric mean of the speedup over {found.base}."
    if any(each.is_tied for each in found.candidates):
        yield "=: a tie; its interval overlaps that of the first of the rank."
    if any(each.score.below_launch for each in found.candidates):
        yield "Below launch: the bound is below what a launch takes; these shapes count as all others do."
    if found.base is not None and found.by == "score":
        yield f"Speedup and fast_p are over {found.base}."


def _operator_row(name: str, candidate: str, score: Score) -> dict[str, Any]:
    own = next(iter(score.operators), None)
    return {
        "operator": name,
        "contender": candidate,
        "right": f"{score.right:,} of {score.asked:,}",
        "importance": score.importance_asked or None,
        "sol_fraction": None if own is None else _value(own.over_right.median),
        "geometric_mean": None if own is None else _value(own.over_right.geometric_mean),
        "speedup": _value(score.speedup),
        "below_launch": score.below_launch or None,
    }


def _texts(column: str, rows: Sequence[Mapping[str, Any]]) -> pl.Series:
    """A column that no field shows: what stands where a number of another is missing."""
    return pl.Series(column, [row[column] for row in rows], dtype=pl.String)


def _place(result: ShapeResult) -> tuple[str, int, str]:
    return result.operator, -1 if result.index is None else result.index, result.shape


def _shape_row(result: ShapeResult, found: DeviceRanking) -> dict[str, Any]:
    timed = {} if found.functional_only else {**_times(result), **_judged(result, found.base)}
    return {
        "operator": result.operator,
        "shape": result.shape,
        "contender": result.candidate,
        "right": "right" if result.is_right else "wrong",
        **timed,
        "note": _note(result),
        "concerns": "; ".join(result.concerns) or None,
        "device": found.device,
        "instead": why_no_fraction(result, functional_only=found.functional_only),
    }


def _times(result: ShapeResult) -> dict[str, Any]:
    cold, warm, bound = result.timing("cold"), result.timing("warm"), bound_of(result)
    return {
        "cold_ns": cold and cold.median_ns,
        "low_ns": cold and cold.low_ns,
        "high_ns": cold and cold.high_ns,
        "warm_ns": warm and warm.median_ns,
        "samples": cold and cold.samples,
        "timer": cold and cold.timer,
        "bound_ns": bound and bound.bound_ns,
        "binding": bound and bound.binding,
        "launch_ns": bound and bound.launch_ns,
        "own": result.attribution and result.attribution.own,
    }


def _judged(result: ShapeResult, base: str | None) -> dict[str, Any]:
    speedup, compared = speedup_over(result, base), versus(result, base)
    return {
        "sol_fraction": _value(sol_fraction(result)),
        "speedup": _value(speedup),
        "speedup_low": speedup and speedup.low,
        "speedup_high": speedup and speedup.high,
        "verdict": compared and compared.verdict,
    }


def _note(result: ShapeResult) -> str | None:
    """Why it is wrong, or what is odd about its S."""
    fraction = sol_fraction(result)
    return ABOVE if fraction is not None and fraction.value > 1 else result.failure


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _range_of_ratio(figure: Figure | None) -> str | None:
    """None of a base, which is 1 by definition."""
    return None if figure is None or figure.low == figure.high else f"{figure.low:.3f} to {figure.high:.3f}"


def _range(figure: Figure | None) -> str | None:
    return None if figure is None else f"{format_share(figure.low)} to {format_share(figure.high)}"
