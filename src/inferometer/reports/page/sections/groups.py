"""Groups: kernels that one call launches together, what proves it, and what looked like a group and is none."""

from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.analyses.groups.groups import Groups
from inferometer.analyses.groups.members import Group, Refusal
from inferometer.names import decode
from inferometer.reports.page.blocks import Block, Grid, Part, Point, Points, Words
from inferometer.reports.page.drawing import cut
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import remarks_of

_TITLE = "Kernels launched together"
_LACKING = "The trace would need launches with the calls or ops that queued them, or sums by kernel with counts."
_GROUP_FIELDS = (
    Field("total_ns", "Total Time", "ns"),
    Field("count", "Calls", "count"),
    Field("confidence", "Confidence", "number", spare=1),
    Field("verdict", "Basis", "text"),
    Field("group", "Group", "name"),
    Field("kernels", "Kernels, in order", "name"),
)
_MEMBER_FIELDS = (
    Field("total_ns", "Total Time", "ns"),
    Field("launches", "Launches", "count"),
    Field("of", "Of All", "count"),
    Field("group", "Group", "text"),
    Field("role", "Role", "text"),
    Field("optional", "Call", "text", spare=1),
    Field("kernel", "Kernel", "name"),
)
_FOLDED = 100  # reasons in one fold
_SAID = 30  # groups with their evidence


def build(run: RunData) -> Block | None:
    """A table of groups, one of their kernels, and the refused."""
    found = run.groups
    if not (found.groups or found.refused or found.launches or run.kernels.kernels):
        return Block("groups", _TITLE, lacking=_LACKING)
    parts: list[Part] = [Words(text, "note") for text in remarks_of(found)]
    if found.groups:
        parts += _tables(found)
    else:
        parts.insert(0, Words("No group was found."))
    if found.refused:
        parts.append(_refused(found.refused))
    return Block("groups", _TITLE, parts)


def _tables(found: Groups) -> Iterator[Part]:
    names = _names(found.groups)
    rows = [
        {
            "total_ns": group.total_ns,
            "count": group.count,
            "confidence": None if group.confidence is None else round(group.confidence, 2),
            "verdict": group.verdict,
            "group": name,
            "kernels": " → ".join(_short(member.kernels[0]) for member in group.members if member.parts),
        }
        for name, group in zip(names, found.groups, strict=True)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"confidence": pl.Float64}, infer_schema_length=None)
    yield Points([_point(group, name) for name, group in zip(names[:_SAID], found.groups, strict=False)])
    yield Grid(Section("Groups", _GROUP_FIELDS, frame), sums=("total_ns",))
    yield Grid(_members(found.groups, names), group="group")


def _names(groups: Sequence[Group]) -> list[str]:
    """Each group's name, with its number where the name repeats: their kernels are distinguished by it."""
    names = [group.name for group in groups]
    return [name if names.count(name) == 1 else f"{name} #{i + 1}" for i, name in enumerate(names)]


def _members(groups: Sequence[Group], names: Sequence[str]) -> Section:
    rows = [
        {
            "total_ns": part.total_ns,
            "launches": part.count,
            "of": part.of,
            "group": name,
            "role": member.role,
            "optional": "not every" if member.optional else None,
            "kernel": part.kernel,
        }
        for name, group in zip(names, groups, strict=True)
        for member in group.members
        for part in member.parts
    ]
    schema = {"total_ns": pl.Int64, "optional": pl.String}
    frame = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    return Section("Kernels of the groups", _MEMBER_FIELDS, frame)


def _point(group: Group, name: str) -> Point:
    """The sentence that names the call, with what proves it behind."""
    sure = "" if group.confidence is None else f", confidence {group.confidence:.2f}"
    site = [f"Site: {group.sites[0]}"] if group.sites else []
    text = f"{name}: {group.call}" if group.call else f"{name}: no rule knows the call that launches these."
    return Point(text, aside=f"{group.count:,} times{sure}, {group.verdict}", detail=[*group.evidence, *site])


def _refused(refused: Sequence[Refusal]) -> Points:
    """All reasons in one fold."""
    words = [f"{' + '.join(map(_short, one.kernels))} ({one.count:,} launches): {one.why}" for one in refused[:_FOLDED]]
    more = [f"{len(refused) - _FOLDED:,} more are in inferometer groups."] if len(refused) > _FOLDED else []
    return Points([Point(f"{len(refused):,} that look like a group and are none", detail=[*words, *more])], "Refused")


def _short(kernel: str) -> str:
    return cut(decode(kernel).short_name)


SECTION = RunSection("groups", build, after="call_tree")
