"""FlashAttention 3 with sequences of different lengths, from counts: metadata, then the forward, then combine if split.

Every call launches the metadata kernel and the forward; only a split forward is followed by combine. So the counts must
add up twice: metadata = all forwards, combine = split forwards. Source: FlashAttention hopper/flash_api.cpp.
"""

from collections.abc import Sequence

from inferometer.analyses.groups.counts.printed_rows import PrintedRow, by_count, launches, refuse
from inferometer.analyses.groups.counts.varlen_batches import SEQUENCES_PER_WARP, UnsplitSteps, find_unsplit
from inferometer.analyses.groups.kernel_roles import is_split, warps_of_metadata
from inferometer.analyses.groups.members import Group, Member, MemberKernel, Refusal
from inferometer.analyses.groups.names import call_sentence, group_name
from inferometer.names import decode

_METADATA = "flash_attn3 attention metadata"
_COMBINE = "flash_attn3 attention combine"


def varlen_groups(rows: Sequence[PrintedRow]) -> tuple[list[Group], list[Refusal]]:
    """Groups of the metadata kernel with its forwards; nothing without it."""
    metadata = by_count([row for row in rows if row.role.key == _METADATA])
    forward = by_count([row for row in rows if _is_varlen_forward(row)])
    if not metadata or not forward:
        return [], []
    split = [row for row in forward if is_split(row.name)]
    combine = [row for row in rows if row.role.key == _COMBINE]
    for leaders, followers in ((metadata, forward), (split, combine)):
        if launches(leaders) != launches(followers):
            return [], [_unequal(leaders, followers)]
    plain = [row for row in forward if row not in split]
    if split and plain:
        return _shared_metadata(rows, metadata, split, plain, combine)
    return [_group([row.part() for row in metadata], forward, combine)], []


def _is_varlen_forward(row: PrintedRow) -> bool:
    name = row.name
    return name.library == "flash_attn3" and name.family == "attention" and "varlen" in name.flags


def _unequal(leaders: Sequence[PrintedRow], followers: Sequence[PrintedRow]) -> Refusal:
    n, wanted = launches(followers), launches(leaders)
    label = (leaders or followers)[0].role.label
    missing = f"found {n:,}: {abs(n - wanted):,} missing"
    why = f"FlashAttention 3: {wanted:,} launches of {label} need as many after them, {missing}."
    return refuse([*leaders, *followers], n, why)


def _shared_metadata(
    rows: Sequence[PrintedRow],
    metadata: Sequence[PrintedRow],
    split: Sequence[PrintedRow],
    plain: Sequence[PrintedRow],
    combine: Sequence[PrintedRow],
) -> tuple[list[Group], list[Refusal]]:
    """Two groups, split and not, where the counts show which metadata row serves the unsplit forward; else one."""
    unsplit = launches(plain)
    found = find_unsplit(metadata, unsplit, [row for row in rows if row.name.family == "gemm"])
    row = next((row for row in metadata if found and warps_of_metadata(row.kernel) == found.warps), None)
    if found is None or row is None or row.count < unsplit:
        why = "Which metadata launches serve the unsplit forward can't be derived from these counts."
        return [_group([row.part() for row in metadata], [*split, *plain], combine, why)], []
    why = _why(found, row)
    rest = [each.part() for each in metadata if each is not row]
    if row.count > unsplit:
        rest.append(_some_of(row, row.count - unsplit))
    groups = [_group(rest, split, combine, why), _group([_some_of(row, unsplit)], plain, [], why)]
    return groups, _tempting(metadata, row, unsplit)


def _some_of(row: PrintedRow, count: int) -> MemberKernel:
    return MemberKernel(row.kernel, count, row.count, row.total_ns if count == row.count else None)


def _why(found: UnsplitSteps, row: PrintedRow) -> str:
    return (
        f"The unsplit forward ran in {found.steps} steps of {found.layers} layers, with as many sequences as the "
        f"output head's tile of {found.tile} has room for: the {found.warps}-warp metadata, {SEQUENCES_PER_WARP} "
        f"sequences a warp, serves these (inferred from the counts of GEMM tiles). It has {row.count:,} launches."
    )


def _tempting(metadata: Sequence[PrintedRow], row: PrintedRow, unsplit: int) -> list[Refusal]:
    """A row that has exactly as many launches as the unsplit forward, but another batch size."""
    found = []
    for other in metadata:
        if other.count == unsplit and other is not row:
            rest = [each for each in metadata if each is not other]
            numbers = " + ".join(f"{each.count:,}" for each in rest)
            why = (
                f"{numbers} = {launches(rest):,}, the split forward, and {unsplit:,} = {unsplit:,}, the unsplit one: a "
                f"coincidence. {warps_of_metadata(other.kernel)} warps are for other batch sizes than the unsplit "
                f"forward's, which has the {warps_of_metadata(row.kernel)}-warp kernel."
            )
            found.append(refuse([*rest, other], launches(rest), why))
    return found


def _group(
    metadata: Sequence[MemberKernel], forward: Sequence[PrintedRow], combine: Sequence[PrintedRow], why: str = ""
) -> Group:
    members = [
        Member("attention metadata", tuple(sorted(metadata, key=lambda part: -part.count))),
        Member(forward[0].role.label, tuple(row.part() for row in forward)),
    ]
    if combine:
        members.append(
            Member("attention combine", tuple(row.part() for row in combine), launches(combine) < launches(forward))
        )
    keys = [_METADATA, forward[0].role.key, *(row.role.key for row in combine[:1])]
    evidence = [f"By counts only: {' = '.join(f'{member.count:,} {member.role}' for member in members)}."]
    evidence += [why] if why else []
    evidence += [
        f"{decode(part.kernel).short_name} serves another group, too: its time is in neither total."
        for part in metadata
        if part.total_ns is None and part.count < part.of
    ]
    return Group(
        name=group_name(keys, members),
        verdict="counts only",
        members=tuple(members),
        count=launches(forward),
        confidence=None,
        evidence=tuple(evidence),
        call=call_sentence(keys, members),
    )
