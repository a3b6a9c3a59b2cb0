"""The steps as sentences: what grows, what was disturbed and how, what is outside the GPU, and what can't be known."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from inferometer.analyses.steps.class_words import say_class
from inferometer.analyses.steps.disturbances import FEWEST, is_without_work
from inferometer.analyses.steps.drift import BOTH, BUSY, CLASS, CONTEXT, GAP, POSITION, TIME, WALL
from inferometer.analyses.steps.growth import ALL, CONTEXTS, format_slope
from inferometer.analyses.steps.outliers import GAP as HOST_GAP
from inferometer.analyses.steps.outliers import REST
from inferometer.analyses.steps.sources import RunSteps
from inferometer.units import format_duration, format_share, format_signed_duration

_SAID_GROWTH = (
    0.05  # of the mean GPU time per token: growth of a class by less over the contexts isn't worth a sentence
)
_SAID_GAP = 0.02  # of the wall time
_SAID_FIRST_GAP = 0.05  # of the step's wall time without it
_SAID_LAUNCH_BOUND = 0.05  # of the wall time
_UNPARTED = "; no step begins a new decode run, so drift and growth with context can't be distinguished"
_CLASSES = 3
_NUMBERS = 12  # ranges of steps to name


def find_remarks(
    steps: pl.DataFrame,
    phases: pl.DataFrame,
    growth: pl.DataFrame,
    found: RunSteps,
    *,
    differences: pl.DataFrame,
    trends: pl.DataFrame,
) -> Iterator[str]:
    """Sentences about steps; the frames are those of `StepTable`, `steps` with `used` and `judged`."""
    yield from _growth(steps, growth)
    yield from _disturbed(steps, differences)
    yield from _gaps(phases)
    yield from _ahead(steps)
    yield from _launch_bound(phases)
    yield from _capturing(steps)
    yield from _trends(trends)
    yield from _first_gaps(steps)
    yield from _other_tokens(steps)
    yield from _not_whole(steps)
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
        grows = f"{say_class(row['class'])} grows by {format_slope(row['slope_ns'])} per token and KV position"
        first, last = (row[name] and format_share(row[name]) for name in ("first_share", "last_share"))
        shares = f": {first} of GPU time in the first decode step, {last} in the last" if first and last else ""
        yield f"{grows} (R² {row['r2']:.4f}){shares}."
    for row in rows.filter(pl.col("class") == ALL).iter_rows(named=True):
        yield (
            f"A decoded token takes {format_duration(row['intercept_ns'])} on the GPU, and "
            f"{format_slope(row['slope_ns'])} more for each KV position."
        )


def _disturbed(steps: pl.DataFrame, differences: pl.DataFrame) -> Iterator[str]:
    for (phase,), own in steps.partition_by("phase", as_dict=True, maintain_order=True).items():
        some = own.filter("disturbed")
        if some.is_empty():
            continue
        were = "was" if some.height == 1 else "were"
        kept = "kept in" if some["used"].all() else "left out of"
        some = some.with_columns(lost_ns=pl.sum_horizontal("excess_ns", "gap_excess_ns"))
        worst, lost = some.sort("lost_ns").row(-1, named=True), int(some["lost_ns"].sum())
        yield (
            f"{some.height:,} of {own.height:,} {_phase_name(phase)}steps {were} disturbed and {kept} the medians: "
            f"{_ranges(some, own)}. That cost {format_duration(lost)}; most in step {worst['step']}: {worst['why']}."
        )
        yield from _different(differences.filter(pl.col("step") == worst["step"]), worst)


def _different(parts: pl.DataFrame, step: dict[str, Any]) -> Iterator[str]:
    """What made the worst step longer, where that is known of more than the gap."""
    largest = parts.filter(~pl.col("what").is_in([REST, HOST_GAP])).head(_CLASSES)
    if largest.is_empty():
        return
    named = [_part(row) for row in parts.filter(pl.col("what") != REST).head(_CLASSES).iter_rows(named=True)]
    rest_ns = int(parts["excess_ns"].sum()) - int(
        parts.filter(pl.col("what") != REST)["excess_ns"].head(_CLASSES).sum()
    )
    yield (
        f"Step {step['step']} took {format_duration(int(parts['excess_ns'].sum()))} more than usual: "
        f"{', '.join(named)}; all else {format_signed_duration(rest_ns)}."
    )


def _part(row: dict[str, Any]) -> str:
    if row["what"] == HOST_GAP:
        return f"the host's gap {format_signed_duration(row['excess_ns'])}"
    how = f" ({row['what']})" if row["what"] not in ("slower", "faster") else ""
    if row["launches"] is not None and row["launches"] != row["usual_launches"]:
        how = f" ({row['launches']:,} launches where {row['usual_launches']:g} are usual)"
    return f"{say_class(row['class'])} {format_signed_duration(row['excess_ns'])}{how}"


def _gaps(phases: pl.DataFrame) -> Iterator[str]:
    for row in phases.iter_rows(named=True):
        gap, window = row["gap_median_ns"], row["window_median_ns"]
        if gap is not None and window and gap >= _SAID_GAP * window:
            what = f"{_phase_name(row['phase'])}step"
            yield (
                f"Outside device work, a {what} takes {format_duration(gap)}, {format_share(gap / window)} of "
                f"{_window_name(row)} (medians)."
            )


def _ahead(steps: pl.DataFrame) -> Iterator[str]:
    """Where marks are shorter than the device's work, as of a host that only replays graphs."""
    known = steps.drop_nulls(["wall_ns", "gpu_busy_ns"])
    for own in known.partition_by("phase", maintain_order=True):
        wall_ns, busy_ns = (int(own[name].sum()) for name in ("wall_ns", "gpu_busy_ns"))
        if busy_ns > wall_ns:
            what = f"{_phase_name(own['phase'][0])}step"
            yield (
                f"The host runs ahead: {own.height:,} {what}{'s last' if own.height > 1 else ' lasts'} "
                f"{format_duration(wall_ns)} there, and {'keep' if own.height > 1 else 'keeps'} the device busy for "
                f"{format_duration(busy_ns)}."
            )


