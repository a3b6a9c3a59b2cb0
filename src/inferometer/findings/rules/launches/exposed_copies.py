"""Copies and memory sets that run while nothing else does on the device.

The time is that in which a copy or set runs and no kernel does, on the device with the largest share of its window in
it. Copies behind kernels cost no time and don't count. What each copied is recognised from its name, its rate from the
bytes that were recorded of these very copies, hidden ones included: from pageable memory a copy is staged through a
buffer and stays below 10 GB/s or so, pinned memory reaches 20 to 50 GB/s over PCIe 4 and 5.

Normal: a decode step copies a few hundred bytes of inputs and tokens, 1 or 2 μs each, together below 0.5 % of a step.
Fires from 2 % of the window: `low`; from 5 % `medium`, from 15 % `high`.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from inferometer.analyses.timeline.budget import COPIES, part_key
from inferometer.findings.evidence.communication import serves
from inferometer.findings.evidence.exposed_time import copied_bytes, sum_exposed
from inferometer.findings.evidence.host_path import describe_site
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import BusiestDevice, grave_place
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_bytes, format_duration, format_share

_SCALE = Scale("exposed_copies", low=0.02, medium=0.05, high=0.15)
_SHOWN = 3
_SHOWN_SHARE = 0.1  # of the exposed time: less is not worth a sentence
_MOSTLY = 0.5  # of the exposed time
_SLOW_BYTES_PER_S = 10e9
_LARGE_BYTES = 2**20  # a copy of less is bound by its start, not by its rate
_KEY = ("kernel", "op", "user_frame", "serves")
_OF_COMMUNICATION = (
    "Exchange in place, without copies before and after it (DistributedDataParallel: gradient_as_bucket_view=True)."
)
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
    ("", "Write to the place where it is read, or give the copy a stream of its own, in parallel with the kernels."),
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    grave = grave_place(launches, launches.devices, "exposed_copy_ns", _SCALE)
    if grave is None:
        return
    place, exposed_ns, severity = grave
    copies = _copies(launches, place)
    share = exposed_ns / place.window_ns
    first = copies.row(0, named=True)
    most = "mostly" if first["exposed_ns"] > _MOSTLY * exposed_ns else "the most of it in"
    sets = " and sets memory" if copies.filter(pl.col("is_set"), pl.col("exposed_ns") > 0).height else ""
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{place.name} only copies{sets} for {format_share(share)} of its time, {most} {_name(first)}",
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
        next=_next(first),
        parts=(part_key(COPIES),),
    )


def _copies(launches: LaunchEvidence, place: BusiestDevice) -> pl.DataFrame:
    """One row per kind of copy and place in the code, the most exposed first.

    Columns of `_KEY` and `sum_exposed`; `is_set`; of those whose bytes are recorded, `bytes`, `with_bytes` (how many)
    and `with_bytes_ns` (their time).
    """
    kind = pl.col("kind").cast(pl.String)
    rows = place.of(launches.work.filter(kind.is_in(["memcpy", "memset"])))
    sites = launches.attribution.sites.select("node", "user_frame", op=pl.col("op_chain").str.split(" > ").list.first())
    copies = (
        rows.with_columns(
            copied_bytes(launches, rows).alias("bytes"),
            pl.col("kernel").cast(pl.String),
            pl.Series("serves", serves(launches, rows["node"].to_numpy()), dtype=pl.Boolean),
            (kind == "memset").alias("is_set"),
        )
        .join(sites, on="node", how="left")
        .select(*_KEY, "is_set", "bytes", "start_ns", "dur_ns")
    )
    known = (pl.col("bytes") > 0) & (pl.col("dur_ns") > 0) & ~pl.col("is_set")
    moved = copies.group_by(_KEY).agg(
        pl.col("is_set").first(),
        pl.col("bytes").filter(known).sum(),
        known.sum().cast(pl.Int64).alias("with_bytes"),
        pl.col("dur_ns").filter(known).sum().alias("with_bytes_ns"),
    )
    exposed = sum_exposed(launches, place, copies, _KEY, "compute", "communication")
    return exposed.join(moved, on=_KEY, how="left", nulls_equal=True, maintain_order="left")


def _name(row: dict[str, Any]) -> str:
    site = describe_site(row["op"], row["user_frame"])
    return f"{row['kernel']} by {site}" if site else str(row["kernel"])


def _copy(row: dict[str, Any]) -> str:
    times = "once" if row["count"] == 1 else f"{row['count']:,} times"
    of = ", part of communication" if row["serves"] else ""
    caller = "" if describe_site(row["op"], row["user_frame"]) else " by an unknown caller"
    return f"{_name(row)}{caller}{of}: {times}, exposed for {format_duration(row['exposed_ns'])}{_rate(row)}."


def _rate(row: dict[str, Any]) -> str:
    if not row["bytes"]:
        return ""
    which = "it moves" if row["count"] == 1 else "they move"
    if row["with_bytes"] < row["count"]:
        which = f"{row['with_bytes']:,} of them are known to move"
    words = f"; {which} {format_bytes(row['bytes'])}"
    if row["bytes"] < _LARGE_BYTES * row["with_bytes"]:
        return words
    rate = row["bytes"] / row["with_bytes_ns"] * 1e9
    name = row["kernel"].lower()
    of_host = any(word in name for word in ("htod", "dtoh", "host"))
    is_slow = of_host and rate < _SLOW_BYTES_PER_S and "pinned" not in name
    return f"{words} at {format_bytes(rate)}/s{', as from pageable memory' if is_slow else ''}"


def _next(first: dict[str, Any]) -> str:
    name = first["kernel"].lower()
    if first["serves"] and not any(word in name for word in ("htod", "dtoh", "host", "memset")):
        return _OF_COMMUNICATION
    return next(text for word, text in _NEXT if word.lower() in name)


RULE = Rule("exposed_copies", _find, (_SCALE,))
