"""Named ranges of the host that mark steps, though no tool we know gave them their names: `step 12`, `forward`.

A name must speak of a step, and its ranges, whose names differ in numbers only, must follow each other on one thread,
hold calls of launches nearly always, and hold most of the calls that launched anything. So ranges of layers, of epochs
and of parts of a step are none.
"""

import re

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.named_ranges import on_device
from inferometer.trace.trace import Trace

SPANS = ("span", "domain", "rank", "process", "thread", "device", "stream", "start_ns", "dur_ns")
MARKS = pl.Schema(
    {
        "step": pl.Int64(),
        "phase": pl.String(),
        "rank": pl.Int64(),
        "process": pl.Int64(),
        "start_ns": pl.Int64(),
        "wall_ns": pl.Int64(),
    }
)
_NUMBER = re.compile(r"\d{1,18}")
_PHASE = re.compile(r"prefill|decode")
_STEP = re.compile(r"(?<![a-z])(?:steps?|iter|iterations?|forward|batch|execute|prefill|decode)(?![a-z])")
_OTHER = re.compile(r"layer|block|head|expert|module|bucket|micro|optimizer|backward|epoch|attention|mlp|hook|autograd")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FEWEST = 3  # ranges: two show no period
_HOLDING = 0.9  # of the ranges hold a launch
_LEAST_HELD = 0.8  # of the launches' calls lie in the ranges: a forward pass of training holds about a third
_AS_MANY = 0.02  # of the calls: of kinds of ranges that hold nearly the same, the outermost are the steps


class _Kind(msgspec.Struct, frozen=True):
    """Ranges of one thread whose names differ in numbers only, by start. `held`: the share of the calls inside."""

    name: str
    ranges: pl.DataFrame
    held: float


def find_marks(trace: Trace) -> tuple[pl.DataFrame, str | None]:
    """The ranges that mark steps, with columns of `MARKS`, and how their names read; empty where there are none."""
    if not {"spans", "calls", "launches"} <= trace.scope:
        return pl.DataFrame(schema=MARKS), None
    spans = trace.spans.filter(~on_device(), pl.col("dur_ns") > 0).select(SPANS).collect()
    names = {span: _template(span) for span in spans["span"].unique() if _speaks_of_steps(span)}
    if not names:
        return pl.DataFrame(schema=MARKS), None
    named = spans.filter(pl.col("span").is_in(list(names)))
    named = named.with_columns(pl.col("span").replace_strict(names, return_dtype=pl.String).alias("name"))
    kinds: list[_Kind] = []
    for owner, of_owner in named.group_by("rank", "process", maintain_order=True):
        best = _best(of_owner, _called(trace, *owner))
        kinds += [] if best is None else [best]
    if not kinds:
        return pl.DataFrame(schema=MARKS), None
    return pl.concat([_marks(kind.ranges) for kind in kinds]), f"ranges named `{kinds[0].name}`"


def _speaks_of_steps(span: str) -> bool:
    words = _CAMEL.sub("_", span).lower()
    return bool(_STEP.search(words)) and not _OTHER.search(words) and not span.startswith(("aten::", "cuda", "hip"))


def _template(span: str) -> str:
    """The name with `N` for each number, and without its phase: `prefill 3` and `decode 4` are of one kind."""
    return _PHASE.sub("prefill/decode", _NUMBER.sub("N", span))


def _called(trace: Trace, rank: object, process: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """When the calls that launched work began, sorted."""
    of_owner = [pl.col("rank").eq_missing(pl.lit(rank, pl.Int64)), pl.col("correlation_id").is_not_null()]
    launched = trace.launches.filter(of_owner).select("correlation_id").unique()
    calls = trace.calls.filter(*of_owner, pl.col("process").eq_missing(pl.lit(process, pl.Int64)))
    found = calls.join(launched, on="correlation_id", how="semi").select("start_ns").collect()
    return np.sort(found["start_ns"].to_numpy())


def _best(named: pl.DataFrame, called: np.ndarray[tuple[int], np.dtype[np.int64]]) -> _Kind | None:
    """The outermost kind of range that could be a step, among those that hold most calls."""
    if not len(called):
        return None
    kinds = []
    for (name, _), ranges in named.group_by("name", "thread", maintain_order=True):
        kind = _kind(str(name), ranges.sort("start_ns", "span"), called)
        if kind is not None:
            kinds.append(kind)
    if not kinds:
        return None
    most = max(kind.held for kind in kinds)
    return min(
        (kind for kind in kinds if kind.held >= most - _AS_MANY), key=lambda kind: (kind.ranges.height, kind.name)
    )


def _kind(name: str, ranges: pl.DataFrame, called: np.ndarray[tuple[int], np.dtype[np.int64]]) -> _Kind | None:
    start, end = ranges["start_ns"].to_numpy(), (ranges["start_ns"] + ranges["dur_ns"]).to_numpy()
    has_numbers = "N" in name and bool((ranges["span"].str.contains(r"\d")).all())
    if len(start) < _FEWEST or (start[1:] < end[:-1]).any():
        return None
    if has_numbers and not ranges["span"].is_unique().all():
        return None  # numbers that come again are of something within a step
    inside = np.searchsorted(called, end) - np.searchsorted(called, start)
    held = float(inside.sum() / len(called))
    if np.mean(inside > 0) < _HOLDING or held < _LEAST_HELD:
        return None
    return _Kind(name, ranges, held)


def _marks(ranges: pl.DataFrame) -> pl.DataFrame:
    """Steps with the one number that differs from range to range, else without numbers."""
    numbers = [_NUMBER.findall(span) for span in ranges["span"]]
    width = {len(found) for found in numbers}
    columns = list(zip(*numbers, strict=True)) if len(width) == 1 else []
    varying = [[int(text) for text in column] for column in columns if len(set(column)) > 1]
    steps = varying[0] if len(varying) == 1 else [None] * ranges.height
    phases = [found[0] if (found := _PHASE.search(span)) else None for span in ranges["span"]]
    return ranges.select(
        pl.Series("step", steps, dtype=pl.Int64),
        pl.Series("phase", phases, dtype=pl.String),
        "rank",
        "process",
        "start_ns",
        pl.col("dur_ns").alias("wall_ns"),
    )
