"""Which results stand for a candidate: those of its newest run of an operator, on one device.

Runs of several devices are never put together. Where candidates ran different shapes, `common_keys` says which all ran.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from inferometer.bench.ranking.shape_figures import Key, bound_of, key_of
from inferometer.bench.results import Bound, CandidateRecord, Run, ShapeResult
from inferometer.errors import FormatError, clean

_LEAST, _MOST = 1e-9, 1e18  # of a time in ns, or a speedup: beyond, sums overflow

NamedRun = tuple[str, Run]
"""A run, and what its file is called."""


class Superseded(msgspec.Struct, frozen=True):
    """Results of a candidate that a newer run has again."""

    candidate: str = msgspec.field(name="contender")
    operator: str
    run: str
    date: str
    shapes: int


@dataclass(frozen=True)
class Standing:
    """A candidate on a device, with the runs that its results are from, the newest first."""

    name: str
    about: CandidateRecord | None
    results: tuple[ShapeResult, ...]
    runs: tuple[NamedRun, ...]


@dataclass(frozen=True)
class Group:
    """All runs of one device; `functional_only` ones apart."""

    device: str
    functional_only: bool
    candidates: tuple[Standing, ...]
    superseded: tuple[Superseded, ...]


def group_runs(runs: Sequence[NamedRun]) -> list[Group]:
    """One group per device, in the order of the files; functional ones last."""
    groups: dict[tuple[bool, str], list[NamedRun]] = defaultdict(list)
    for name, run in runs:
        groups[run.functional_only, run.device].append((name, run))
    return [
        _group(device, groups[functional, device], functional_only=functional)
        for functional, device in sorted(groups, key=lambda key: key[0])
    ]


def common_keys(candidates: Sequence[Standing]) -> tuple[frozenset[Key], int]:
    """Shapes that all of them ran, and how many only some did."""
    each = [frozenset(map(key_of, one.results)) for one in candidates]
    every = frozenset[Key]().union(*each)
    common = every.intersection(*each)
    return common, len(every) - len(common)


def check_run(name: str, run: Run) -> None:
    """Refuse what no run of bench can hold, and nothing could be made of.

    Raises:
        FormatError: A time, bound or speedup isn't above 0, a date is none, or a shape is there twice.
    """
    _date(name, run)
    seen: set[tuple[str, Key]] = set()
    for i, result in enumerate(run.results):
        for field, value in _numbers(result):
            if not _LEAST <= value <= _MOST:
                raise FormatError(
                    f"{name}: results[{i}].{field}: expected a number above 0, found {value:g}", hint=_HINT
                )
        key = result.candidate, key_of(result)
        if key in seen:
            what = f"{result.candidate} has {result.operator}, {result.shape} twice"
            raise FormatError(f"{name}: results[{i}]: {clean(what)}", hint=_HINT)
        seen.add(key)


_HINT = "Results of bench hold no such thing: make them again."


def _numbers(result: ShapeResult) -> Iterator[tuple[str, float]]:
    for i, timing in enumerate(result.timings):
        for field in ("median_ns", "p10_ns", "p90_ns", "low_ns", "high_ns"):
            yield f"timings[{i}].{field}", getattr(timing, field)
    for i, versus in enumerate(result.versus):
        for field in ("speedup", "low", "high"):
            yield f"versus[{i}].{field}", getattr(versus, field)
    if result.bound is not None:
        yield "bound.bound_ns", result.bound.bound_ns


def _date(name: str, run: Run) -> datetime:
    try:
        found = datetime.fromisoformat(run.date)
    except ValueError as error:
        message = f'{name}: date: expected a time such as 2026-01-31T12:00:00Z, found "{run.date[:80]}"'
        raise FormatError(message, hint=_HINT) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _group(device: str, runs: Sequence[NamedRun], *, functional_only: bool) -> Group:
    """Newest first; of equal dates the file that was named last."""
    order = {name: (*_standing_order(name, run), i) for i, (name, run) in enumerate(runs)}
    newest = sorted(runs, key=lambda named: order[named[0]], reverse=True)
    taken: dict[str, dict[str, str]] = defaultdict(dict)  # by candidate: the run of each operator
    results: dict[str, list[ShapeResult]] = defaultdict(list)
    used: dict[str, dict[str, Run]] = defaultdict(dict)
    superseded = []
    for name, run in newest:
        older: Counter[tuple[str, str]] = Counter()
        for result in run.results:
            if taken[result.candidate].setdefault(result.operator, name) == name:
                results[result.candidate].append(result)
                used[result.candidate][name] = run
            else:
                older[result.candidate, result.operator] += 1
        superseded += [Superseded(*key, name, run.date, count) for key, count in older.items()]
    candidates = tuple(
        Standing(who, _about(who, used[who].values()), own, tuple(used[who].items()))
        for who, own in _with_bounds(results).items()
    )
    return Group(device, functional_only, candidates, tuple(superseded))


def _standing_order(name: str, run: Run) -> tuple[bool, datetime]:
    """A run that timed comes before a newer one that didn't."""
    return run.stage == "fast", _date(name, run)


def _about(name: str, runs: Iterable[Run]) -> CandidateRecord | None:
    return next((each for run in runs for each in run.candidates if each.name == name), None)


def _with_bounds(results: Mapping[str, Sequence[ShapeResult]]) -> dict[str, tuple[ShapeResult, ...]]:
    """A shape's bound is the device's, not the candidate's: one that failed has that of the others."""
    known: dict[Key, Bound] = {}
    for own in results.values():
        known |= {key_of(each): bound for each in own if (bound := bound_of(each)) is not None}
    return {
        who: tuple(
            each if bound_of(each) else msgspec.structs.replace(each, bound=known.get(key_of(each), each.bound))
            for each in own
        )
        for who, own in results.items()
    }
