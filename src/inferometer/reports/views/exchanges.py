"""What collectives exchange, how quickly, and what part of their time is waiting for late ranks."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from inferometer.analyses.roofline.collectives import Collectives
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.units import format_bytes, format_count, format_duration, format_list, format_share

_FIELDS: Final = (
    Field("total_ns", "Total Time", "ns"),
    Field("wait_ns", "Waiting", "ns"),
    Field("calls", "Calls", "count"),
    Field("collective", "Collective", "text"),
    Field("message_bytes", "Message", "bytes"),
    Field("group_size", "Ranks", "count"),
    Field("algorithm_gb_per_s", "Algorithm GB/s", "ratio", spare=1),
    Field("bus_gb_per_s", "Bus GB/s", "ratio"),
    Field("fraction", "Of Link", "share"),
    Field("devices", "Devices", "count", spare=3),
)
_WHY: Final = Field("reason", "Why no bus bandwidth", "text", spare=2)
_ROWS: Final = 20


def collective_sections(found: Collectives) -> Iterator[Section]:
    """The table, where anything communicates."""
    if not found.frame.height:
        return
    rows = found.frame.with_columns(
        (pl.col("algorithm_bytes_per_s") / 1e9).alias("algorithm_gb_per_s"),
        (pl.col("bus_bytes_per_s") / 1e9).alias("bus_gb_per_s"),
    )
    fields = (*_FIELDS, *([_WHY] if rows["reason"].count() else []))
    yield Section("Collectives", fields, rows.head(_ROWS), tuple(_notes(found)))


def _notes(found: Collectives) -> Iterator[str]:
    yield from say_rest(_ROWS, found.frame.height)
    if found.link is not None and found.frame["bus_bytes_per_s"].count():
        yield (
            f"The link's peak is {format_bytes(found.link.value)}/s per direction ({found.link.kind}), and counts "
            "within a machine: between machines the network card binds, which no file names."
        )
    inferred = int(found.frame["inferred_launches"].sum())
    if inferred:
        of = format_count(int(found.frame["launches"].sum()))
        yield (
            f"What {format_count(inferred)} of {of} launches exchange isn't in the file: it is inferred from launches "
            "that are alike."
        )
    why = found.frame.filter(pl.col("not_compared").is_not_null())
    reasons = sorted({reason for text in why["not_compared"] for reason in text.split("; ")})
    if reasons:
        yield (
            f"Where no waiting is given, ranks couldn't be compared ({format_list(reasons)}): their times include it, "
            "and bandwidths are at least these."
        )
    partly = found.frame.filter(~pl.col("is_exact"), pl.col("compared") == pl.col("launches"))
    if partly.height:
        yield "Waiting is for ranks in the files alone: where others are missing, bandwidths are at least these."


def say_collectives(found: Collectives, total_ns: int) -> Iterator[str]:
    """Sentences: what share of the time it is, what part of that waits, which takes most, what is too fast."""
    if not found.frame.height or not total_ns:
        return
    share, time = format_share(found.total_ns / total_ns), format_duration(found.total_ns)
    yield f"Collectives take {share} of the device time: {time}, waiting for late ranks included."
    compared = found.frame.filter(pl.col("wait_ns").is_not_null())
    if found.wait_ns is not None:
        time_ns = int(compared["total_ns"].sum())
        yield (
            f"{format_duration(found.wait_ns)} of {format_duration(time_ns)} in collectives that could be compared is "
            f"waiting for late ranks: {format_share(found.wait_ns / time_ns) if time_ns else '-'}."
        )
    rated = found.frame.filter(pl.col("fraction").is_not_null())
    if rated.height:
        yield _say_longest(rated)
    faster = rated.filter(pl.col("fraction") > 1).height
    if faster:
        yield (
            f"{format_count(faster)} of {format_count(rated.height)} rows of collectives are faster than the link: "
            "a switch reduces on the way (NVLS, multimem), or the device's link isn't what they used."
        )


def _say_longest(rated: pl.DataFrame) -> str:
    row = rated.row(0, named=True)
    size = format_bytes(row["message_bytes"])
    least = "" if row["is_exact"] else "at least "
    return (
        f"Longest of those with a bus bandwidth: {row['collective']} of {size} over {row['group_size']:,} ranks, with "
        f"{least}{format_bytes(row['bus_bytes_per_s'])}/s of it, {format_share(row['fraction'])} of the link's peak."
    )
