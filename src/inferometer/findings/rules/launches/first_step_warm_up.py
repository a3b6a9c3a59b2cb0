"""First steps that take much longer than like steps later in the run: tuning, compiling, allocating.

Looks at up to five steps from the run's beginning, as long as each is slow in one of these ways:

- It takes 1.5 times as long as every one of the like steps after the fifth (phase and number of tokens are the same,
  at least two of them), and is further from their median than eight of their scaled median absolute deviations. Where
  phase or tokens aren't known, half of that must be idle time of the device: else it may just have more to do.
- A fifth of it or more is spent in a compiler or tuner, in loading code or in allocating memory. Then that is what it
  takes beyond the usual, where no like step says.

Where steps weren't marked but found in the order of kernels, what ran before the first of them counts as a whole, if
it lasts 1.5 times as long as the longest step: a recording that begins within a step leaves less.

Healthy generated runs, whose steps spread by a few per cent, have none. A warm-up is no fault: it belongs to the
first run, not to the engine. So severity is `info` from 0.5 % of the wall time of all steps, `low` from 5 %: from
then on a mean over the steps is that much off.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.intervals import Times
from inferometer.analyses.launched_by.host_side import THREAD
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.names.apis import api_kind, canonical_api
from inferometer.names.compilers import is_compiling
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_SCALE = Scale("first_step_warm_up", low=0.05)
_WORTH_SAYING = 0.005
_MOST = 5
_LIKE = 2
_SLOWER = 1.5
_BEYOND_NOISE = 8 * 1.4826  # the deviation of a normal distribution is 1.4826 times its median absolute one
_PREPARING = 0.20
_IDLE = 0.5  # of what a step takes longer, unless it is known that it has no more tokens than others
_COLUMNS = ("step", "phase", "tokens", "start_ns", "wall_ns", "gap_ns")
_FOUND = frozenset({"is_partial", "confidence"})  # columns of steps that were found
_LOADS = re.compile(r"(?:cuda|cu|hip)(?:Module|Library)(?:Load|GetFunction|GetKernel)|(?:nvrtc|hiprtc)Compile")


class _Slow(msgspec.Struct, frozen=True):
    """A slow first step; `usual_ns` is of `like` steps, or what is left without preparing."""

    step: dict[str, Any]
    extra_ns: float
    usual_ns: float
    like: int


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or launches.steps is None or "start_ns" not in launches.steps.steps.columns:
        return
    steps = launches.steps.steps.drop_nulls(["wall_ns", "start_ns"]).sort("start_ns", maintain_order=True)
    first = pl.concat([_before(launches, steps), steps.head(_MOST).select(_COLUMNS)])
    prepared = _preparing(launches, first)
    slow = list(_slow(first, steps.slice(_MOST), prepared))
    wall_ns = int(steps["wall_ns"].sum()) + sum(each.step["wall_ns"] for each in slow if each.step["step"] is None)
    extra_ns = sum(each.extra_ns for each in slow)
    share = extra_ns / wall_ns if wall_ns > 0 else 0.0
    if share < _WORTH_SAYING:
        return
    severity: Severity = _SCALE.severity(share) or "info"
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{_which(slow, first)} {format_duration(extra_ns)} beyond the usual",
        evidence=(
            *(_sentence(each) for each in slow),
            *_reasons(prepared, [each.step for each in slow]),
            (
                f"The {format_duration(extra_ns)} are {format_share(share)} of the wall time of all {steps.height:,} "
                f"steps{_and_before(slow)}."
            ),
        ),
        size_ns=round(extra_ns),
        share=share,
        next="Leave this out of measurements, or warm the engine up before the profiler starts.",
    )


def _which(slow: list[_Slow], first: pl.DataFrame) -> str:
    if len(slow) > 1:
        return f"{len(slow)} of the first steps take"
    number = slow[0].step["step"]
    if number is None:
        return "what runs before the first step takes"
    earliest = first["step"].drop_nulls()[0]
    return "the first step takes" if number == earliest else f"step {number}, one of the first, takes"


def _before(launches: "LaunchEvidence", steps: pl.DataFrame) -> pl.DataFrame:
    """What ran before the first step, in a row as of a step without a number; none where steps are marked."""
    lacking = steps.select(_COLUMNS).head(0)
    if steps.is_empty() or not _FOUND.issubset(steps.columns) or steps["confidence"].null_count():
        return lacking
    began, first_ns = launches.work["start_ns"].sort()[0], steps["start_ns"][0]
    if first_ns - began < _SLOWER * max(steps["wall_ns"]):
        return lacking
    row = {"step": None, "phase": None, "tokens": None, "start_ns": began, "wall_ns": first_ns - began, "gap_ns": None}
    return pl.DataFrame([row], schema=lacking.schema)


def _slow(first: pl.DataFrame, later: pl.DataFrame, prepared: pl.DataFrame) -> Iterator[_Slow]:
    """The slow steps at the beginning; a step of which nothing is known doesn't end them."""
    for step in first.iter_rows(named=True):
        wall_ns = step["wall_ns"]
        if step["step"] is None:
            yield _Slow(step, wall_ns, 0, 0)
            continue
        alike = later.filter(
            pl.col("phase").eq_missing(pl.lit(step["phase"], pl.String)),
            pl.col("tokens").eq_missing(pl.lit(step["tokens"], pl.Int64)),
        )
        like = alike["wall_ns"].to_numpy()
        busy_ns = _covered_ns(prepared, step)
        if len(like) >= _LIKE:
            usual_ns = float(np.median(like))
            noise_ns = _BEYOND_NOISE * float(np.median(np.abs(like - usual_ns)))
            if wall_ns < _SLOWER * like.max() or wall_ns <= usual_ns + noise_ns or _works_more(step, alike):
                return
            yield _Slow(step, wall_ns - usual_ns, usual_ns, len(like))
        elif wall_ns > 0 and busy_ns >= _PREPARING * wall_ns:
            yield _Slow(step, busy_ns, wall_ns - busy_ns, 0)


