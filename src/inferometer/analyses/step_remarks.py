"""The steps in words: what grows, what was disturbed, what is outside the GPU, and what can't be told."""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.step_disturbances import FEWEST
from inferometer.analyses.step_growth import ALL, CONTEXTS, format_slope
from inferometer.analyses.step_sources import RunSteps
from inferometer.units import format_duration, format_share

_SAID_GROWTH = 0.05  # of the mean GPU time a token: growth of a class by less over the contexts isn't worth a sentence
_SAID_GAP = 0.02  # of the wall time
_SAID_FIRST_GAP = 0.05  # of the step's wall time without it
_CLASSES = 3
_NUMBERS = 12  # ranges of steps to name


def find_remarks(steps: pl.DataFrame, phases: pl.DataFrame, growth: pl.DataFrame, found: RunSteps) -> Iterator[str]:
    """Sentences about steps; the frames are those of `StepTable`, `steps` with `used` and `judged`."""
    yield from _growth(steps, growth)
    yield from _disturbed(steps)
    yield from _gaps(phases)
    yield from _first_gaps(steps)
    yield from _other_tokens(steps)
    yield from _untold(steps, growth)
    yield from found.notes
    if len(found.runs) > 1:
        others = ", ".join(str(run) for run in found.runs if run != found.run)
        yield f"This is run {found.run}; --run shows the others: {others}."


def _growth(steps: pl.DataFrame, growth: pl.DataFrame) -> Iterator[str]:
    decode = steps.filter("used", pl.col("phase") == "decode", pl.col("mean_kv").is_not_null(), pl.col("tokens") > 0)
    mean_ns = decode.select((pl.col("gpu_busy_ns") / pl.col("tokens")).mean()).item() if decode.height else None
    if not mean_ns:
        return
    positions = float(decode["mean_kv"].max() - decode["mean_kv"].min())  # type: ignore[operator, arg-type]
    rows = growth.filter(pl.col("slope_ns") * positions > _SAID_GROWTH * mean_ns)
    for row in rows.filter(pl.col("class") != ALL).head(_CLASSES).iter_rows(named=True):
        grows = f"{row['class']} grows by {format_slope(row['slope_ns'])} per token and KV position"
        first, last = (row[name] and format_share(row[name]) for name in ("first_share", "last_share"))
        shares = f": {first} of GPU time in the first decode step, {last} in the last" if first and last else ""
        yield f"{grows} (R² {row['r2']:.4f}){shares}."
    for row in rows.filter(pl.col("class") == ALL).iter_rows(named=True):
        yield (
            f"A decoded token takes {format_duration(row['intercept_ns'])} on the GPU, and "
            f"{format_slope(row['slope_ns'])} more for each KV position."
        )


def _disturbed(steps: pl.DataFrame) -> Iterator[str]:
    for (phase,), own in steps.partition_by("phase", as_dict=True, maintain_order=True).items():
        some = own.filter("disturbed")
        if some.is_empty():
            continue
        were = "was" if some.height == 1 else "were"
        kept = "kept in" if own["used"].all() else "left out of"
        some = some.with_columns(lost_ns=pl.sum_horizontal("excess_ns", "gap_excess_ns"))
        worst, lost = some.sort("lost_ns").row(-1, named=True), int(some["lost_ns"].sum())
        yield (
            f"{some.height:,} of {own.height:,} {_phase_name(phase)}steps {were} disturbed and {kept} the medians: "
            f"{_ranges(some, own)}. That cost {format_duration(lost)}; most in step {worst['step']}: {worst['why']}."
        )


def _gaps(phases: pl.DataFrame) -> Iterator[str]:
    for row in phases.iter_rows(named=True):
        gap, wall = row["gap_median_ns"], row["wall_median_ns"]
        if gap is None or not wall or abs(gap) < _SAID_GAP * wall:
            continue
        what = f"{_phase_name(row['phase'])}step".strip()
        if gap < 0:
            yield (
                f"The GPU works for {format_duration(-gap)} longer than a {what} lasts: the host runs ahead, so its "
                "gap says nothing."
            )
        else:
            yield (
                f"Outside the GPU, a {what} takes {format_duration(gap)}, {format_share(gap / wall)} of its wall time."
            )


def _first_gaps(steps: pl.DataFrame) -> Iterator[str]:
    for own in steps.partition_by("phase", maintain_order=True):
        first = own.row(0, named=True)
        more = first["gap_excess_ns"]
        if more is not None and not first["disturbed"] and more > _SAID_FIRST_GAP * (first["wall_ns"] - more):
            yield (
                f"The gap of the first {_phase_name(first['phase'])}step, {first['step']}, is {format_duration(more)} "
                "longer than usual: warm-up, which doesn't count as a disturbance."
            )


def _other_tokens(steps: pl.DataFrame) -> Iterator[str]:
    """A few steps with other numbers of tokens than most, which a reader might take for faster ones."""
    for own in steps.filter(pl.col("tokens") > 0).partition_by("phase", maintain_order=True):
        usual = own["tokens"].mode().sort()[-1]
        others = own.filter(pl.col("tokens") != usual)
        if not 0 < others.height <= _CLASSES or own.height < FEWEST:
            continue
        for row in others.iter_rows(named=True):
            if row["excess_ns"] is None or row["disturbed"]:
                continue
            each, more = row["gpu_busy_ns"] or row["wall_ns"], row["excess_ns"]
            yield (
                f"Step {row['step']} has {row['tokens']:,} tokens, others {usual:,}: compared per token, it takes "
                f"{format_duration(each / row['tokens'])} where {format_duration((each - more) / row['tokens'])} "
                "is usual."
            )


def _untold(steps: pl.DataFrame, growth: pl.DataFrame) -> Iterator[str]:
    decode = steps.filter(pl.col("phase").is_null() | (pl.col("phase") == "decode"))
    if decode.height and decode["mean_kv"].null_count() == decode.height:
        yield "The source doesn't tell how much context its steps have: how they grow with it can't be said."
    elif growth.height and growth["slope_ns"].null_count() == growth.height:
        yield f"Decode steps have fewer than {CONTEXTS} different contexts: growth can't be told from them."
    if steps.height and not steps["judged"].any():
        yield f"No phase has {FEWEST} like steps, so which of them were disturbed can't be told."
    if steps.height and steps["wall_ns"].null_count():
        n = steps["wall_ns"].null_count()
        yield f"The wall time of {n:,} of {steps.height:,} steps isn't known."


def _phase_name(phase: object) -> str:
    return f"{phase} " if isinstance(phase, str) else ""


def _ranges(some: pl.DataFrame, own: pl.DataFrame) -> str:
    """`27–29, 39, 54–56`: numbers of steps that follow each other are a range."""
    numbers = own["step"].to_list()
    at = {number: i for i, number in enumerate(numbers)}
    ranges: list[list[int]] = []
    for number in some["step"]:
        if ranges and at[number] == at[ranges[-1][-1]] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    words = [f"{each[0]}–{each[-1]}" if len(each) > 1 else str(each[0]) for each in ranges]
    more = f" and {len(words) - _NUMBERS} more" if len(words) > _NUMBERS else ""
    return ", ".join(words[:_NUMBERS]) + more
