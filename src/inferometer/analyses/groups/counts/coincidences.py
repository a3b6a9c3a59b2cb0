"""Kernels of a table of totals that look like partners and are none: equal counts, alternatives, neighbours in a layer.

An equal count alone is weak evidence, and a layer repeats every kernel equally often. Each is refused with its reason.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

from inferometer.analyses.groups.counts.printed_rows import PrintedRow, launches, refuse
from inferometer.analyses.groups.members import Group, Refusal

FEW = 6
"""As many kernels with a group's count are looked at one by one; more say that this count is common."""

MIN_COUNT = 5
_MOST_PER_LAYER = 4


def coincidences(rows: Sequence[PrintedRow], groups: Sequence[Group]) -> list[Refusal]:
    """False friends among the kernels of one section that are in no group."""
    taken = {part.kernel for group in groups for member in group.members for part in member.parts}
    free = [row for row in rows if row.kernel not in taken]
    layers = _layer_passes(rows)
    found = [*_alternatives(free, layers)]
    refused = {kernel for refusal in found for kernel in refusal.kernels}
    found += _same_count(rows, [row for row in free if row.kernel not in refused], groups)
    found += _per_layer(free, layers)
    refused |= {kernel for refusal in found for kernel in refusal.kernels}
    found += _neighbours([row for row in free if row.kernel not in refused], {group.count for group in groups})
    return found


def _layer_passes(rows: Sequence[PrintedRow]) -> int:
    """How often any layer ran: once each for attention, whichever kernel it took. 0 without attention."""
    return launches(row for row in rows if row.name.family in ("attention", "attention_prefill", "attention_decode"))


def _alternatives(free: Sequence[PrintedRow], layers: int) -> Iterator[Refusal]:
    """Two kernels of one library and family that share out the layers between them."""
    alike = defaultdict(list)
    for row in free:
        alike[row.name.library, row.name.family].append(row)
    for (library, family), some in alike.items():
        for one, other in combinations(some[: 4 * FEW], 2):
            if layers and family not in ("other", "gemm") and one.count + other.count == layers:
                why = (
                    f"{one.count:,} + {other.count:,} = {layers:,}, one per layer: alternatives of "
                    f"{library}'s {family}: "
                    "each layer launches one of them. They share out the layers as attention does because the same "
                    f"steps chose, not because one call launches both.{_tail(one, other)}"
                )
                yield refuse([one, other], one.count, why)


def _same_count(rows: Sequence[PrintedRow], free: Sequence[PrintedRow], groups: Sequence[Group]) -> Iterator[Refusal]:
    for count in dict.fromkeys(group.count for group in groups):
        names = " and ".join(group.name for group in groups if group.count == count)
        same = [row for row in free if row.count == count]
        if len(same) > FEW:
            n = sum(row.count == count for row in rows)
            why = f"{n:,} of {len(rows):,} kernels have {count:,} launches, as {names}: equality says nothing."
            yield refuse(same, count, why)
        for row in same if len(same) <= FEW else ():
            why = f"As many launches as {names}, but no rule makes it a partner and equality alone is weak.{_tail(row)}"
            yield refuse([row], count, why)


def _tail(*rows: PrintedRow) -> str:
    """What the mixture test says of rows with long launches."""
    mixed = [row for row in rows if row.long]
    return "".join(
        f" About {row.long:,} of {row.count:,} are far longer than the others: it also ran in other steps."
        for row in mixed
    )


def _per_layer(free: Sequence[PrintedRow], layers: int) -> Iterator[Refusal]:
    cycle = [
        row for row in free if layers >= MIN_COUNT and row.count in range(layers, _MOST_PER_LAYER * layers + 1, layers)
    ]
    if cycle:
        each = ", ".join(f"{row.name.short_name} {row.count:,}" for row in cycle)
        why = f"Layer cycle, multiples of {layers:,} layer passes ({each}): neighbours, launched by calls of their own."
        long = [f"{row.name.short_name} {row.long:,}" for row in cycle if row.long]
        why += f" Far longer launches, as of prefill: {', '.join(long)}." if long else ""
        yield refuse(cycle, layers, why)


def _neighbours(free: Sequence[PrintedRow], refused: set[int]) -> Iterator[Refusal]:
    """Counts that several kernels of different roles share."""
    by_count = defaultdict(list)
    for row in free:
        by_count[row.count].append(row)
    for count, some in sorted(by_count.items(), reverse=True):
        roles = {row.role.key for row in some}
        if count >= MIN_COUNT and count not in refused and len(roles) > 1:
            twice = [row for row in by_count.get(2 * count, []) if len(by_count[2 * count]) == 1]
            also = f", and {twice[0].name.short_name} twice as often" if twice else ""
            why = f"{len(some)} kernels have {count:,} launches each{also}: neighbours of one step, several ops."
            yield refuse([*some, *twice], count, why)
