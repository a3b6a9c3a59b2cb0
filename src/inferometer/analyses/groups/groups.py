"""Kernels that one library call always launches together, and so the one call to intercept.

From launches where there are any: neighbours on a stream that one framework op launched, or without ops neighbours that
stick together in every way that can be seen. From a table of totals by counts only: relations that library sources
declare, with exact sums. What looks like a group and is none is refused, with the reason.

Parts by subject: `ordered_launches`, `pairs` (with the thresholds), `runs`, `sequences`; `counts.relations`,
`counts.varlen_attention`, `counts.coincidences`; `library_calls` for what to intercept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import msgspec
import polars as pl

from inferometer.analyses.absent_work import say_no_launches
from inferometer.analyses.groups.counts.from_totals import groups_of_section
from inferometer.analyses.groups.counts.relations import share_followers
from inferometer.analyses.groups.from_launches import groups_of_launches
from inferometer.analyses.groups.learned import lessons_of
from inferometer.analyses.groups.members import Group, Refusal, with_asked
from inferometer.analyses.groups.ordered_launches import NONE, Ordered
from inferometer.analyses.result import Result
from inferometer.analyses.selection import Selection
from inferometer.analyses.tables.kernels import Basis, basis_of
from inferometer.errors import InputError, UnknownName
from inferometer.names.apis import api_kind
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

SUBMITS = "queue.submit"
NEEDED = {  # the columns of each table that the question touches
    "launches": (
        *("kind", "kernel", "device", "stream", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
        "graph_node_id",
    ),
    "calls": ("rank", "process", "thread", "start_ns", "dur_ns", "correlation_id", "path_id", "kernel", "api"),
    "ops": ("op", "rank", "process", "thread", "start_ns", "dur_ns"),
    "frames": ("frame", "module", "rank", "process", "thread", "start_ns", "dur_ns"),
    "call_paths": ("path_id", "parent_id", "frame", "module"),
    "totals": ("section", "kernel", "count", "total_ns", "mean_ns", "median_ns", "max_ns", "rank"),
    "log": ("line", "source", "text", "fields"),
}


@dataclass(frozen=True)
class Groups(Result):
    """`groups`, most time first; `refused`: what looks like one, with the reason. `shown` and `found` count groups.

    From launches: `launches` selected, of which `with_op` have a known op, `in_graph` came from graph replays and
    `captured` are known by their host calls alone; `in_submits`: no graphs, but lists, as WebGPU's queue takes.
    `teachers`: files to learn from, `idle_teachers` those that taught nothing. `why_none` says why there are no
    launches, where there are none.
    """

    view: ClassVar[str] = "groups"
    source: str
    basis: Basis
    groups: tuple[Group, ...]
    refused: tuple[Refusal, ...]
    found: int
    launches: int
    with_op: int
    in_graph: int
    captured: int
    with_call: int
    in_submits: bool
    teachers: tuple[str, ...]
    idle_teachers: tuple[str, ...]
    losses: Losses
    why_none: str = ""

    def to_polars(self) -> pl.DataFrame:
        """One row per kernel of a group."""
        rows = [
            {"group": number, "name": group.name, "role": member.role, **part.as_json()}
            for number, group in enumerate(self.groups)
            for member in group.members
            for part in member.parts
        ]
        return pl.DataFrame(rows)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "basis": self.basis,
            "groups": [group.as_json() for group in self.groups],
            "refused": [refusal.as_json() for refusal in self.refused],
            "groups_found": self.found,
            "launches": self.launches,
            "launches_with_op": self.with_op,
            "launches_in_graphs": self.in_graph,
            "launches_captured": self.captured,
            "launches_with_call": self.with_call,
            "learned_from": list(self.teachers),
            "losses": self.losses.as_dict(),
        }


def find_groups(
    trace: Trace,
    selection: Selection | None = None,
    *,
    top: int | None = None,
    min_support: int | None = None,
    section: int | None = None,
    split: bool = False,
    learned: Sequence[Groups] = (),
) -> Groups:
    """Kernels that are launched together, from launches, or from totals where there are no launches.

    Args:
        trace: Needs `launches`, `calls`, `ops`, `frames`, `call_paths`, `totals` and `log`; any may be empty.
        selection: Which launches count; all by default. Neighbours on a stream are neighbours in the selection.
        top: Show so many groups.
        min_support: Pairs to be seen before neighbours are taken for a group; by default 2 of one op, 5 without ops.
        section: Only this section of the totals.
        split: From totals, share each follower's time out over its leaders by count: modelled, not measured.
        learned: Groups of other traces, such as an eager run or a graph's capture: what one op launched there is
            recognised here by names, where ops are unknown.

    Raises:
        InputError: The selection names something that is not there, or asks sums for a device, stream, window or
            learned groups.
        UnknownName: There is no such section.
    """
    selection = selection or Selection()
    if basis_of(trace) == "totals":
        if learned:
            raise InputError(
                f"{trace.facts.source}: expected single launches to recognise learned groups, "
                "found only sums by kernel",
                hint="Leave out what to learn from, or give the profile that the sums were made from.",
            )
        found = _from_totals(trace, selection, section, split=split)
    else:
        if section is not None:
            raise UnknownName("section", str(section), [])
        found = _from_launches(trace, selection, min_support, learned)
    return replace(found, groups=tuple(with_asked(found.groups[:top], _named_kernels(trace))))


def _from_launches(trace: Trace, selection: Selection, min_support: int | None, learned: Sequence[Groups]) -> Groups:
    lessons = lessons_of([(other.source, group) for other in learned for group in other.groups])
    groups, refused, work = groups_of_launches(trace, selection, lessons, min_support=min_support)
    return _result(trace, "launches", groups, refused, work, [other.source for other in learned])


def _result(
    trace: Trace,
    basis: Basis,
    groups: Sequence[Group],
    refused: Sequence[Refusal],
    work: Ordered | None,
    teachers: Sequence[str] = (),
) -> Groups:
    taught = {edge["learned_on"] for group in groups for edge in group.edges}
    return Groups(
        source=trace.facts.source,
        basis=basis,
        groups=tuple(groups),
        refused=tuple(refused),
        found=len(groups),
        launches=0 if work is None else len(work.lane),
        with_op=0 if work is None else int((work.op != NONE).sum()),
        in_graph=0 if work is None else int(work.in_graph.sum()),
        captured=0 if work is None else int(work.is_captured.sum()),
        with_call=0 if work is None else int((work.call != NONE).sum()),
        in_submits=work is not None and bool(work.in_graph.any()) and _are_submits(trace),
        teachers=tuple(teachers),
        idle_teachers=tuple(teacher for teacher in teachers if teacher not in taught),
        losses=trace.losses,
        why_none="" if work is not None and len(work.lane) else say_no_launches(trace),
    )


def _are_submits(trace: Trace) -> bool:
    """Whether no call launches a kernel or a graph: all hand over lists."""
    names = trace.calls.select(pl.col("api").unique()).collect()["api"].drop_nulls()
    return SUBMITS in names and not any(api_kind(name) in ("launch", "graph") for name in names)


def _from_totals(trace: Trace, selection: Selection, section: int | None, *, split: bool) -> Groups:
    """Each section by itself, and each rank."""
    for name in ("device", "stream", "between_ns"):
        if getattr(selection, name) is not None:
            raise InputError(
                f"{trace.facts.source}: expected single launches for the selection by {name.removesuffix('_ns')}, "
                "found only sums by kernel",
                hint="Leave the selection out, or give the profile that the sums were made from.",
            )
    totals = trace.totals.collect()
    for column, wanted in (("rank", selection.rank), ("section", section)):
        if wanted is not None:
            known = totals[column].unique().drop_nulls().sort()
            if wanted not in known:
                raise UnknownName(column, str(wanted), map(str, known))
            totals = totals.filter(pl.col(column) == wanted)
    groups: list[Group] = []
    refused: list[Refusal] = []
    for (number, _), rows in totals.group_by("section", "rank", maintain_order=True):
        found, not_one = groups_of_section(rows)
        groups += [msgspec.structs.replace(group, section=int(number)) for group in found]
        refused += [msgspec.structs.replace(refusal, section=int(number)) for refusal in not_one]
    return _result(trace, "totals", [share_followers(group) for group in groups] if split else groups, refused, None)


def _named_kernels(trace: Trace) -> list[dict[str, Any]]:
    """Lines of the source's text that name kernels."""
    lines = trace.log.filter(pl.col("fields").str.contains('"kernels"', literal=True)).collect()
    found = []
    for line, source, text, fields in lines.select("line", "source", "text", "fields").iter_rows():
        kernels = msgspec.json.decode(fields).get("kernels", [])
        found.append({"line": line, "source": source, "text": text, "kernels": kernels})
    return found
