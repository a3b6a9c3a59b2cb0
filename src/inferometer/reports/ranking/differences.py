"""What differs between two runs, and how their shapes compare."""

from inferometer.bench.ranking.differences import Differences
from inferometer.reports.page.blocks import Block, Grid, Part, Words
from inferometer.reports.views.ranking.differences import (
    changes_section,
    difference_remarks,
    differences_section,
    levels_section,
)


def build_differences(found: Differences) -> Block:
    """The verdict in a sentence, then what may explain it, then the shapes."""
    verdict, *rest = difference_remarks(found)
    parts: list[Part] = [Words(verdict, "verdict"), *(Words(words, "note") for words in rest)]
    sections = [changes_section(found), *([levels_section(found)] if found.wholes else []), differences_section(found)]
    parts += [Grid(section, sums=()) for section in sections]
    return Block("differences", "Differences of the two runs", parts)