def _works_more(step: dict[str, Any], like: pl.DataFrame) -> bool:
    """Whether a step whose phase or tokens aren't known may just have more to do: less than half of it is idle time."""
    if step["phase"] is not None and step["tokens"] is not None:
        return False
    extra_ns, usual_gap_ns = step["wall_ns"] - like["wall_ns"].median(), like["gap_ns"].median()
    return step["gap_ns"] is None or usual_gap_ns is None or step["gap_ns"] - usual_gap_ns < _IDLE * extra_ns


def _preparing(launches: "LaunchEvidence", steps: pl.DataFrame) -> pl.DataFrame:
    """What was called in these steps that a warm engine doesn't call: `what`, `name`, `start_ns`, `end_ns`.

    Compilers call each other: what began inside of the same on its thread is not in it.
    """
    if steps.is_empty():
        return pl.DataFrame(schema={"what": pl.String, "name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64})
    first, last = steps["start_ns"].min(), (steps["start_ns"] + steps["wall_ns"]).max()
    inside = (pl.col("start_ns") >= first) & (pl.col("start_ns") < last)
    times = [pl.col(*THREAD, "start_ns"), (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")]
    calls = launches.trace.calls.filter(inside).select(pl.col("api").alias("name"), *times).collect()
    kinds = {name: _kind(name) for name in calls["name"].unique()}
    known = calls.with_columns(pl.col("name").replace_strict(kinds, return_dtype=pl.String).alias("what"))
    frames = launches.trace.frames.filter(inside).select(pl.col("frame").alias("name"), *times).collect()
    compilers = [name for name in frames["name"].unique() if name and is_compiling(name)]
    compiling = frames.filter(pl.col("name").is_in(compilers)).with_columns(pl.lit("compiling or tuning").alias("what"))
    columns = ("what", "name", *THREAD, "start_ns", "end_ns")
    every = pl.concat([known.drop_nulls("what").select(columns), compiling.select(columns)])
    every = every.sort("what", *THREAD, "start_ns", "end_ns", descending=[*[False] * (2 + len(THREAD)), True])
    open_until = pl.col("end_ns").cum_max().shift().over("what", *THREAD)
    outer = every.filter((pl.col("start_ns") >= open_until).fill_null(value=True))
    return outer.select("what", "name", "start_ns", "end_ns")


def _kind(api: str) -> str | None:
    if _LOADS.match(api) is not None:
        return "loading code"
    return "allocating memory" if api_kind(api) == "allocation" and "Free" not in canonical_api(api) else None


def _within(prepared: pl.DataFrame, step: dict[str, Any]) -> pl.DataFrame:
    first, last = step["start_ns"], step["start_ns"] + step["wall_ns"]
    return prepared.filter(pl.col("start_ns") >= first, pl.col("start_ns") < last)


def _covered_ns(prepared: pl.DataFrame, step: dict[str, Any]) -> int:
    """Time of the step in which at least one of these was open; frames call each other."""
    own = _within(prepared, step).sort("start_ns")
    if own.is_empty():
        return 0
    start: Times = own["start_ns"].to_numpy()
    end: Times = np.minimum(own["end_ns"].to_numpy(), step["start_ns"] + step["wall_ns"])
    reached = np.maximum.accumulate(end)
    before = np.concatenate([[start[0]], reached[:-1]])
    return int(np.maximum(0, end - np.maximum(start, before)).sum())


def _sentence(each: _Slow) -> str:
    step = each.step
    if step["step"] is None:
        return f"{format_duration(step['wall_ns'])} pass before the first step, with launches that are of no step."
    took = f"Step {step['step']} ({step['phase'] or 'phase not known'}) takes {format_duration(step['wall_ns'])}"
    if not each.like:
        outside = "outside of compiling, tuning, loading code and allocating memory"
        return f"{took}, {format_duration(each.usual_ns)} of it {outside}; too few later steps are like it."
    ratio = step["wall_ns"] / each.usual_ns
    return f"{took}, {ratio:.1f}x the median of {each.like:,} like steps after the first {_MOST}."


def _reasons(prepared: pl.DataFrame, steps: list[dict[str, Any]]) -> Iterator[str]:
    own = pl.concat([_within(prepared, step) for step in steps])
    for (what,), rows in own.sort("what").partition_by("what", as_dict=True, maintain_order=True).items():
        named = rows.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
        longest = named.sort("dur_ns", descending=True).row(0, named=True)
        covered_ns = sum(_covered_ns(rows, step) for step in steps)
        name, dur = longest["name"], format_duration(longest["dur_ns"])
        many = f"{rows.height:,} outermost calls; the longest, {name}, takes {dur}"
        calls = f"1 call of {name}" if rows.height == 1 else many
        of = "it" if len(steps) == 1 else "these steps"
        yield f"{format_duration(covered_ns)} of {of} went to {what}, in {calls}."


def _and_before(slow: list[_Slow]) -> str:
    return " and of what runs before them" if any(each.step["step"] is None for each in slow) else ""


RULE = Rule("first_step_warm_up", _find, (_SCALE,))
