"""Which test of a benchmark is slower than before, and is that more than its repetitions vary?

Each test is compared with the one of the same name, by the ratio of its mean times. The interval holds that ratio in 95
of 100 such pairs of runs: Welch's, of the logarithms of both means (their relative errors), so that it is the same
whichever run is the base. Repetitions follow each other in one process, so what differs from process to process isn't
in it; as for steps of a trace, a test is slower only from `MIN_CHANGE` on, what runs of one set-up drift by.
"""

from dataclasses import dataclass
from math import exp, hypot, log
from typing import Any, ClassVar, Final, Literal

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.compare.comparability import other_model_or_hardware
from inferometer.analyses.compare.repetitions import Repeated, has_tests, repeated_in
from inferometer.analyses.compare.setup_changes import SetupChange, find_setup_changes
from inferometer.analyses.comparison_limits import ALPHA, CLEAR_CHANGE, FEW_CHANGE, MIN_CHANGE
from inferometer.analyses.result import Result
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace

NEEDED: Final = {table: tuple(TABLES[table].schema) for table in ("tests", "steps")}
Kind = Literal["slower", "faster", "same", "unclear", "unknown", "new", "gone"]
Verdict = Literal["slower", "faster", "both", "no difference", "unclear", "not comparable"]
Interval = tuple[float, float]
_ACTIVITY: Final = ("function_times", "function_metrics", "launches", "totals", "counters", "calls", "ops")


class ComparedTest(msgspec.Struct, frozen=True):
    """A test in both runs, or in one. `ratio`: time of the candidate over that of the base, above 1 is slower.

    `kind`: `same` is within what runs drift by, `unclear` may be that or more, `unknown` has no spread to judge by.
    """

    name: str
    base: Repeated | None
    candidate: Repeated | None
    ratio: float | None
    interval: Interval | None
    kind: Kind

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        sides = {"base": self.base, "candidate": self.candidate}
        return {
            "name": self.name,
            "kind": self.kind,
            "time_ratio": self.ratio,
            "interval": None if self.interval is None else list(self.interval),
            **{
                f"{side}_{key}": None if one is None else getattr(one, field)
                for side, one in sides.items()
                for key, field in (
                    *(("repetitions", "count"), ("mean_ns", "mean_ns"), ("stddev_ns", "stddev_ns")),
                    *(("tokens_per_s", "rate"), ("tokens_per_s_stddev", "rate_stddev")),
                )
            },
        }


@dataclass(frozen=True)
class TestComparison(Result):
    """Tests of two runs side by side, in the base's order. `stops`: why they can't be compared; then no ratio is."""

    __test__ = False
    view: ClassVar[str] = "compared_tests"
    base: str
    candidate: str
    stops: str | None
    rows: tuple[ComparedTest, ...]
    setup: tuple[SetupChange, ...]
    are_tests: bool
    base_losses: Losses
    candidate_losses: Losses
    losses: Losses

    @property
    def verdict(self) -> Verdict:
        """The verdict on all tests that both runs have."""
        kinds = {row.kind for row in self.rows}
        if self.stops is not None or not kinds - {"new", "gone"}:
            return "not comparable"
        if {"slower", "faster"} <= kinds:
            return "both"
        if "slower" in kinds:
            return "slower"
        if "faster" in kinds:
            return "faster"
        return "no difference" if kinds <= {"same", "new", "gone"} else "unclear"

    def of_kind(self, kind: Kind) -> list[ComparedTest]:
        """The rows of a kind."""
        return [row for row in self.rows if row.kind == kind]

    def is_regression(self, accepted: float) -> bool:
        """Whether a test is slower by more than this part, beyond its noise; runs that can't be compared are one.

        Where noise can't be known, `FEW_CHANGE` takes its place.
        """
        if self.verdict == "not comparable":
            return True
        unknown = 1 + max(FEW_CHANGE, accepted)
        if any(row.ratio is not None and row.ratio > unknown for row in self.of_kind("unknown")):
            return True
        return any(row.interval is not None and row.interval[0] > 1 + accepted for row in self.of_kind("slower"))

    def to_polars(self) -> pl.DataFrame:
        """One row per test."""
        rows = [row.as_json() for row in self.rows]
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "stops": self.stops,
            "base": self.base,
            "candidate": self.candidate,
            "tests": [row.as_json() for row in self.rows],
            "setup": [change.as_json() for change in self.setup],
            "losses": {"base": self.base_losses.as_dict(), "candidate": self.candidate_losses.as_dict()},
        }


def are_repeated(base: Trace, candidate: Trace) -> bool:
    """Whether `compare_tests` is what can be said of these: one has tests, or both have steps and nothing in them."""
    if has_tests(base) or has_tests(candidate):
        return True
    return all(_has_steps_alone(trace) for trace in (base, candidate))


