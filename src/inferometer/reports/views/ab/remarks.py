"""Remarks on an A/B by call path: verdicts, what ran where, and what to doubt; words that its tables share."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from inferometer.analyses.ab.comparison import PathComparison
from inferometer.analyses.ab.rows import Interval, PathDifference, PathRow
from inferometer.analyses.ab.statistics import LEAST
from inferometer.analyses.ab.steady import MOST, USUAL
from inferometer.units import format_sample, format_share, format_signed_duration

CLOCKS = {"host": "host time", "span": "device span"}
_SHOWN = 12
_FEW_DIGITS = 10
_NOTABLE = 0.001  # of the time


def ab_facts(found: PathComparison) -> list[tuple[str, str]]:
    """What ran where, and what is compared."""
    facts = found.measured.facts
    lines = []
    for label, names in (("Model", ("model", "dtype")), ("Device", ("device", "device_name"))):
        stated = [str(facts[name]) for name in names if facts.get(name) is not None]
        if stated:
            lines.append((label, ", ".join(stated)))
    if all(facts.get(name) is not None for name in ("batch", "prompt_tokens", "new_tokens")):
        work = f"{facts['prompt_tokens']:,} tokens of prompt, {facts['new_tokens']:,} new ones"
        lines.append(("Work", work + (f", {facts['batch']:,} sequences" if facts["batch"] != 1 else "")))
    lines = [("Verdict", each) for each in _verdicts(found)] + lines
    against = f"{', '.join(found.candidates)} against {found.arms[0]}" if found.candidates else ", ".join(found.arms)
    lines.append(("Arms", against))
    lines.append(("Compared", f"{CLOCKS[found.clock]}, {found.repetitions} repetitions{_order(facts.get('order'))}"))
    return lines


def ab_remarks(found: PathComparison) -> Iterator[str]:
    """What a reader must know, the most important first."""
    measured = found.measured
    if measured.ended is not None:
        yield f"Ended early: {measured.ended}. What follows is of {found.repetitions} whole repetitions."
    yield from _wrong_base(found)
    for arm in found.candidates:
        yield from _wrong(found, arm)
    if found.disturbed:
        yield (
            f"No path has a verdict: repetitions of {', '.join(found.disturbed)}, the same work each, took times more "
            f"than {format_share(MOST)} apart (quartiles, of the median). Repeat it on a quiet machine."
        )
    for arm in found.arms:
        yield from (f"{arm}: {each}." for each in measured.refused.get(arm, ()))
        yield from _fallbacks(found, arm)
    yield from measured.notes
    if 0 < found.repetitions < LEAST:
        yield f"{found.repetitions} repetitions are too few to tell a difference from chance: expected {LEAST} or more."
    yield from _clocks(found)
    yield from _interrupted(found)
    yield from _controls(found)
    left_out = measured.calls["repetition"].n_unique() - found.repetitions
    if left_out:
        yield f"{left_out} repetitions that not all arms have are left out."
    if found.unplaced:
        yield f"Checked, but not called in the timed passes: {', '.join(found.unplaced[:_SHOWN])}."
    for arm, store in measured.stores.items():
        yield f"Recording of {arm}: {store}"


def trunk_of(rows: Sequence[PathRow]) -> str:
    """What all paths begin with that says nothing of where they part: `completion.generate.`; may be empty."""
    trunk = ""
    for i, row in enumerate(rows[:-1]):
        is_only = sum(other.parent == row.parent for other in rows) == 1
        if not is_only or rows[i + 1].parent != i:
            break
        trunk = f"{row.path}."
    return trunk


def place_of(difference: PathDifference, trunk: str) -> str:
    """Its path from where paths part, and what the arms do differently below it."""
    return f"{difference.path.removeprefix(trunk)}{difference.replaced}"


def format_interval(interval: Interval | None, *, shares: bool = False) -> str | None:
    """`0.984 to 1.031`; with `shares` what that is more than 1: `-1.6 % to 3.1 %`."""
    if interval is None:
        return None
    if shares:
        return " to ".join(format_share(each - 1) for each in interval)
    return " to ".join(f"{each:.3f}" if each < _FEW_DIGITS else format_sample(each) for each in interval)


def _order(turns: Sequence[Sequence[str]] | None) -> str:
    """Of the arms in each repetition, the first two: after them it goes on so."""
    return "" if not turns else f", in turns: {'; '.join(', '.join(each) for each in turns[:2])}; …"


def _verdicts(found: PathComparison) -> Iterator[str]:
    """Of each candidate as a whole: its root path, the largest difference, what is wrong."""
    trunk = trunk_of(found.rows)
    for arm in found.candidates:
        root = found.rows[0].versus[arm] if found.rows else None
        if root is None or root.verdict is None:
            yield f"{arm}: nothing to compare."
            continue
        within = f" ({format_interval(root.interval)})" if root.interval else ""
        if root.error.failure is not None:
            yield f"{arm}: WRONG at the root; {_wrong_paths(found, arm)}."
            continue
        stated: list[str] = ["too few repetitions to tell" if root.verdict == "too few" else root.verdict]
        if root.ratio:
            stated[0] += f", {root.ratio:.4g} times the time of {found.arms[0]}{within}"
            stated += _as_it_runs(found, arm)
        if found.differences[arm]:
            first = found.differences[arm][0]
            stated.append(
                f"largest difference: {place_of(first, trunk)}, {format_signed_duration(first.difference_ns)}"
            )
        yield f"{arm}: {'; '.join(stated)}."


def _as_it_runs(found: PathComparison, arm: str) -> Iterator[str]:
    """Where paths have the device's own time: what a user sees, with what the host takes to launch."""
    if not found.measured.facts.get("short_waits"):
        return
    passes = [each for each in found.passes if each.arm == arm]
    if passes and passes[-1].ratio is not None:
        within = f" ({format_interval(passes[-1].interval)})" if passes[-1].interval else ""
        yield f"run as it is, launches included, {passes[-1].ratio:.4g} times{within}, {passes[-1].verdict}"


