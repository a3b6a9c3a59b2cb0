"""Why neighbours on a stream are taken for kernels of one call, in sentences."""

from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.analyses.groups.members import Member, Verdict
from inferometer.analyses.groups.runs import RunGroup
from inferometer.units import format_duration, format_share


def evidence_of(pairs: pl.DataFrame, found: RunGroup, members: Sequence[Member]) -> Iterator[str]:
    """A sentence for each kind of knowledge that the group rests on. `pairs`: rows of `Edges.frame`."""
    owned = pairs.filter(pl.col("ruling") == "library call")
    if owned.height:
        known, same = int(owned["known"].sum()), int(owned["same"].sum())
        both = f"One op launched both in {same:,} of all {known:,} pairs of such neighbours with known ops"
        yield f"{both}{_goes_on(owned)}."
    for source, count in _sources(pairs, "learned call", "learned_on"):
        yield f"Learned on {source}: one op launched both there; {count:,} pairs of neighbours here have their names."
    for source, count in _sources(pairs, "declared call", "declared"):
        yield f"Ops unknown; the library's source declares it ({source}), and {count:,} pairs of neighbours show it."
    guessed = pairs.filter(pl.col("ruling") == "fused-wrapper call")
    if guessed.height:
        least = float(guessed.select(pl.min_horizontal(pl.col("forward").min(), pl.col("backward").min())).item())
        yield f"Ops unknown: neighbours stick together in {format_share(least)} of launches or more{_goes_on(guessed)}."
    if found.by_name and owned.height:
        learned = ", learned on launches whose op is known in this file" if owned.height == pairs.height else ""
        yield f"{found.by_name:,} of {found.count:,} times recognised by names alone{learned}."
    if found.is_parted:
        several = f"{found.calls:,} calls of ops, some of which have several"
        where = several if found.calls > 1 else "one call of an op"
        yield f"These {found.count - found.by_name:,} are runs of launches in {where}."
    spare = [member.role for member in members if member.optional]
    if spare:
        yield f"Not {'in every run' if found.is_parted else 'every time'}: {', '.join(spare)}."


def _sources(pairs: pl.DataFrame, ruling: Verdict, column: str) -> Iterator[tuple[str, int]]:
    """Where knowledge of that kind is from, and how many pairs here rest on it."""
    some = pairs.filter(pl.col("ruling") == ruling)
    yield from some.group_by(column, maintain_order=True).agg(pl.col("count").sum()).iter_rows()


def _goes_on(pairs: pl.DataFrame) -> str:
    """The medians of the kinds of pairs from the shortest to the longest: a median of them is nobody's gap."""
    gaps = pairs["host_gap_ns"].drop_nulls().sort().to_list()
    if not gaps:
        return ""
    times = list(dict.fromkeys(format_duration(gap) for gap in (gaps[0], gaps[-1])))
    kinds = "median" if len(gaps) == 1 else f"medians of {len(gaps):,} kinds of pairs"
    return f"; the host goes on after {' to '.join(times)} ({kinds})"
