"""Pairs of kernels that other launches taught: one op launched both there, so here their names alone are enough.

A graph replay has neither ops nor host calls; the capture of that graph, or an eager run of the same model, has both.
Names must be the same, tiles too: taking roles for them found one more true pair of 175 in two ranks, and three false.
"""

from collections.abc import Iterable, Sequence

import msgspec

from inferometer.analyses.groups.members import Group, Site
from inferometer.names import decode


class Lesson(msgspec.Struct, frozen=True):
    """`same` of `known` pairs of neighbours were of one op, in the file `source`."""

    source: str
    known: int
    same: int


class Lessons(msgspec.Struct, frozen=True):
    """What groups of other files teach: `pairs` of short names, and the groups, each with its file."""

    pairs: dict[tuple[str, str], Lesson]
    groups: tuple[tuple[str, Group], ...]

    def find(self, leader: str, follower: str) -> Lesson | None:
        """What is known of two kernels, by their raw names."""
        return self.pairs.get((decode(leader).short_name, decode(follower).short_name))

    def sites(self, kernels: Iterable[str]) -> tuple[str | None, list[Site]]:
        """The file that taught a group of these kernels, by raw name, and where they were launched there."""
        wanted = {decode(kernel).short_name for kernel in kernels}
        for source, group in self.groups:
            if wanted <= {decode(part.kernel).short_name for member in group.members for part in member.parts}:
                return source, list(group.sites)
        return None, []


def lessons_of(groups: Sequence[tuple[str, Group]]) -> Lessons:
    """What groups teach, each with the file it was found in; only those that ops prove."""
    pairs: dict[tuple[str, str], Lesson] = {}
    for source, group in groups:
        for edge in group.edges:
            pair = edge["from"], edge["to"]
            if edge["ruling"] == "library call" and (pair not in pairs or pairs[pair].known < edge["known"]):
                pairs[pair] = Lesson(source, edge["known"], edge["same"])
    return Lessons(pairs, tuple(groups))
