"""A trace of some of its ranks: the rows of these, and what the facts say of them."""

from collections.abc import Iterable

import polars as pl
from msgspec.structs import replace

from inferometer.errors import UnknownName
from inferometer.trace.combine import OpenTraces
from inferometer.trace.trace import Trace


def restrict_ranks(trace: Trace, ranks: Iterable[int]) -> Trace:
    """The rows of `ranks` alone. Losses stay those of the whole: a count doesn't say whose it is.

    Raises:
        UnknownName: The trace has no such rank; lists those that it has.
    """
    about, wanted = trace.facts, frozenset(ranks)
    for unknown in sorted(wanted - frozenset(about.ranks)):
        raise UnknownName("rank", str(unknown), map(str, about.ranks))
    facts = replace(
        about,
        ranks=tuple(rank for rank in about.ranks if rank in wanted),
        processes=tuple(named for named in about.processes if named.rank is None or named.rank in wanted),
        threads=tuple(named for named in about.threads if named.rank is None or named.rank in wanted),
        devices=tuple(device for device in about.devices if device.rank is None or device.rank in wanted),
        rank_files=tuple(file for file in about.rank_files if file.rank in wanted),
    )
    frames = {name: trace.tables.raw(name).filter(pl.col("rank").is_in(wanted)) for name in trace.tables}
    return Trace(facts, frames, trace.losses, scope=trace.scope, scratch=OpenTraces(trace), names=trace.names)