def _held(short_waits: Mapping[str, float]) -> Iterator[str]:
    """What the device's spans hold besides its work."""
    if not short_waits:
        yield "A span has gaps between kernels in it."
        return
    yield (
        "With scopes the device waits until the host has queued what comes: spans have no gaps that launching makes. "
        "Whole runs have them."
    )
    for arm, share in short_waits.items():
        if share > 0:
            yield f"{arm}: the host was late in {format_share(share)} of the stretches; spans in these have gaps."


def _wrong_paths(found: PathComparison, arm: str) -> str:
    wrong = sum(row.operator is not None and row.versus[arm].error.failure is not None for row in found.rows)
    return f"wrong answers at {wrong} path{'' if wrong == 1 else 's'}" if wrong else "no operator was seen to be wrong"


def _wrong_base(found: PathComparison) -> Iterator[str]:
    base = found.arms[0] if found.arms else ""
    if base in found.faults:
        yield f"{base}, the base, is WRONG itself: {found.faults[base].failure}."
    for path, failure in found.measured.errors.filter(pl.col("arm") == base).select("path", "failure").iter_rows():
        yield f"{base}, the base, contradicts itself on the same inputs at {path}: {failure}."


def _clocks(found: PathComparison) -> Iterator[str]:
    """Which times are compared, and what the others are."""
    spans = found.measured.calls["span_ns"]
    if not spans.null_count() and spans.len():
        yield "Host times are times of launching: device spans are compared."
        yield from _held(found.measured.facts.get("short_waits") or {})
    elif spans.null_count() < spans.len():
        yield f"{spans.null_count():,} calls have no device span: host times are compared, those of launching."
    elif spans.len():
        yield "On a CPU the host does the work itself: host time, device span and device busy time are the same."


def _wrong(found: PathComparison, arm: str) -> Iterator[str]:
    failing = [i for i, row in enumerate(found.rows) if row.versus[arm].error.failure is not None]
    callers = {found.rows[i].parent for i in failing}  # that have the fault from a path below
    wrong = [(found.rows[i].path, found.rows[i].versus[arm].error) for i in failing if i not in callers]
    if wrong:
        more = f" (and {len(wrong) - 1} more paths)" if len(wrong) > 1 else ""
        path, error = wrong[0]
        at = "" if error.call is None else f", call {error.call:,}"
        yield f"{arm} is WRONG at {path}{at}{more}: {error.failure}."
    if arm in found.faults:
        yield f"{arm} in the timed passes: {found.faults[arm].failure}."
    agreement = found.agreement(arm)
    if agreement is not None and agreement["not_finite"]:
        yield f"{arm} has NaN or infinite logits at {agreement['not_finite']:,} of {agreement['tokens']:,} positions."
    if agreement is not None and agreement["equal"] < agreement["tokens"]:
        unlike, tokens = agreement["tokens"] - agreement["equal"], agreement["tokens"]
        yield f"{arm} finds another next token most probable at {unlike:,} of {tokens:,} positions."


def _fallbacks(found: PathComparison, arm: str) -> Iterator[str]:
    """Calls that the arm's backend had, but refused, by what ran and why."""
    named = found.measured.refused.get(arm, ())
    calls: dict[str, list[str]] = {}
    for row in found.rows:
        for backend in row.arms[arm].backends if arm in row.arms else ():
            why = backend.partition("(")[2].removeprefix(f"{arm}: ").removesuffix(")")
            if why and not any(why in each for each in named):
                calls.setdefault(backend, []).append(row.operator or row.name)
    for backend, operators in calls.items():
        yield f"{arm}: {', '.join(dict.fromkeys(operators))} ran on {backend}."


def _controls(found: PathComparison) -> Iterator[str]:
    """Which arms' differences are tested as those of their kernels, too."""
    for arm in found.candidates:
        if pairs := found.control_pairs(arm):
            yield (
                f"{arm}: a path is faster or slower where its kernels are so in the same surroundings, too: {pairs:,} "
                "pairs of completions in which either arm ran each call, as drawn."
            )


def _interrupted(found: PathComparison) -> Iterator[str]:
    """How much of each arm's time was taken out, where that is worth a word."""
    roots = {arm: [row.arms[arm] for row in found.rows if row.parent is None and arm in row.arms] for arm in found.arms}
    shares = {
        arm: 1 - sum(each.steady_ns for each in those) / whole
        for arm, those in roots.items()
        if (whole := sum(each.time_ns for each in those))
    }
    if any(share >= _NOTABLE for share in shares.values()):
        of = ", ".join(f"{format_share(share)} of {arm}" for arm, share in shares.items())
        yield f"Interruptions, calls of more than {USUAL} times their usual time, are taken out: {of}. --json has both."
