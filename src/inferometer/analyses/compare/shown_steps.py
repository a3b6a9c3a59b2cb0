"""Steps of two runs to set side by side on one time axis: which steps, what ran in them, and what corresponds.

A step is what one device does in one complete cycle, as the comparison has it: it begins where the work before it
ends and ends with its own last work, so it holds the idle time in front of its launches. Of many steps the median, the
slowest and the fastest are taken, and others at even distances of their numbers. In a step with very many launches
neighbours on a stream that are short become one box, with their number and summed time.

Launches correspond where the comparison calls their kernels one and both steps call them equally often: the k-th of
the one is the k-th of the other. Of kernels that are called more often in one of the steps nothing corresponds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.compare.activity.activity import LANE, Activity
from inferometer.analyses.compare.activity.launch_activity import read_launches
from inferometer.analyses.compare.activity.step_marks import Marks
from inferometer.analyses.compare.comparison import Comparison
from inferometer.analyses.compare.matches import Match
from inferometer.trace.trace import Trace

MOST_STEPS = 40
"""Steps of one run that are shown."""

MOST_BOXES = 3_000
"""Boxes of one step that are shown."""

MOST_BOXES_OF_RUN = 20_000
BOXES = pl.Schema(
    {
        "stream": pl.String(),
        "start_ns": pl.Int64(),
        "dur_ns": pl.Int64(),
        "kernel": pl.String(),
        "launches": pl.Int64(),
        "summed_ns": pl.Int64(),
    }
)
Groups = tuple[Mapping[str, int], Mapping[str, int]]


class ShownStep(msgspec.Struct, frozen=True):
    """One step. `number`: as the run counts them. `place`: rank and device. `idle_ns`: in which the device ran nothing.

    `boxes`: by stream and start, counted from the step's own start, which is the end of the work before it: what began
    next to that work, on another stream, has a start below 0. A box is a launch of `kernel`; with several `launches`,
    short neighbours, it spans them all, and `kernel` is null.
    """

    number: int
    place: tuple[int | None, str | None]
    start_ns: int
    dur_ns: int
    idle_ns: int
    boxes: pl.DataFrame

    @property
    def launches(self) -> int:
        """All of them, those in merged boxes too."""
        return int(self.boxes["launches"].sum())


class ShownRun(msgspec.Struct, frozen=True):
    """Steps of a run in order, of `of` complete ones; `median`, `slowest`, `fastest` are places in `steps`."""

    steps: tuple[ShownStep, ...]
    of: int
    median: int = 0
    slowest: int = 0
    fastest: int = 0


class ShownSteps(msgspec.Struct, frozen=True):
    """Steps of both runs. `groups`: by kernel of either run, the number of its match; empty where nothing corresponds.

    `per`: "step", or "recording" where a run is one window.
    """

    base: ShownRun
    candidate: ShownRun
    groups: Groups = msgspec.field(default=({}, {}))
    per: Literal["step", "recording"] = "step"


def shown_steps(base: Trace, candidate: Trace, found: Comparison) -> ShownSteps | None:
    """The steps of the phase on which the verdict rests; None without launches of both runs in complete cycles.

    Args:
        base: The run.
        candidate: The other.
        found: Their comparison.
    """
    pair, (first, second) = found.leading.pair, found.sides.marks
    if first is None or second is None or not pair.base.basis == pair.candidate.basis == "launches":
        return None
    runs = _run(base, first, pair.base), _run(candidate, second, pair.candidate)
    if not all(run.steps for run in runs):
        return None
    is_recording = any(marks.steps.is_empty() for marks in (first, second))
    groups: Groups = ({}, {}) if found.comparable.stops else _groups(found.changes.matches)
    return ShownSteps(*runs, groups=groups, per="recording" if is_recording else "step")


def corresponding(base: ShownStep, candidate: ShownStep, groups: Groups) -> list[tuple[int, int]]:
    """Boxes of both steps that correspond, by their places in `boxes`, in the order of the base's.

    The k-th launch of a kernel is the k-th by start, whatever its stream.
    """
    left, right = (_by_group(step, of) for step, of in zip((base, candidate), groups, strict=True))
    pairs = []
    for group, kernels in left.items():
        others = right.get(group, {})
        counts = {len(rows) for rows in (*kernels.values(), *others.values())}
        if others and len(counts) == 1:
            first, second = next(iter(kernels.values())), next(iter(others.values()))
            pairs += list(zip(first, second, strict=True))
    return sorted(pairs)


def _by_group(step: ShownStep, groups: Mapping[str, int]) -> dict[int, dict[str, list[int]]]:
    """The rows of each kernel of each group, by start."""
    found: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, kernel in step.boxes.with_row_index("row").sort("start_ns", "row").select("row", "kernel").iter_rows():
        if kernel in groups:
            found[groups[kernel]][kernel].append(row)
    return found


def _groups(matches: Sequence[Match]) -> Groups:
    groups: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for number, match in enumerate(matches):
        if match.base and match.candidate and "host" not in {cls for _, cls in (*match.base, *match.candidate)}:
            for names, keys in zip(groups, (match.base, match.candidate), strict=True):
                names.update({name: number for name, _ in keys if name not in match.shared})
    return groups


def _run(trace: Trace, marks: Marks, activity: Activity) -> ShownRun:
    every = activity.cycles.filter("complete")
    if every.is_empty():
        return ShownRun((), 0)
    times = every["dur_ns"].to_numpy()
    ranked = np.argsort(times, kind="stable")
    extremes = [int(ranked[(len(ranked) - 1) // 2]), int(ranked[-1]), int(ranked[0])]
    launched = read_launches(trace, marks)
    work = launched.work.join(launched.lanes.select("lane", *LANE), on="lane")
    steps: dict[int, ShownStep] = {}
    left = MOST_BOXES_OF_RUN
    for row in dict.fromkeys([*extremes, *_spread(every.height)]):
        step = _step(work, every.row(row, named=True))
        left -= step.boxes.height
        if row not in extremes and (left < 0 or len(steps) == MOST_STEPS):
            break
        steps[row] = step
    order = sorted(steps)
    median, slowest, fastest = (order.index(row) for row in extremes)
    return ShownRun(tuple(steps[row] for row in order), every.height, median, slowest, fastest)


def _spread(count: int) -> list[int]:
    """Rows at even distances, every 32nd first, then every 16th …: where room ends, those before are spread, too."""
    every = np.unique(np.linspace(0, count - 1, min(count, MOST_STEPS)).round().astype(int)).tolist()
    return [*dict.fromkeys(row for stride in (32, 16, 8, 4, 2, 1) for row in every[::stride])]


def _step(work: pl.DataFrame, cycle: Mapping[str, Any]) -> ShownStep:
    is_own = [pl.col(name).eq_missing(pl.lit(cycle[name], dtype=work.schema[name])) for name in (*LANE, "cycle")]
    own = work.filter(is_own)
    dur_ns, idle_ns, number = (int(cycle[name]) for name in ("dur_ns", "idle_ns", "cycle"))
    start_ns = int((own["start_ns"] + own["dur_ns"]).to_numpy().max()) - dur_ns
    launches = own.select(
        pl.col("stream").cast(pl.String),
        pl.col("start_ns") - start_ns,
        "dur_ns",
        pl.col("kernel").cast(pl.String),
        pl.lit(1, dtype=pl.Int64).alias("launches"),
        pl.col("dur_ns").alias("summed_ns"),
    )
    rank, device = own.select("rank", pl.col("device").cast(pl.String)).row(0)
    return ShownStep(number, (rank, device), start_ns, dur_ns, idle_ns, merge_short(launches))


def merge_short(launches: pl.DataFrame) -> pl.DataFrame:
    """Boxes of the launches, at most `MOST_BOXES` where streams are fewer: the shortest neighbours become one.

    Args:
        launches: Of one step, with the columns of `BOXES`.
    """
    ordered = launches.sort("stream", "start_ns", maintain_order=True, nulls_last=True)
    if ordered.height <= MOST_BOXES:
        return ordered.select(list(BOXES))
    durations_ns = ordered["dur_ns"].sort()
    low, high = 0, ordered.height - 1
    while low < high:  # the smallest bound that is enough: each launch up to it is short
        middle = (low + high) // 2
        if _merged(ordered, durations_ns[middle]).height <= MOST_BOXES:
            high = middle
        else:
            low = middle + 1
    return _merged(ordered, durations_ns[low])


def _merged(ordered: pl.DataFrame, short_ns: int) -> pl.DataFrame:
    is_short = pl.col("dur_ns") <= short_ns
    anew = (~is_short | ~is_short.shift(1, fill_value=False)).cum_sum().over("stream")
    end = (pl.col("start_ns") + pl.col("dur_ns")).max()
    boxes = ordered.with_columns(anew.alias("box")).group_by("stream", "box", maintain_order=True).agg(
        pl.col("start_ns").min(),
        (end - pl.col("start_ns").min()).alias("dur_ns"),
        pl.when(pl.len() == 1).then(pl.col("kernel").first()).alias("kernel"),
        pl.len().cast(pl.Int64).alias("launches"),
        pl.col("dur_ns").sum().alias("summed_ns"),
    )  # fmt: skip
    return boxes.select(list(BOXES))


def kernels_of(steps: Iterable[ShownStep]) -> dict[str, int]:
    """Time of each kernel in these steps, ns, without what is merged; the most time first."""
    sums: Counter[str] = Counter()
    for step in steps:
        for kernel, time_ns in step.boxes.group_by("kernel").agg(pl.col("summed_ns").sum()).iter_rows():
            if kernel is not None:
                sums[kernel] += time_ns
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
