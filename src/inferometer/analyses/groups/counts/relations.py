"""Leaders and followers in a table of totals: relations that library sources declare, and sums that only fit.

A declared follower is launched once for each of its leaders, so their counts are equal: accepted when exact, else
refused with the number missing. Names that differ in template numbers only may be one call's variants: that their sum
is another kernel's count is consistent with a group, never proof, and is reported only where chance would rarely do it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from inferometer.analyses.groups.counts.mixture import mixtures_agree
from inferometer.analyses.groups.counts.printed_rows import PrintedRow, by_count, launches
from inferometer.analyses.groups.declared import DECLARED, Relation
from inferometer.analyses.groups.members import Group, Member, Refusal
from inferometer.analyses.groups.names import call_sentence, group_name

MOST_CHANCE = 0.01
"""Sets of names tried, times the chance that a kernel has just this count: below this a sum is reported."""

WORTH_SAYING = 0.1
"""A sum that fits with a chance below this may tempt a reader, so it is refused in words."""

MIN_COUNT = 5
_SHOWN = 6

_NUMBER = re.compile(r"\d+")


def declared_groups(rows: Sequence[PrintedRow]) -> tuple[list[Group], list[Refusal]]:
    """Groups whose follower's count is the sum of its leaders' exactly, and those where it isn't."""
    groups: list[Group] = []
    refused: list[Refusal] = []
    for relation in DECLARED:
        for leaders, followers in _pairs(relation, rows) if relation.bound == "both" else ():
            if relation.times * launches(leaders) == launches(followers):
                groups.append(_group(leaders, followers, f"declared by {relation.source}"))
            else:
                refused.append(_unequal(relation, leaders, followers))
    return groups, refused


def _pairs(relation: Relation, rows: Sequence[PrintedRow]) -> Iterable[tuple[list[PrintedRow], list[PrintedRow]]]:
    """Leaders and followers that belong together, in the order of the table; by dtype where the names show one."""
    sides: dict[str | None, tuple[list[PrintedRow], list[PrintedRow]]] = {}
    for row in rows:
        dtype = row.name.dtype if relation.by_dtype else None
        leads, follows = relation.is_leader(row.kernel), relation.is_follower(row.kernel)
        if leads or follows:
            sides.setdefault(dtype, ([], []))[follows].append(row)
    return ((by_count(leaders), by_count(followers)) for leaders, followers in sides.values())


def _group(leaders: Sequence[PrintedRow], followers: Sequence[PrintedRow], why: str) -> Group:
    members = [Member(side[0].role.label, tuple(row.part() for row in side)) for side in (leaders, followers)]
    keys = [side[0].role.key for side in (leaders, followers)]
    names = f"{len(leaders)} {members[0].role} kernels have" if len(leaders) > 1 else f"{members[0].role} has"
    evidence = [
        f"By counts only: {names} {members[0].count:,} launches, {members[1].role} {members[1].count:,}; {why}."
    ]
    if not mixtures_agree(_long(leaders), _long(followers)):
        evidence.append("Their numbers of long launches differ: some calls may not be of this group.")
    return Group(
        name=group_name(keys, members),
        verdict="counts only",
        members=tuple(members),
        count=members[1].count,
        confidence=None,
        evidence=tuple(evidence),
        call=call_sentence(keys, members),
    )


def _long(rows: Sequence[PrintedRow]) -> int | None:
    known = [row.long for row in rows if row.long is not None]
    return sum(known) if known else None


def _unequal(relation: Relation, leaders: Sequence[PrintedRow], followers: Sequence[PrintedRow]) -> Refusal:
    n_leaders, n_followers = launches(leaders), launches(followers)
    leader, follower = (
        _label(side, words) for side, words in ((leaders, relation.leader), (followers, relation.follower))
    )
    wanted = relation.times * n_leaders
    missing = f"{abs(wanted - n_followers):,} {leader if wanted < n_followers else follower} missing"
    why = f"{follower} follows {leader} ({relation.source}), but {n_leaders:,} and {n_followers:,} launches differ"
    why = f"{why}: {missing}." if relation.times == 1 else f"{why}: expected {relation.times} for each."
    total_ns = sum(row.total_ns or 0 for row in (*leaders, *followers))
    return Refusal(tuple(row.kernel for row in (*leaders, *followers)), n_followers, why, total_ns)


def _label(rows: Sequence[PrintedRow], role: str) -> str:
    return rows[0].role.label if rows else role.split(" ", 1)[1]


def arithmetic_groups(rows: Sequence[PrintedRow], taken: Iterable[str]) -> tuple[list[Group], list[Refusal]]:
    """Sums of names that differ in numbers only, and that are another kernel's count; `taken` kernels have a group."""
    free = [row for row in rows if row.kernel not in set(taken)]
    sets = defaultdict(list)
    for row in free:
        sets[_NUMBER.sub("#", row.kernel)].append(row)
    tried = {stem: by_count(some) for stem, some in sets.items() if len(some) > 1}
    histogram = Counter(row.count for row in rows)
    groups: list[Group] = []
    refused: list[Refusal] = []
    for stem, leaders in tried.items():
        total = launches(leaders)
        fitting = [row for row in free if row.count == total and _NUMBER.sub("#", row.kernel) != stem]
        chance = len(tried) * histogram[total] / len(rows)
        for follower in fitting:
            if total >= MIN_COUNT and chance < MOST_CHANCE and mixtures_agree(_long(leaders), follower.long):
                why = f"consistent, no proof: {len(tried)} sums tried, chance {chance:.3f}"
                groups.append(_group(leaders, [follower], why))
            elif total >= MIN_COUNT and chance < WORTH_SAYING:
                refused.append(_by_chance(leaders, follower, len(tried), chance))
    return groups, refused


def _by_chance(leaders: Sequence[PrintedRow], follower: PrintedRow, tried: int, chance: float) -> Refusal:
    numbers = [f"{row.count:,}" for row in leaders[:_SHOWN]] + ["…"] * (len(leaders) > _SHOWN)
    why = (
        f"{' + '.join(numbers)} = {follower.count:,}: among {tried} such sums one fits by chance with about "
        f"{min(chance, 1):.2f}, and no rule names this pair."
    )
    total_ns = sum(row.total_ns or 0 for row in (*leaders, follower))
    return Refusal(tuple(row.kernel for row in (*leaders, follower)), follower.count, why, total_ns)


def share_followers(group: Group) -> Group:
    """The group with its last role's time shared out over the kernels of the first by their counts: modelled."""
    leader, follower = group.members[0], group.members[-1]
    shares = [
        {"kernel": part.kernel, "modelled_ns": round(follower.total_ns * part.count / leader.count)}
        for part in leader.parts
        if leader.count
    ]
    return replace(group, modelled=tuple(shares))
