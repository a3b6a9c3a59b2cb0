"""What was measured so far, whole repetitions only: rows of calls, small while they wait and made into tables at last.

A call waits as 37 bytes; its texts, of which there are few different ones, are put next to it at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from inferometer.analyses.ab.measurement import CALLS, LOGITS, PASSES
from inferometer.engines.ab.completion import Completed
from inferometer.engines.ab.marks import read_marks
from inferometer.engines.paths import PathRecorder

_WAITING = {
    "node": pl.UInt32,
    "dur_ns": pl.Int64,
    "span_ns": pl.Int64,
    "backend": pl.Categorical,
    "sum": pl.Float64,
    "abs_sum": pl.Float64,
}


@dataclass
class Repetition:
    """One repetition: by arm, the calls of its pass with scopes, and both passes, without and with them.

    `short_waits`: as `PathRecorder` says, by arm.
    """

    calls: dict[str, pl.DataFrame] = field(default_factory=dict)
    plain: dict[str, Completed] = field(default_factory=dict)
    scoped: dict[str, Completed] = field(default_factory=dict)
    short_waits: dict[str, float] = field(default_factory=dict)


def take_calls(recorder: PathRecorder) -> pl.DataFrame:
    """The recorder's rows, which it has no more; its paths stay, so that a path has one number in all repetitions."""
    dur_ns = [end - start for start, end in zip(recorder.start_ns, recorder.end_ns, strict=True)]
    marks = read_marks(recorder.marks)
    taken = pl.DataFrame(
        {
            "node": recorder.path_of,
            "dur_ns": dur_ns,
            "span_ns": recorder.span_ns,
            "backend": recorder.backend,
            "sum": [mark.sum for mark in marks],
            "abs_sum": [mark.abs_sum for mark in marks],
        },
        schema=_WAITING,
    )
    recorder.clear()
    return taken


def paths_of(recorder: PathRecorder) -> pl.DataFrame:
    """Columns of `CALLS` that a path has, in the order of its number: parents before children."""
    paths = recorder.paths
    parents = [None if path.parent is None else paths[path.parent].key for path in paths]
    return pl.DataFrame(
        {
            "path": [path.key for path in paths],
            "name": [path.name for path in paths],
            "parent": parents,
            "order": range(len(paths)),
            "depth": [path.depth for path in paths],
            "operator": [path.operator for path in paths],
        },
        schema={name: CALLS[name] for name in ("path", "name", "parent", "order", "depth", "operator")},
    )


def calls_frame(kept: Sequence[Repetition], recorders: Mapping[str, PathRecorder]) -> pl.DataFrame:
    """The table `CALLS`."""
    made = [pl.DataFrame(schema=CALLS)]
    for arm, recorder in recorders.items():
        paths = paths_of(recorder)
        made += [calls_of(arm, number, repetition.calls[arm], paths) for number, repetition in enumerate(kept)]
    return pl.concat(made, rechunk=False)


def calls_of(arm: str, number: int, rows: pl.DataFrame, paths: pl.DataFrame) -> pl.DataFrame:
    """The calls of one completion, as `take_calls` gave them, as the table `CALLS`; `number`: of the repetition."""
    known = paths.select(pl.all().gather(rows["node"]))  # texts are pointed at, not copied
    where = (pl.lit(arm).alias("arm"), pl.lit(number, dtype=pl.Int64).alias("repetition"))
    rest = rows.select("dur_ns", "span_ns", pl.col("backend").cast(pl.String), "sum", "abs_sum")
    return pl.concat((known, rest), how="horizontal").with_columns(where).select(list(CALLS))


def passes_frame(kept: Sequence[Repetition]) -> pl.DataFrame:
    """The table `PASSES`."""
    rows = [
        (arm, number, phase, wall_ns, repetition.scoped[arm].wall_ns[phase])
        for number, repetition in enumerate(kept)
        for arm, completed in repetition.plain.items()
        for phase, wall_ns in completed.wall_ns.items()
    ]
    return pl.DataFrame(rows, schema=PASSES, orient="row")


def short_waits(kept: Sequence[Repetition]) -> dict[str, float]:
    """By arm, the share of waits of the device that were too short, mean of the repetitions; none on a CPU."""
    arms = kept[0].short_waits if kept else {}
    return {arm: sum(each.short_waits[arm] for each in kept) / len(kept) for arm in arms}


def logits_frame(kept: Sequence[Repetition]) -> pl.DataFrame:
    """The table `LOGITS`."""
    rows = [
        (arm, number, is_scoped, step, mark.sum, mark.abs_sum)
        for number, repetition in enumerate(kept)
        for is_scoped, passes in ((False, repetition.plain), (True, repetition.scoped))
        for arm, completed in passes.items()
        for step, mark in enumerate(completed.logits)
    ]
    return pl.DataFrame(rows, schema=LOGITS, orient="row")
