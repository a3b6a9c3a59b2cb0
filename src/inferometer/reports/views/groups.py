"""Kernels that one call launches together, a table each; and what was refused."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from inferometer.analyses.groups.groups import SUBMITS, Groups
from inferometer.analyses.groups.members import Group, Refusal
from inferometer.names import decode
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_duration

_SHOWN = 5  # kernels of a role
_REFUSED_SHOWN = 12
_FIELDS = (
    Field("launches", "Launches", "count"),
    Field("total_ns", "Total Time", "ns"),
    Field("of", "Of All", "count", spare=2),
    Field("optional", "Call", "text", spare=3),
    Field("role", "Role", "text", spare=1),
    Field("kernel", "Kernel", "name"),
)
_REFUSED = (
    Field("number", "#", "number"),
    Field("count", "Launches", "count"),
    Field("total_ns", "Total Time", "ns", spare=1),
    Field("kernels", "Kernels", "name"),
)
_OF_SUMS = "Only sums by kernel are in the file: groups are by counts only. Launches with ops would prove them."
_OF_LAUNCHES_ALONE = (
    "Each launch of this file ran alone under Nsight Compute, without the host's calls: groups are by counts only. A "
    "trace of the same program has calls and ops, which prove them: torch.profiler with activities=[ProfilerActivity."
    "CPU, ProfilerActivity.CUDA], or nsys profile --trace=cuda,nvtx."
)
NO_GROUPS = Section("Groups", _FIELDS, pl.DataFrame())


def _sections(found: Groups) -> Sequence[Section]:
    sections = [group_section(group) for group in found.groups] or [NO_GROUPS]
    if found.refused:
        sections.append(refused_section(found.refused))
    return sections


def _remarks(found: Groups) -> Iterator[str]:
    if len(found.groups) < found.found:
        yield f"{len(found.groups):,} of {found.found:,} groups shown."
    if found.basis == "totals":
        yield _OF_LAUNCHES_ALONE if found.losses.total("profiled_alone") else _OF_SUMS
        return
    if not found.launches:
        yield found.why_none
    elif not found.with_call:
        yield "No launch can be tied to a host call: which of them one call launched together can't be known."
    elif not found.with_op and not found.in_submits:
        yield (
            "No framework ops are known for these launches: groups rest on order and host gaps. PyTorch's profiler "
            "records ops with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
        )
    if found.in_submits:
        yield (
            f"{found.in_graph:,} of {found.launches:,} launches were handed over in lists, by {SUBMITS}: a kernel is "
            "what its label names, and none of them is called together with its neighbours."
        )
    elif found.in_graph:
        yield (
            f"{found.in_graph:,} of {found.launches:,} launches are from graph replays, which have no ops: groups in "
            "them are recognised by names that eager launches or other files (--learn-from) taught, or by what a "
            "library's source declares."
        )
    for teacher in found.idle_teachers:
        yield f"Nothing was learned from {teacher}: no pair of it, proved by ops, is among launches of unknown op."
    if found.captured:
        yield (
            f"{found.captured:,} of {found.launches:,} launches are in the file as host calls only, captured into a "
            "graph or not recorded on the device: they have no times."
        )


def group_section(group: Group) -> Section:
    """A table of one group: its kernels in order of launch, with the sentence, the evidence and the site below."""
    rows = []
    for member in group.members:
        rows += [
            _row(member.role, decode(part.kernel).short_name, part.count, part.of, part.total_ns)
            for part in member.parts[:_SHOWN]
        ]
        rest = member.parts[_SHOWN:]
        if rest:
            count, of = sum(part.count for part in rest), sum(part.of for part in rest)
            total_ns = sum(part.total_ns or 0 for part in rest)
            rows.append(_row(member.role, f"{len(rest)} more variants", count, of, total_ns))
        if member.optional:
            rows[-1]["optional"] = "not every"
    title = f"{group.name}: {group.count:,} times"
    frame = pl.DataFrame(rows, schema_overrides={"total_ns": pl.Int64, "optional": pl.String})
    return Section(title, _FIELDS, frame, [*_notes(group)])


def _row(role: str, kernel: str, count: int, of: int, total_ns: int | None) -> dict[str, Any]:
    return {"role": role, "kernel": kernel, "launches": count, "of": of, "total_ns": total_ns, "optional": None}


def _notes(group: Group) -> Iterator[str]:
    if group.call:
        yield group.call
    sure = f" Confidence {group.confidence:.2f}." if group.confidence is not None else ""
    yield f"Evidence: {' '.join(group.evidence)}{sure}"
    if group.sites:
        others = len(group.sites) - 1
        more = f"; {others:,} more site{'s' if others > 1 else ''}" if others else ""
        yield f"Site: {group.sites[0]}{more}"
    for line in group.asked:
        where = f" ({line['source']})" if line["source"] else ""
        yield f"Asked about in line {line['line']}{where}: {line['text']}"
    for share in group.modelled[:_SHOWN]:
        name, time = decode(share["kernel"]).short_name, format_duration(share["modelled_ns"])
        yield f"Modelled by count: {name} has {time} of the follower's time."
    if len(group.modelled) > _SHOWN:
        yield f"{len(group.modelled) - _SHOWN:,} more shares are in --json."


def refused_section(every: Sequence[Refusal]) -> Section:
    """The first candidates refused, with their reasons below."""
    refused, found = every[:_REFUSED_SHOWN], len(every)
    frame = pl.DataFrame(
        {
            "number": list(range(1, len(refused) + 1)),
            "count": [refusal.count for refusal in refused],
            "total_ns": [refusal.total_ns or None for refusal in refused],
            "kernels": [_some(refusal.kernels) for refusal in refused],
        },
        schema={"number": pl.Int64, "count": pl.Int64, "total_ns": pl.Int64, "kernels": pl.String},
    )
    title = "Refused" if found == len(refused) else f"Refused, {len(refused)} of {found:,}"
    notes = [f"{number}. {refusal.why}" for number, refusal in enumerate(refused, start=1)]
    return Section(title, _REFUSED, frame, notes)


def _some(kernels: Sequence[str]) -> str:
    names = list(dict.fromkeys(decode(kernel).short_name for kernel in kernels))
    more = f", {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


VIEW = View(schema=Schema("groups", 1), sections=_sections, remarks=_remarks, remarks_in_json=True)
