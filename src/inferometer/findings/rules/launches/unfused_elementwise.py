"""Chains of kernels that one fused kernel could do: element-wise work, norms, activations, copies in a row.

Fires on 3 to 64 such launches in a row on one stream, with nothing else and no pause between them, where the
same chain occurs at least four times, and three times as often as chance would put its kernels in this order. They may
take microseconds or milliseconds: a fused kernel saves launches of short ones, and of long ones the memory traffic
between them. Kernels of compiled code (Inductor) end a chain: what they could fuse, they have. So do kernels on whole
numbers (positions, indices), softmax and sampling, which engines run once per step, and copies and casts that calls of
communication make.

Severity is what fusing would save, as a share of all GPU time. That is an estimate: a fused kernel is taken to need
as long as the longest of its chain. From 3 % `low`, from 10 % `medium`, from 25 % `high`: engines with fused norms,
rotations and activations have chains of one or two, and nothing to save in generated runs; a recorded one that copies
and norms queries and keys apart could save 7 %. Hugging Face's modules in eager mode have norms of nine kernels and
rotations of ten, and could save 34 and 45 % in recorded runs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from inferometer.findings.evidence.communication import serves
from inferometer.findings.evidence.kernel_rows import WHOLE_NUMBERS, Ints, KernelRows, Origins
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.names import KernelName
from inferometer.units import format_duration, format_share

_SCALE = Scale("unfused_elementwise", low=0.03, medium=0.10, high=0.25)
_FUSIBLE = frozenset({"elementwise", "norm", "activation", "copy", "reduction", "rope"})
_LEAST = 3  # launches; pairs are common in engines that fuse well
_MOST = 64  # launches; more are a loop or a whole computation, which no one kernel would do
_TIMES = 4
_BEYOND_CHANCE = 3.0
_SHOWN = 3
_NAMED = 10  # kernels of a chain that are named
_SEED = 20_261_122  # of the numbers that stand for kernels in the key of a chain


def is_fusible(_: str, known: KernelName) -> bool:
    """Whether a kernel does what could be fused into a neighbour."""
    return known.family in _FUSIBLE and known.library != "inductor" and known.dtype not in WHOLE_NUMBERS


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    rows = launches.rows
    chains = find_chains(launches)
    saved_ns = int((chains["total_ns"] - chains["longest_ns"]).sum())
    severity = _SCALE.severity(saved_ns / launches.total_ns) if launches.total_ns else None
    if severity is None:
        return
    total_ns, count = int(chains["total_ns"].sum()), int((chains["count"] * chains["length"]).sum())
    share = total_ns / launches.total_ns
    where = launches.origins
    first = next(chains.iter_rows(named=True))
    place = _place(rows, where, first)
    lengths = " to ".join(str(length) for length in sorted({*chains["length"].sort()[[0, -1]]}))
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"chains of unfused kernels (element-wise, norms, copies) take {format_share(share)} of the GPU time",
        evidence=(
            (
                f"{int(chains['count'].sum()):,} chains of {lengths} launches in a row, {count:,} launches in all, "
                f"take {format_duration(total_ns)}{launches.a_step(total_ns)}."
            ),
            *(_sentence(rows, where, chain) for chain in chains.head(_SHOWN).iter_rows(named=True)),
            (
                "An estimate: a fused kernel needs about as long as the longest of its chain. Then "
                f"{format_duration(saved_ns)} would be saved, {format_share(saved_ns / launches.total_ns)} of the "
                "GPU time, and the gaps between the launches."
            ),
        ),
        size_ns=total_ns,
        share=share,
        next=(
            "Run the first of these chains as one fused kernel, a library's or torch.compile's"
            f"{f': look at {place[0]} first' if place else ''}."
        ),
    )


def find_chains(launches: LaunchEvidence) -> pl.DataFrame:
    """One row per kind of chain, what fusing would save the most first.

    `count`, `length`, `total_ns`, `longest_ns` (of the longest launch in each, summed), `starts`: the place of the
    first launch of each in `launches.rows`.
    """
    rows = launches.rows
    first, end = rows.runs(rows.each(is_fusible) & ~serves(launches, rows.node))
    is_chain = (end - first >= _LEAST) & (end - first <= _MOST)
    first, end = first[is_chain], end[is_chain]
    padded = np.append(rows.dur_ns, 0)
    sums = np.concatenate([[0], np.cumsum(rows.dur_ns)])
    bounds = np.stack([first, end], axis=1).ravel()
    longest = np.maximum.reduceat(padded, bounds)[::2] if len(first) else first
    key, by_chance = _keys(rows, first, end)
    frame = pl.DataFrame(
        {
            "key": key,
            "by_chance": by_chance,
            "first": first,
            "length": end - first,
            "total_ns": sums[end] - sums[first],
            "longest_ns": longest,
        }
    )
    kinds = frame.group_by("key", "length").agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col("first").alias("starts"),
        pl.col("first").min(),
        pl.col("by_chance").first(),
        pl.col("total_ns", "longest_ns").sum(),
    )
    often = (pl.col("count") >= _TIMES) & (pl.col("count") >= _BEYOND_CHANCE * pl.col("by_chance"))
    saved = pl.col("total_ns") - pl.col("longest_ns")
    return kinds.filter(often).sort(saved, "first", descending=[True, False])


def _keys(rows: KernelRows, first: Ints, end: Ints) -> tuple[np.ndarray, np.ndarray]:
    """A number for the sequence of kernels of each chain, and how often chance alone would give it.

    Equal sequences have equal numbers; that others have, too, is as likely as 64 random bits.
    """
    if not len(first):
        return np.zeros(0, dtype=np.uint64), np.zeros(0)
    length = end - first
    offset = np.concatenate([[0], np.cumsum(length)[:-1]])
    place = np.arange(int(length.sum())) - np.repeat(offset, length)
    kernel = rows.kernel[np.repeat(first, length) + place]
    draw = np.random.default_rng(_SEED)
    words = draw.integers(0, 2**63, size=len(rows.names), dtype=np.uint64)
    powers = np.multiply.accumulate(np.full(int(length.max()), 0x9E3779B97F4A7C15, dtype=np.uint64))
    share = np.log(np.maximum(np.bincount(rows.kernel, minlength=len(rows.names)), 1) / len(rows.kernel))
    key = np.add.reduceat(words[kernel] * powers[place], offset)
    return key, len(rows.kernel) * np.exp(np.add.reduceat(share[kernel], offset))


def _sentence(rows: KernelRows, where: Origins, chain: dict[str, Any]) -> str:
    start = chain["starts"][0]
    names = [rows.known[kernel].short_name for kernel in rows.kernel[start : start + chain["length"]][:_NAMED]]
    more = ", …" if chain["length"] > _NAMED else ""
    place = _place(rows, where, chain)
    where_most = f"; {format_share(place[1])} of it in {place[0]}" if place else ""
    return (
        f"{chain['count']:,} times {chain['length']} launches ({', '.join(names)}{more}): "
        f"{format_duration(chain['total_ns'])}, on average {format_duration(chain['total_ns'] / chain['count'])}, of "
        f"which the longest launch has {format_duration(chain['longest_ns'] / chain['count'])}{where_most}."
    )


def _place(rows: KernelRows, where: Origins, chain: dict[str, Any]) -> tuple[str, float] | None:
    """The known place with the most time of the chains, and its share of that; None where none is known."""
    codes, dur_ns = where.codes(rows.node[members(chain)]), rows.dur_ns[members(chain)]
    times = np.bincount(codes, weights=dur_ns, minlength=len(where.texts))[:-1]  # the last is the unknown place
    code = int(times.argmax()) if len(times) else 0
    return (where.texts[code], times[code] / dur_ns.sum()) if times.any() else None


def members(chain: dict[str, Any]) -> Ints:
    """The places in `rows` of all launches of a kind of chain."""
    starts = np.asarray(chain["starts"], dtype=np.int64)
    return (starts[:, None] + np.arange(chain["length"])).ravel()


RULE = Rule("unfused_elementwise", _find, (_SCALE,))
