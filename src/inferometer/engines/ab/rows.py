"""What was measured so far, whole repetitions only: rows of calls, small while they wait and made into tables at last.

A call waits as 21 bytes; its texts, of which there are few different ones, are put next to it at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from inferometer.analyses.ab.measurement import CALLS, PASSES
from inferometer.engines.paths import PathRecorder

_WAITING = {"node": pl.UInt32, "dur_ns": pl.Int64, "span_ns": pl.Int64, "backend": pl.Categorical}


@dataclass
class Repetition:
    """One repetition: by arm, the calls of its pass with scopes, and the time of each phase without and with them."""

    calls: dict[str, pl.DataFrame] = field(default_factory=dict)
    wall_ns: dict[str, dict[str, int]] = field(default_factory=dict)
    scoped_ns: dict[str, dict[str, int]] = field(default_factory=dict)


def take_calls(recorder: PathRecorder) -> pl.DataFrame:
    """The recorder's rows, which it has no more; its paths stay, so that a path has one number in all repetitions."""
    dur_ns = [end - start for start, end in zip(recorder.start_ns, recorder.end_ns, strict=True)]
    taken = pl.DataFrame(
        {"node": recorder.path_of, "dur_ns": dur_ns, "span_ns": recorder.span_ns, "backend": recorder.backend},
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
        for number, repetition in enumerate(kept):
            rows = repetition.calls[arm]
            known = paths.select(pl.all().gather(rows["node"]))  # texts are pointed at, not copied
            where = (pl.lit(arm).alias("arm"), pl.lit(number, dtype=pl.Int64).alias("repetition"))
            times = rows.select("dur_ns", "span_ns", pl.col("backend").cast(pl.String))
            made.append(pl.concat((known, times), how="horizontal").with_columns(where).select(list(CALLS)))
    return pl.concat(made, rechunk=False)


def passes_frame(kept: Sequence[Repetition]) -> pl.DataFrame:
    """The table `PASSES`."""
    rows = [
        (arm, number, phase, wall_ns, repetition.scoped_ns[arm][phase])
        for number, repetition in enumerate(kept)
        for arm, phases in repetition.wall_ns.items()
        for phase, wall_ns in phases.items()
    ]
    return pl.DataFrame(rows, schema=PASSES, orient="row")
