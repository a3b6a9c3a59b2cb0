"""What a group is called, and the sentence that an engineer wants: which one call to intercept."""

from collections.abc import Sequence

from inferometer.analyses.groups.library_calls import find_call
from inferometer.analyses.groups.members import Member

_NAMED = 4  # roles in a name


def group_name(keys: Sequence[str], members: Sequence[Member]) -> str:
    """The library call's name where one is known, else the roles in order."""
    call = find_call(keys)
    roles = [member.role for member in members]
    more = [f"{len(roles) - _NAMED} more"] if len(roles) > _NAMED else []
    return call.name if call else " + ".join([*roles[:_NAMED], *more])


def call_sentence(
    keys: Sequence[str], members: Sequence[Member], ops: Sequence[str] = (), *, is_parted: bool = False
) -> str | None:
    """What to intercept; None where neither a rule nor an op names it.

    Args:
        keys: Keys of the roles in order.
        members: The roles.
        ops: Framework ops that the group was seen in, the most frequent first.
        is_parted: Several runs of the group were of one call, so that a run isn't all that a call launches.
    """
    call = find_call(keys)
    more = len(ops) - 2
    seen = " or ".join(ops[:2]) + (f" (or {more} more op{'s' if more > 1 else ''})" if more > 0 else "")
    what = (
        f"it launches {_listed([member.role for member in members])} together{_spared(members, is_parted=is_parted)}."
    )
    if call and ops:
        return f"Intercept {seen}, or below it {call.api}: {what}"
    if call:
        return f"Intercept {call.api}: {what}"
    return f"Intercept {seen}: {what}" if ops else None


def _listed(words: Sequence[str]) -> str:
    if len(words) > _NAMED:
        return f"these {len(words)} kernels"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else f"several {words[0]}"


def _spared(members: Sequence[Member], *, is_parted: bool) -> str:
    every = "in every run" if is_parted else "every time"
    spare = sum(member.optional for member in members)
    if spare == len(members):
        return f", none of them {every}"
    return f", {spare} of them not {every}" if spare else ""