def compare_tests(base: Trace, candidate: Trace) -> TestComparison:
    """Test by test.

    Raises:
        InputError: Only one of the runs is a benchmark's result.
    """
    sides = repeated_in(base), repeated_in(candidate)
    for trace, other in ((base, candidate), (candidate, base)):
        if has_tests(other) and not has_tests(trace):
            raise InputError(
                f"{trace.facts.source}: expected tests of a benchmark, as {other.facts.source} has, found none",
                hint="Compare two results of one benchmark, or two traces. `inferometer summary` shows what a file is.",
            )
    stops = other_model_or_hardware(base, candidate)
    pairs = _pairs(*sides)
    rows = [_compared(name, before, after, stops=stops is not None) for name, before, after in pairs]
    losses = Losses(base.losses.scope & candidate.losses.scope)
    for trace in (base, candidate):
        losses.add(trace.losses, trace.facts.source)
    return TestComparison(
        base=base.facts.source,
        candidate=candidate.facts.source,
        stops=stops or _no_common(rows),
        rows=tuple(rows),
        setup=find_setup_changes(base, candidate),
        are_tests=has_tests(base),
        base_losses=base.losses,
        candidate_losses=candidate.losses,
        losses=losses,
    )


def _has_steps_alone(trace: Trace) -> bool:
    empty = (
        trace.tables[name].head(1).select(pl.len()).collect().item() == 0 for name in _ACTIVITY if name in trace.scope
    )
    return all(empty) and bool(repeated_in(trace))


def _no_common(rows: list[ComparedTest]) -> str | None:
    if any(row.kind not in ("new", "gone") for row in rows):
        return None
    return "The runs have no test in common."


def _pairs(base: list[Repeated], candidate: list[Repeated]) -> list[tuple[str, Repeated | None, Repeated | None]]:
    """By name; of those that repeat, in order."""
    left: dict[str, list[Repeated]] = {}
    for one in candidate:
        left.setdefault(one.name, []).append(one)
    pairs: list[tuple[str, Repeated | None, Repeated | None]] = []
    for one in base:
        others = left.get(one.name)
        pairs.append((one.name, one, others.pop(0) if others else None))
    return [*pairs, *((one.name, None, one) for others in left.values() for one in others)]


def _compared(name: str, base: Repeated | None, candidate: Repeated | None, *, stops: bool) -> ComparedTest:
    if base is None or candidate is None:
        return ComparedTest(name, base, candidate, None, None, "new" if base is None else "gone")
    if stops:
        return ComparedTest(name, base, candidate, None, None, "unknown")
    ratio, spreads = _ratio(base, candidate)
    found = None if ratio is None else _interval(ratio, spreads, (base.count, candidate.count))
    return ComparedTest(name, base, candidate, ratio, found, _kind(ratio, found))


def _ratio(base: Repeated, candidate: Repeated) -> tuple[float | None, tuple[float | None, float | None]]:
    """Time of the candidate over the base's, and the relative deviation of a repetition of each."""
    if base.mean_ns and candidate.mean_ns:
        return candidate.mean_ns / base.mean_ns, (base.spread, candidate.spread)
    if base.rate and candidate.rate:
        rates = [replace(one, mean_ns=None) for one in (base, candidate)]
        return base.rate / candidate.rate, (rates[0].spread, rates[1].spread)
    return None, (None, None)


def _interval(
    ratio: float, spreads: tuple[float | None, float | None], counts: tuple[int | None, int | None]
) -> Interval | None:
    """What holds the ratio in 95 of 100 pairs of runs; None where a deviation or a count isn't known."""
    from scipy.special import stdtrit

    errors, degrees = [], []
    for spread, count in zip(spreads, counts, strict=True):
        if spread is None or count is None or count < 2:
            return None
        errors.append(spread / count**0.5)
        degrees.append(count - 1)
    error = hypot(*errors)
    if not error:
        return ratio, ratio
    freedom = error**4 / sum(each**4 / degree for each, degree in zip(errors, degrees, strict=True))
    reach = float(stdtrit(freedom, 1 - ALPHA / 2)) * error
    return exp(log(ratio) - reach), exp(log(ratio) + reach)


def _kind(ratio: float | None, found: Interval | None) -> Kind:
    if ratio is None or found is None:
        return "unknown"
    for kind, way, (near, far) in (("slower", ratio, found), ("faster", 1 / ratio, (1 / found[1], 1 / found[0]))):
        if near > 1 + MIN_CHANGE or (near > 1 and way > 1 + CLEAR_CHANGE):
            return "slower" if kind == "slower" else "faster"
        if far > 1 + MIN_CHANGE:
            return "unclear"
    return "same"