def _window_name(row: dict[str, Any]) -> str:
    is_wall = row["window_median_ns"] == row["wall_median_ns"]
    return "its wall time" if is_wall else "its window"


def _launch_bound(phases: pl.DataFrame) -> Iterator[str]:
    for row in phases.iter_rows(named=True):
        share = row["launch_bound_share"]
        if share is not None and share >= _SAID_LAUNCH_BOUND:
            yield (
                f"A {_phase_name(row['phase'])}step is launch-bound for {format_share(share)} of {_window_name(row)} "
                "(median): the device had gone idle and the host had not queued its next work, or ran kernels shorter "
                "than their launch."
            )


def _trends(trends: pl.DataFrame) -> Iterator[str]:
    """What gets slower or quicker, along what, and what carries it; where nothing does, that."""
    steady = []
    for (phase, tokens, over), own in trends.partition_by(
        "phase", "tokens", "over", as_dict=True, maintain_order=True
    ).items():
        of = f" of {tokens:,} tokens" if tokens is not None else ""
        like = f"{own['steps'][0]:,} like {_phase_name(phase)}steps{of}"
        rows = {row["of"]: row for row in own.filter(pl.col("of") != CLASS).iter_rows(named=True)}
        moving = next((rows[name] for name in (WALL, BUSY) if name in rows and rows[name]["is_trend"]), None)
        if moving is None:
            steady += [] if over == POSITION else [like]
            continue
        if over == CONTEXT:
            yield f"The context of {like} grows all along the run: a drift over time can't be distinguished from that."
            continue
        carried = _carried(own.filter(pl.col("of") == CLASS), rows.get(GAP))
        yield f"{like[0].upper()}{like[1:]} {_moves(moving, over)}{carried}{_UNPARTED if over == BOTH else ''}."
    if steady:
        yield f"No drift beyond the noise in {'; '.join(steady)}."


def _moves(row: dict[str, Any], over: str) -> str:
    along = {POSITION: "with the position in their decode run", TIME: "over the run", BOTH: "over the run"}[over]
    verb = "get slower" if row["change_ns"] > 0 else "get quicker"
    what = "wall time" if row["of"] == WALL else "GPU busy time"
    change = format_signed_duration(row["change_ns"])
    return (
        f"{verb} {along}: {what} {change} in all, {format_share(abs(row['share'] or 0))} of the "
        f"median ({format_slope(row['low_ns'])} to {format_slope(row['high_ns'])} per step)"
    )


def _carried(classes: pl.DataFrame, gap: dict[str, Any] | None) -> str:
    named = [
        f"{say_class(row['class'])} {format_signed_duration(row['change_ns'])}"
        for row in classes.head(_CLASSES).iter_rows(named=True)
    ]
    named += (
        [f"the host's gap {format_signed_duration(gap['change_ns'])}"] if gap is not None and gap["is_trend"] else []
    )
    return f"; of that {', '.join(named)}" if named else ""


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


def _not_whole(steps: pl.DataFrame) -> Iterator[str]:
    is_seen = pl.col("gpu_busy_ns").is_not_null()
    for is_so, what in (
        (pl.col("is_partial") & is_seen, "at an end of the recording, perhaps cut"),
        (pl.col("is_partial") & ~is_seen, "known by their times alone, as the recording was asked to"),
        (pl.col("is_warm_up"), "warming up"),
        (is_without_work(), "without any launch"),
    ):
        some = steps.filter(is_so.fill_null(value=False))
        if some.height:
            were = "Step {} is" if some.height == 1 else "Steps {} are"
            yield f"{were.format(_ranges(some, steps))} {what}, and left out of all medians."


def _capturing(steps: pl.DataFrame) -> Iterator[str]:
    some = steps.filter(pl.col("captures") > 0)
    if some.height:
        what = "Step {} captures a graph" if some.height == 1 else "Steps {} capture graphs"
        yield f"{what.format(_ranges(some, steps))}: what is captured isn't run, so no launch-bound time is given."


def _untold(steps: pl.DataFrame, growth: pl.DataFrame) -> Iterator[str]:
    decode = steps.filter(pl.col("phase").is_null() | (pl.col("phase") == "decode"))
    if decode.height and decode["mean_kv"].null_count() == decode.height:
        yield "The source doesn't tell how much context its steps have: how they grow with it can't be known."
    elif growth.height and growth["slope_ns"].null_count() == growth.height:
        yield f"Decode steps have fewer than {CONTEXTS} different contexts: growth can't be derived from them."
    if steps.height and not steps["judged"].any():
        yield f"No phase has {FEWEST} like steps, so which of them were disturbed can't be known."
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
