"""Which finding names the cause of another, so that one cause isn't reported as many; and the order that follows.

Rules look at the same time from several sides: where each layer waits for a number from the device, the device idles
(`idle_device`), its kernels start late (`launch_bound`), and the call that waits is known (`sync_points`). All three
are true; the last says what to change. It explains the others where its time is half of theirs or more: with less,
most of their time has another cause; and only where both speak of the same rows of the device-time budget, if they
name any. A rule that can tell how much of its time lies in another's finding says where it is little
(`not_explained_by`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from inferometer.findings.finding import SEVERITIES, Finding

EXPLAINS: Final[Mapping[str, frozenset[str]]] = {
    "first_step_warm_up": frozenset({"idle_device", "sync_points", "launch_bound", "graph_breaks", "disturbed_steps"}),
    "sync_points": frozenset({"launch_bound", "idle_device", "host_gap"}),
    "graph_breaks": frozenset({"launch_bound", "idle_device", "host_gap"}),
    "launch_bound": frozenset({"host_gap"}),
    "rank_imbalance": frozenset({"exposed_collectives", "idle_device"}),
    "repeated_work": frozenset({"unfused_elementwise", "casts_and_copies", "launch_bound"}),
    "unfused_elementwise": frozenset({"casts_and_copies"}),  # those inside a norm are part of its chain
}
"""A rule, and those whose findings it says the cause of. No circle is in it."""

_MOST = 0.5


def explain(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a run in order: gravest first, then by time; what another explains right after that.

    A group of cause and effects stands where its gravest member would. Findings of `info` and those without a time
    neither explain nor are explained.
    """
    causes = [_cause(finding, findings) for finding in findings]
    groups: dict[int, list[int]] = {}
    for place in range(len(findings)):
        groups.setdefault(_root(place, causes), []).append(place)
    ordered: list[Finding] = []
    for root, members in sorted(groups.items(), key=lambda group: min(_key(findings[place]) for place in group[1])):
        for place in sorted(members, key=lambda place: (place != root, _key(findings[place]))):
            cause = causes[place]
            ordered.append(replace(findings[place], explained_by=None if cause is None else findings[cause].rule))
    return ordered


def _cause(finding: Finding, findings: Sequence[Finding]) -> int | None:
    """The place of the finding with the most time that explains this one."""
    if finding.severity == "info" or not finding.size_ns:
        return None
    least = _MOST * finding.size_ns
    places = [
        place
        for place, other in enumerate(findings)
        if finding.rule in EXPLAINS.get(other.rule, ())
        and other.rule not in finding.not_explained_by
        and other.severity != "info"
        and other.size_ns is not None
        and other.size_ns >= least
        and _may_meet(other, finding)
    ]
    return max(places, key=lambda place: findings[place].size_ns or 0, default=None)


def _may_meet(one: Finding, other: Finding) -> bool:
    """Whether they may be about the same time, by the rows of the budget that they name."""
    return not one.parts or not other.parts or not set(one.parts).isdisjoint(other.parts)


def _root(place: int, causes: Sequence[int | None]) -> int:
    cause = causes[place]
    return place if cause is None else _root(cause, causes)


def _key(finding: Finding) -> tuple[int, int]:
    return SEVERITIES.index(finding.severity), -(finding.size_ns or 0)
