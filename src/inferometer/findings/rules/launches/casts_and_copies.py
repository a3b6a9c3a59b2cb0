"""Casts and copies around matrix products and attention: kernels that change a tensor's type or layout, no more.

Counts launches of casts, plain copies and transposes (copies from device to device, too), where one holds:

- A row of them stands directly before or after a matrix product, a convolution or attention on one stream.
- In a chain of element-wise kernels, something is cast to fp32 and later something is cast back. Norms of eager
  Hugging Face models do that.

Left out is what a pass does once: engines cast logits to fp32 before they sample, which is by design. Such casts have
more than one attention kernel (or, without attention, more than eight products) between one occurrence and the next,
or lead to sampling. One that has 10 % of the GPU time before a product counts all the same: it may be a weight. Copies
that calls of communication make stage what is exchanged and belong to that.

Severity is the share of all GPU time: from 2 % `low`, from 8 % `medium`, from 20 % `high`. Engines that keep their
types have none; eager Hugging Face models had 7 and 16 % in recorded runs.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from inferometer.findings.evidence.communication import serves
from inferometer.findings.evidence.exposed_time import copied_bytes
from inferometer.findings.evidence.kernel_rows import ATTENTION, PRODUCTS, Bools, Ints, KernelRows
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.findings.rules.launches.unfused_elementwise import find_chains, is_fusible, members
from inferometer.names import KernelName
from inferometer.units import format_bytes, format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_SCALE = Scale("casts_and_copies", low=0.02, medium=0.08, high=0.20)
_WORDS = ("cast", "copy", "transpose", "contiguous")
_NOT_WORDS = ("fill", "concat", "foreach", "kv", "pad")
_TIMES = 4  # occurrences of a kernel in a place
_PRODUCTS_A_LAYER = 8  # at most: of query, key, value and output, gate, up and down, and one more
_LARGE_ONCE = 0.10
_SHOWN = 3
_LEADS_TO = 3  # launches from the logits' cast to the one that samples
_REASONS = (
    "before a product, convolution or attention",
    "after a product, convolution or attention",
    "to fp32 and back",
)
_PART = 0.5  # of the time: with less in chains, fusing these is no answer to it


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    rows = launches.rows
    found = _groups(launches, rows)
    size_ns = int(found["total_ns"].sum())
    severity = _SCALE.severity(size_ns / launches.total_ns)
    if severity is None:
        return
    share = size_ns / launches.total_ns
    where = launches.origins
    first = next(found.iter_rows(named=True))
    chosen = np.concatenate([np.asarray(group, dtype=np.int64) for group in found["rows"]])
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"casts and copies take {format_share(share)} of the GPU time",
        evidence=(
            (
                f"{len(chosen):,} launches that only change a type or a layout take "
                f"{format_duration(size_ns)}{launches.a_step(size_ns)}."
            ),
            *(
                (
                    f"{rows.known[group['kernel']].short_name}{where.describe(group['place'])}, "
                    f"{_REASONS[group['reason']]}: {group['count']:,} launches, {format_duration(group['total_ns'])}."
                )
                for group in found.head(_SHOWN).iter_rows(named=True)
            ),
            *_bytes(launches, rows, chosen),
        ),
        size_ns=size_ns,
        share=share,
        next=(
            "Keep tensors in the type and layout that their kernels read, or let the kernel before write them so"
            f"{where.describe(first['place'])}."
        ),
        not_explained_by=frozenset() if _in_chains(launches, chosen) else frozenset({"unfused_elementwise"}),
    )


def is_cast_or_copy(name: str, known: KernelName) -> bool:
    """Whether a kernel only changes type or layout: a fusion's name says what it ends with, no more."""
    words = known.short_name.lower()
    if known.family == "memory":
        return "dtod" in words or "device to device" in words or "copybuffer" in name.lower()
    is_fusion = known.library == "inductor" or known.evidence.rule == "XLA fusion"
    is_copy = known.family == "copy" and not is_fusion and any(word in words for word in _WORDS)
    return is_copy and not any(word in words for word in _NOT_WORDS)


