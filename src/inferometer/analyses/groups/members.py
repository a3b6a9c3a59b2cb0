"""Kernels that one library call always launches together: what a group, its members and a refused candidate are.

A group is an ordered list of roles, each a set of kernel names. It is not a layer: a decode layer repeats in fixed
order, too, but many calls launch it.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

Verdict = Literal["library call", "learned call", "declared call", "fused-wrapper call", "counts only"]


class MemberKernel(msgspec.Struct, frozen=True):
    """One kernel of a role: `count` launches that are part of the group, `of` all its launches.

    `total_ns` is None where the source doesn't say which of the kernel's launches belong here, or they never ran.
    """

    kernel: str
    count: int
    of: int
    total_ns: int | None

    def as_json(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "count": self.count, "of": self.of, "total_ns": self.total_ns}


class Member(msgspec.Struct, frozen=True):
    """One role. `optional`: not every call launches it. `modelled_ns`: of a follower, split over its leaders."""

    role: str
    parts: tuple[MemberKernel, ...]
    optional: bool = False

    @property
    def kernels(self) -> list[str]:
        """Names, the most launched first."""
        return [part.kernel for part in self.parts]

    @property
    def count(self) -> int:
        """Launches in the group."""
        return sum(part.count for part in self.parts)

    @property
    def total_ns(self) -> int:
        """Their time, as far as it is measured."""
        return sum(part.total_ns or 0 for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "kernels": self.kernels,
            "count": self.count,
            "optional": self.optional,
            "total_ns": self.total_ns,
            "parts": [part.as_json() for part in self.parts],
        }


class Site(msgspec.Struct, frozen=True):
    """Where the calls come from: of `of` calls, `count` have this op, module and place in the user's code.

    `module` is the path with all layers as one: `model.layers.*.mlp`.
    """

    op: str | None
    module: str | None
    frame: str | None
    count: int
    of: int

    def as_json(self) -> dict[str, Any]:
        return {"op": self.op, "module": self.module, "frame": self.frame, "count": self.count, "of": self.of}

    def __str__(self) -> str:
        words = ", ".join(filter(None, (self.op, self.module, self.frame)))
        return words if self.count == self.of else f"{words} ({self.count:,} of {self.of:,})"


class Group(msgspec.Struct, frozen=True):
    """Members in order of launch; `count` calls, of which `by_name` were recognised by names alone.

    `confidence` is the lower bound of the weakest link, 0 to 1; None where only counts are known. `evidence`:
    sentences. `call` is the sentence that names the one call to intercept; None where no rule knows it. `edges`: the
    statistics of neighbours in the group, from launches only. `asked`: lines of the source's text that name its
    kernels. `learned_on`: the other file that taught the group, where `sites` are then from.
    """

    name: str
    verdict: Verdict
    members: tuple[Member, ...]
    count: int
    confidence: float | None
    evidence: tuple[str, ...]
    call: str | None = None
    sites: tuple[Site, ...] = ()
    by_name: int = 0
    learned_on: str | None = None
    edges: tuple[dict[str, Any], ...] = ()
    asked: tuple[dict[str, Any], ...] = ()
    modelled: tuple[dict[str, Any], ...] = ()
    section: int | None = None

    @property
    def total_ns(self) -> int:
        """Combined time of the roles, as far as it is measured."""
        return sum(member.total_ns for member in self.members)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "members": [member.as_json() for member in self.members],
            "count": self.count,
            "confidence": self.confidence,
            "evidence": list(self.evidence),
            "site": self.sites[0].as_json() if self.sites else None,
            "total_ns": self.total_ns,
            "verdict": self.verdict,
            "call": self.call,
            "by_name": self.by_name,
            "learned_on": self.learned_on,
            "sites": [site.as_json() for site in self.sites],
            "edges": list(self.edges),
            "asked_about": list(self.asked),
            "modelled": list(self.modelled),
            "section": self.section,
        }


class Refusal(msgspec.Struct, frozen=True):
    """Kernels that look like a group and are none, with the reason. `total_ns` is the sum of their times."""

    kernels: tuple[str, ...]
    count: int
    why: str
    total_ns: int
    section: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "kernels": list(self.kernels),
            "count": self.count,
            "why": self.why,
            "total_ns": self.total_ns,
            "section": self.section,
        }


def with_asked(groups: Sequence[Group], lines: Sequence[dict[str, Any]]) -> list[Group]:
    """Each group with the lines of text that name its kernels; `lines` have `line`, `source`, `text`, `kernels`."""
    found = []
    for group in groups:
        own = {part.kernel for member in group.members for part in member.parts}
        shown = [
            {key: line[key] for key in ("line", "source", "text")}
            for line in lines
            if own.intersection(line["kernels"])
        ]
        found.append(replace(group, asked=tuple(shown)))
    return found
