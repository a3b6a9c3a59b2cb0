"""How long each copy or collective ran while the device did nothing that could hide it."""

import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.work import SORTS, at_place
from inferometer.findings.launch_evidence import LaunchEvidence
from inferometer.findings.places import Place


def with_exposed(launches: LaunchEvidence, place: Place, rows: pl.DataFrame, *hiding: str) -> pl.DataFrame:
    """`rows` with `exposed_ns`: the time of each in which no work of the sorts `hiding` ran on the place.

    Rows that overlap each other count twice, so the sum may exceed what `analyses.exposure` tells of the place.

    Args:
        launches: Of the trace.
        place: The device of `rows`.
        rows: Launches: `start_ns` and `dur_ns`.
        hiding: Some of `work.SORTS`.
    """
    work = launches.device_work
    places = at_place(work.places, place.rank, place.device)["place"]
    beside = work.launches.filter(pl.col("place").is_in(places.implode()), pl.col("sort").is_in(list(hiding or SORTS)))
    cover = Cover.of(beside["start_ns"].to_numpy(), beside["end_ns"].to_numpy())
    start, dur = (rows[name].to_numpy() for name in ("start_ns", "dur_ns"))
    return rows.with_columns(pl.Series("exposed_ns", dur - cover.within(start, start + dur), dtype=pl.Int64))