def _groups(launches: "LaunchEvidence", rows: KernelRows) -> pl.DataFrame:
    """One row per kernel, place and reason, the most time first: `count`, `total_ns`, `rows` (places in `rows`)."""
    reason, logits = _reasons(rows, rows.each(is_cast_or_copy) & ~serves(launches, rows.node))
    chosen = np.flatnonzero(reason >= 0)
    attention = rows.of_family(*ATTENTION)
    by_attention = bool(attention.any())
    seen = np.cumsum(attention if by_attention else rows.of_family(*PRODUCTS))
    frame = pl.DataFrame(
        {
            "row": chosen,
            "kernel": rows.kernel[chosen],
            "place": launches.origins.codes(rows.node[chosen]),
            "reason": reason[chosen],
            "dur_ns": rows.dur_ns[chosen],
            "seen": seen[chosen],
            "logits": logits[chosen],
        }
    )
    between = pl.col("seen").diff()
    groups = frame.group_by("kernel", "place", "reason").agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("dur_ns").sum().alias("total_ns"),
        between.filter(between > 0).median().fill_null(float("inf")).alias("between"),
        pl.col("logits").mean(),
        pl.col("row").alias("rows"),
    )
    each_layer = (pl.col("between") <= (1.5 if by_attention else _PRODUCTS_A_LAYER)) & (pl.col("logits") < 0.5)
    large = (pl.col("reason") == 0) & (pl.col("total_ns") >= _LARGE_ONCE * launches.total_ns)
    kept = groups.filter(pl.col("count") >= _TIMES, each_layer | large)
    return kept.sort("total_ns", "kernel", "place", "reason", descending=[True, False, False, False])


def _reasons(rows: KernelRows, cast: Bools) -> tuple[np.ndarray, Bools]:
    """The number of the reason that each launch counts for, or -1; and whether it leads to sampling."""
    product = rows.of_family(*PRODUCTS, *ATTENTION, "gemm_epilogue", "attention_combine")
    first, end = rows.runs(cast)
    before, behind = np.zeros(len(cast), dtype=np.bool_), np.zeros(len(cast), dtype=np.bool_)
    length = end - first
    members = np.flatnonzero(cast)  # the rows of all runs in order, since runs part them
    before[members] = np.repeat(rows.behind(product)[end - 1], length)
    behind[members] = np.repeat(rows.before(product)[first], length)
    reason = np.full(len(cast), -1, dtype=np.int64)
    reason[_round_trips(rows) & cast] = 2
    reason[behind] = 1
    reason[before] = 0
    return reason, behind & ~before & _leads_to_sampling(rows)


def _leads_to_sampling(rows: KernelRows) -> Bools:
    ahead = rows.of_family("sampling")
    found = np.zeros(len(ahead), dtype=np.bool_)
    for _ in range(_LEADS_TO):
        ahead = rows.behind(ahead)
        found |= ahead
    return found


def _round_trips(rows: KernelRows) -> Bools:
    """Casts to fp32, and casts from it, of chains that have the one before the other."""
    up = rows.each(lambda name, known: is_cast_or_copy(name, known) and _casts_up(known))
    down = rows.each(lambda name, known: is_cast_or_copy(name, known) and (known.dtype or "").startswith("fp32>"))
    first, end = rows.runs(rows.each(lambda name, known: is_fusible(name, known) or known.family == "softmax"))
    if not len(first):
        return up
    ups, downs = (np.concatenate([[0], np.cumsum(each)]) for each in (up, down))
    has_both = (ups[end] > ups[first]) & (downs[end] > downs[first])
    first, end = first[has_both], end[has_both]
    inside = np.zeros(len(up) + 1, dtype=np.int64)
    np.add.at(inside, first, 1)
    np.add.at(inside, end, -1)
    return (up | down) & (np.cumsum(inside)[:-1] > 0)


def _casts_up(known: KernelName) -> bool:
    dtype = known.dtype or ""
    return dtype.endswith(">fp32") or (dtype == "fp32" and "cast" in known.short_name)


def _in_chains(launches: "LaunchEvidence", chosen: Ints) -> bool:
    """Whether most of their time lies in the chains that `unfused_elementwise` reports."""
    rows, inside = launches.rows, np.zeros(len(launches.rows.kernel), dtype=np.bool_)
    for chain in find_chains(launches).iter_rows(named=True):
        inside[members(chain)] = True
    dur_ns = rows.dur_ns[chosen]
    return bool(dur_ns[inside[chosen]].sum() >= _PART * dur_ns.sum())


def _bytes(launches: "LaunchEvidence", rows: KernelRows, chosen: Ints) -> Iterator[str]:
    """What those of them moved that copy from device to device, where it is recorded; no kernel says it."""
    copies = chosen[rows.of_family("memory")[chosen]]
    if not len(copies):
        return
    of_copies = launches.work.filter(pl.col("kind").cast(pl.String) != "memset")[copies]
    known = copied_bytes(launches, of_copies).drop_nulls()
    moved = int(known.sum())
    if moved:
        yield f"Of them, {len(known):,} copies from device to device are known to move {format_bytes(moved)}."


RULE = Rule("casts_and_copies", _find, (_SCALE,))
