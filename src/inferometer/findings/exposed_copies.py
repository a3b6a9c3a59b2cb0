"""Copies and memory sets that run while nothing else does on the device.

The time is that in which a copy or set runs and no kernel does, on the device with the largest share of its window in
it. Copies behind kernels cost no time and don't count. What each copied is told from its name, its rate from the bytes
that were recorded: from pageable memory a copy is staged through a buffer and stays below 10 GB/s or so, pinned memory
reaches 20 to 50 GB/s over PCIe 4 and 5.

Normal: a decode step copies a few hundred bytes of inputs and tokens, 1 or 2 μs each, together below 0.5 % of a step.
Fires from 2 % of the window: `low`; from 5 % `medium`, from 15 % `high`.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from inferometer.findings.exposed_time import with_exposed
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.host_path import describe_site
from inferometer.findings.launch_evidence import LaunchEvidence
from inferometer.findings.places import Place, grave_place
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_bytes, format_duration, format_share

_SCALE = Scale(low=0.02, medium=0.05, high=0.15)
_SHOWN = 3
_SHOWN_SHARE = 0.1  # of the exposed time: less is not worth a sentence
_SLOW_BYTES_PER_S = 10e9
_LARGE_BYTES = 2**20  # a copy of less is bound by its start, not by its rate
_KEY = ("kernel", "op_chain", "user_frame")
_NEXT = (
    ("Pinned -> Device", "Copy on a stream of its own with non_blocking=True, a step ahead, behind the kernels."),
    (
        "HtoD",
        "Fill pinned memory (pin_memory=True) and copy with non_blocking=True on a stream of its own, a step ahead.",
    ),
    ("Host-to-Device", "Copy from pinned memory with cudaMemcpyAsync on a stream of its own, a step ahead."),
    ("HostToDevice", "Copy from pinned memory with hipMemcpyAsync on a stream of its own, a step ahead."),
    ("DtoH", "Copy into pinned memory with non_blocking=True on a stream of its own, and read it a step later."),
    (
        "Device-to-Host",
        "Copy into pinned memory with cudaMemcpyAsync on a stream of its own, and read it a step later.",
    ),
    ("DeviceToHost", "Copy into pinned memory with hipMemcpyAsync on a stream of its own, and read it a step later."),
    ("memset", "Allocate with torch.empty what is written whole, and reuse buffers that must be zero."),
    ("", "Write to the place where it is read, or give the copy a stream of its own beside the kernels."),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    grave = grave_place(launches, launches.devices, "exposed_copy_ns", _SCALE)
    if grave is None:
        return
    place, exposed_ns, severity = grave
    copies = _copies(evidence, launches, place)
    share = exposed_ns / place.window_ns
    first = copies.row(0, named=True)
    site = describe_site(first["op_chain"], first["user_frame"])
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{place.name} only copies for {format_share(share)} of its time, mostly {first['kernel']}"
        + (f" by {site}" if site else ""),
        evidence=(
            f"Nothing else runs during {format_duration(exposed_ns)} of copies and sets{launches.a_step(exposed_ns)}.",
            *(
                _copy(row)
                for row in copies.head(_SHOWN).iter_rows(named=True)
                if row["exposed_ns"] >= _SHOWN_SHARE * exposed_ns
            ),
        ),
        size_ns=exposed_ns,
        share=share,
        next=next(text for word, text in _NEXT if word.lower() in first["kernel"].lower()),
    )


def _copies(evidence: Evidence, launches: LaunchEvidence, place: Place) -> pl.DataFrame:
    """One row a kind of copy and place in the code: `_KEY`, `count`, `exposed_ns`; of the kind `bytes`, `dur_ns`."""
    kind = pl.col("kind").cast(pl.String)
    rows = launches.work.filter(kind.is_in(["memcpy", "memset"])).with_columns(pl.col("kernel").cast(pl.String))
    exposed = with_exposed(launches, place, place.of(rows), "compute", "communication")
    sites = launches.attribution.sites.select("node", "op_chain", "user_frame")
    sums = (
        exposed.join(sites, on="node", how="left")
        .group_by(_KEY)
        .agg(pl.len().cast(pl.Int64).alias("count"), pl.col("exposed_ns").sum())
    )
    ordered = sums.sort("exposed_ns", *_KEY, descending=[True, *(False for _ in _KEY)])
    return ordered.join(_rates(evidence, place), on="kernel", how="left", maintain_order="left")


def _rates(evidence: Evidence, place: Place) -> pl.DataFrame:
    """Bytes, time and number of the copies of each kind that say how many bytes they move."""
    known = evidence.trace.launches.filter(pl.col("kind") == "memcpy", pl.col("bytes") > 0, pl.col("dur_ns") > 0)
    copies = place.of(known.select("rank", "device", "kernel", "bytes", "dur_ns").collect())
    return copies.group_by("kernel").agg(
        pl.col("bytes", "dur_ns").sum(), pl.len().cast(pl.Int64).alias("copies_with_bytes")
    )


def _copy(row: dict[str, Any]) -> str:
    site = describe_site(row["op_chain"], row["user_frame"])
    where = f" by {site}" if site else ""
    return (
        f"{row['kernel']}{where}: {row['count']:,} times, exposed for {format_duration(row['exposed_ns'])}{_rate(row)}."
    )


def _rate(row: dict[str, Any]) -> str:
    if not row["bytes"]:
        return ""
    words = f"; such copies move {format_bytes(row['bytes'])}"
    if row["bytes"] < _LARGE_BYTES * row["copies_with_bytes"]:
        return words
    rate = row["bytes"] / row["dur_ns"] * 1e9
    name = row["kernel"].lower()
    of_host = any(word in name for word in ("htod", "dtoh", "host"))
    is_slow = of_host and rate < _SLOW_BYTES_PER_S and "pinned" not in name
    return f"{words} at {format_bytes(rate)}/s{', as from pageable memory' if is_slow else ''}"


RULE = Rule("exposed_copies", _find)
