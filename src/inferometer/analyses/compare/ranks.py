"""Ranks of two runs: of one run they share a program, so what differs between them is no change of it."""

from collections.abc import Iterator, Sequence

from inferometer.trace.trace import Trace
from inferometer.units import format_list

_LISTED = 4
_MOST = 0.5


def are_of_one_run(base: Trace, candidate: Trace) -> bool:
    """Whether these are different ranks of one run: of equally many, recorded for the most part at the same time.

    False where a file names no rank or no number of ranks, or their clocks can't be compared.
    """
    before, after = base.facts, candidate.facts
    if not before.ranks or not after.ranks or set(before.ranks) & set(after.ranks):
        return False
    if before.world_size is None or before.world_size != after.world_size:
        return False
    if (before.clock_base_ns is None) is not (after.clock_base_ns is None):
        return False
    windows = [_absolute(trace) for trace in (base, candidate)]
    if windows[0] is None or windows[1] is None:
        return False
    (first, end), (other, other_end) = windows[0], windows[1]
    shared = min(end, other_end) - max(first, other)
    return shared > _MOST * min(end - first, other_end - other)


def say_ranks(base: Sequence[int], candidate: Sequence[int], *, of_one_run: bool) -> Iterator[str]:
    """A remark where the runs are of other ranks: these may have other work, in one and the same program."""
    if not base or not candidate or base == candidate:
        return
    known = f"The base has {_named(base)} and the candidate {_named(candidate)}"
    if of_one_run:
        yield (
            f"{known} of one run, recorded at the same time: what differs is no change of the program. Open their "
            "folder to see which keeps the others waiting: inferometer timeline FOLDER."
        )
    else:
        yield f"{known}: what differs may be what each rank has to do."


def _named(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0 and 1`, `128 ranks`."""
    if len(ranks) > _LISTED:
        return f"{len(ranks):,} ranks"
    return f"rank{'s' if len(ranks) > 1 else ''} {format_list([*map(str, ranks)])}"


def _absolute(trace: Trace) -> tuple[int, int] | None:
    window = trace.window()
    base_ns = trace.facts.clock_base_ns or 0
    return None if window is None else (window[0] + base_ns, window[1] + base_ns)
