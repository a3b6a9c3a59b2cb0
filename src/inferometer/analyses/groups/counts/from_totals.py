"""Groups from a table of totals: by counts only, section by section, since sections may count the same launches."""

from collections.abc import Sequence

import polars as pl

from inferometer.analyses.groups.counts.coincidences import coincidences
from inferometer.analyses.groups.counts.printed_rows import PrintedRow, printed_rows
from inferometer.analyses.groups.counts.relations import arithmetic_groups, declared_groups
from inferometer.analyses.groups.counts.varlen_attention import varlen_groups
from inferometer.analyses.groups.members import Group, Refusal


def groups_of_section(totals: pl.DataFrame) -> tuple[list[Group], list[Refusal]]:
    """Groups, most time first, and what was refused. `totals`: rows of one section."""
    rows = printed_rows(totals)
    groups, refused = _known(rows)
    taken = {part.kernel for group in groups for member in group.members for part in member.parts}
    more, doubtful = arithmetic_groups(rows, taken)
    groups += more
    refused += [*coincidences(rows, groups), *doubtful]
    return sorted(groups, key=lambda group: -group.total_ns), refused


def _known(rows: Sequence[PrintedRow]) -> tuple[list[Group], list[Refusal]]:
    """Groups that libraries declare; FlashAttention 3 first, whose metadata one forward shares with another."""
    varlen, odd = varlen_groups(rows)
    taken = {part.kernel for group in varlen for member in group.members for part in member.parts}
    taken.update(kernel for refusal in odd for kernel in refusal.kernels)
    declared, unequal = declared_groups([row for row in rows if row.kernel not in taken])
    return [*declared, *varlen], [*unequal, *odd]
