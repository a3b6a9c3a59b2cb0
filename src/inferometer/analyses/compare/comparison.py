"""Why is one run slower than another: may they be compared, what changed, and which cause explains it.

The parts: `phases` (the steps of both runs, by phase), `changes` (functions, with time conserved, and cycles
made comparable), `causes` (metrics that moved, and how high they score where nothing is wrong), `verdicts`. All
thresholds are in `comparison_limits`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.compare.activity.activity import Activity
from inferometer.analyses.compare.causes.calibration import Calibration, calibrate
from inferometer.analyses.compare.causes.causes import Capacities, Cause, rank_causes
from inferometer.analyses.compare.causes.counters import Entity, find_entities
from inferometer.analyses.compare.causes.explained import LongerStep, find_longer_step
from inferometer.analyses.compare.causes.granularity import MatchedSeries, match_series, own_gpus
from inferometer.analyses.compare.causes.metric_roles import ROLES
from inferometer.analyses.compare.changes import Changes, find_changes
from inferometer.analyses.compare.comparability import Comparable, check_comparable
from inferometer.analyses.compare.families import FamilyLine, family_lines
from inferometer.analyses.compare.host_time import NEEDED as FRAMES_NEEDED
from inferometer.analyses.compare.host_time import HostTime, find_host_time
from inferometer.analyses.compare.input_changes import NEEDED as INPUTS_NEEDED
from inferometer.analyses.compare.input_changes import InputChange, find_input_change
from inferometer.analyses.compare.kernels import ComparedKernels, compare_kernels
from inferometer.analyses.compare.phases import Pair, PhaseChanges, Sides, choose_leading, read_sides
from inferometer.analyses.compare.ranks import are_of_one_run, say_ranks
from inferometer.analyses.compare.setup_changes import SetupChange, find_setup_changes, telling_change
from inferometer.analyses.compare.slowdown import find_slowdown
from inferometer.analyses.compare.verdicts import Judged, Outcome, Program, Verdict, find_outcome, judge
from inferometer.analyses.hardware.devices import device_of
from inferometer.analyses.result import Result
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.hardware.device import Device

NEEDED = {
    "launches": (
        *("kind", "kernel", "device", "stream", "rank", "process", "start_ns", "dur_ns", "correlation_id"),
        "graph_node_id",
    ),
    "calls": ("rank", "process", "thread", "start_ns", "dur_ns", "correlation_id"),
    "ops": INPUTS_NEEDED,
    "frames": FRAMES_NEEDED,
    **{
        table: tuple(TABLES[table].schema)
        for table in ("spans", "steps", "totals", "function_times", "function_metrics", "counters")
    },
}


@dataclass(frozen=True)
class Comparison(Result):
    """`causes`: every metric that might be one, ranked; only the verdict "cause named" claims the first (`claimed`).

    `families`: side by side where kernels can't be compared. `not_measured`: classes of causes of which both runs
    together have no metric. `domain`: the class of functions that slowed most. `losses`: of both runs.

    `sides`: where the steps of both runs come from. `phases`: each phase that both have, compared by itself, empty
    where phases aren't known. `changes` and all that follows from them are those of `leading`. `series`: of counters.
    `inputs`: on what else most matrix products ran. `host`: where the host was in what the device waited longer, of a
    step that is slower. `setup`: settings and versions that differ. `ranks`: of either run, as far as known;
    `are_of_one_run`: these are different ranks of one.
    `kernels`: all of both runs, none where they can't be compared.
    """

    view: ClassVar[str] = "comparison"
    base: str
    candidate: str
    judged: Judged
    comparable: Comparable
    changes: Changes
    causes: tuple[Cause, ...]
    families: tuple[FamilyLine, ...]
    calibration: Calibration
    not_measured: tuple[str, ...]
    base_losses: Losses
    candidate_losses: Losses
    losses: Losses
    sides: Sides
    phases: tuple[PhaseChanges, ...]
    leading: PhaseChanges
    series: MatchedSeries
    kernels: ComparedKernels
    ranks: tuple[tuple[int, ...], tuple[int, ...]]
    are_of_one_run: bool
    inputs: InputChange | None = None
    host: HostTime | None = None
    setup: tuple[SetupChange, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """One of eight."""
        return self.judged.verdict

    @property
    def outcome(self) -> Outcome:
        """What became of the time of a step, in few words."""
        return find_outcome(self.verdict, self.changes, self.leading.slowdown)

    @property
    def compares_times(self) -> bool:
        """Whether functions of both runs can be set side by side."""
        return not self.comparable.stops and self.leading.slowdown.has_times

    @property
    def domain(self) -> str | None:
        """The class of functions whose calls slowed most; None where none did beyond noise."""
        return None if self.comparable.stops else self.changes.domain.cls

    def to_polars(self) -> pl.DataFrame:
        """One row a contribution."""
        return pl.DataFrame(self._contributions(), infer_schema_length=None, strict=False)

    def _contributions(self) -> list[dict[str, Any]]:
        if self.comparable.stops:
            return [line.as_json() for line in self.families]
        if not self.compares_times:
            return []
        return [line.as_json() for line in self.changes.contributions]

    def rank_notes(self) -> Iterator[str]:
        """Where the runs are of other ranks: these may have other work, in one and the same program."""
        yield from say_ranks(*self.ranks, of_one_run=self.are_of_one_run)

    def as_json(self) -> dict[str, Any]:
        stops = not self.compares_times
        return {
            "verdict": self.verdict,
            "why": self.judged.why,
            "outcome": self.outcome,
            "base": self.base,
            "candidate": self.candidate,
            "comparable": self.comparable.as_json(),
            "domain": self.domain,
            "classes": [] if stops else [one.as_json() for one in self.changes.domain.classes],
            "causes": [cause.as_json() for cause in self.causes],
            "contributions": self._contributions(),
            "kernels": self.kernels.as_json(),
            "base_step_ns": None if stops else self.changes.base_step_ns,
            "candidate_step_ns": None if stops else self.changes.candidate_step_ns,
            "unexplained_ns": None if stops else self.changes.unexplained_ns,
            "steps": self.sides.as_json(),
            "phase": self.leading.pair.phase,
            "work": self.changes.work.as_json() if self.changes.work and not stops else None,
            "inputs": None if self.inputs is None else self.inputs.as_json(),
            "setup": [change.as_json() for change in self.setup],
            "host_time": None if self.host is None else self.host.as_json(),
            "phases": [] if stops else [one.as_json() for one in self.phases],
            "calibration": {"false_alarm_rate": self.calibration.rate, "halves": list(self.calibration.halves)},
            "not_measured": list(self.not_measured),
            "not_judged": self.series.not_judged(),
            "remarks": [*self.rank_notes(), *self.sides.notes(), *self.changes.notes],
            "losses": {"base": self.base_losses.as_dict(), "candidate": self.candidate_losses.as_dict()},
        }


def compare(
    base: Trace,
    candidate: Trace,
    *,
    more: Sequence[Trace] = (),
    device: "Device | None" = None,
    is_slower: bool = False,
) -> Comparison:
    """The verdict over two runs, with all that it rests on.

    Args:
        base: The normal run. Any table may be empty; what both runs have is compared.
        candidate: The run in question.
        more: Further normal runs, for the level of false alarms.
        device: The device that both ran on, for capacities, where the traces don't say.
        is_slower: The candidate is known to be slower, which a run without function times can't show by itself.

    Raises:
        InputError: Neither functions nor counters are in one of the runs.
    """
    sides = read_sides(base, candidate)
    entities = find_entities(base), find_entities(candidate)
    has_times = _check_something_is_there((base, candidate), sides, entities)
    each = [_changes_of(pair, has_times=has_times) for pair in sides.pairs]
    leading = choose_leading(each)
    comparable = check_comparable(base, candidate, leading, sides, has_times=has_times)
    rank = partial(rank_causes, agreement=leading.slowdown.agreement, capacities=_capacities(base, candidate, device))
    found = _find_causes(entities, leading, more, rank, stops=comparable.stops)
    setup = find_setup_changes(base, candidate)
    program = Program(
        find_input_change(base, candidate) if has_times else None,
        telling_change(setup, on_cpu=leading.pair.candidate.is_on_cpu),
        find_host_time(base, candidate, leading) if leading.slowdown.speed == "slower" else None,
        is_slower,
    )
    is_one_run = are_of_one_run(base, candidate)
    if comparable.stops:
        judged = Judged("not comparable", comparable.why)
    else:
        judged = _judge(found, leading, each, program, is_one_run=is_one_run)
    compares_times = not comparable.stops and leading.slowdown.has_times
    return Comparison(
        base=base.facts.source,
        candidate=candidate.facts.source,
        judged=judged,
        comparable=comparable,
        changes=leading.changes,
        causes=tuple(
            sorted(found.causes, key=lambda cause: cause is not judged.claimed)
        ),  # what is claimed comes first
        families=tuple(family_lines(leading.pair.base, leading.pair.candidate)) if comparable.stops else (),
        calibration=found.calibration,
        not_measured=tuple(_not_measured(found.series)),
        series=found.series,
        inputs=program.inputs,
        host=program.host,
        setup=setup,
        kernels=(
            compare_kernels(base, candidate, leading.pair, leading.changes) if compares_times else ComparedKernels()
        ),
        base_losses=base.losses,
        candidate_losses=candidate.losses,
        ranks=(base.facts.ranks, candidate.facts.ranks),
        are_of_one_run=is_one_run,
        losses=_together(base, candidate),
        sides=sides,
        phases=tuple(one for one in each if one.pair.by_phase),
        leading=leading,
    )


def _check_something_is_there(
    traces: tuple[Trace, Trace], sides: Sides, entities: tuple[list[Entity], list[Entity]]
) -> bool:
    """Whether both runs have times of functions.

    Raises:
        InputError: One has neither these nor counters.
    """
    for trace, functions, counters in zip(traces, _both(sides), entities, strict=True):
        if functions.is_empty and not counters:
            raise InputError(
                f"{trace.facts.source}: expected function times, launches, sums by kernel or counters, found none",
                hint="`inferometer summary` shows what the file holds.",
            )
    return not any(functions.is_empty for functions in _both(sides))


class _Causes(msgspec.Struct, frozen=True):
    """Counters of both runs, the causes among them, ranked, and how high causes score where nothing is wrong."""

    series: MatchedSeries
    causes: list[Cause]
    calibration: Calibration


def _find_causes(
    entities: tuple[list[Entity], list[Entity]],
    leading: PhaseChanges,
    more: Sequence[Trace],
    rank: partial[list[Cause]],
    *,
    stops: bool,
) -> _Causes:
    """`stops`: the runs can't be compared, so there is none."""
    own = own_gpus(leading.pair.base), own_gpus(leading.pair.candidate)
    series = match_series(*entities, own)
    causes = [] if stops else rank(series.base, series.candidate, step=_longer_step(leading))
    normal = [match_series(find_entities(trace), entities[1], own).base for trace in more]
    return _Causes(series, causes, calibrate(series.base, normal, rank, causes[0].score if causes else None))


def _longer_step(leading: PhaseChanges) -> LongerStep | None:
    """Of a step that is clearly longer, as it was recorded."""
    changes, pair = leading.changes, leading.pair
    if leading.slowdown.speed != "slower" or changes.repair is not None:
        return None
    return find_longer_step(pair.base, pair.candidate, (changes.base_step_ns, changes.candidate_step_ns))


def _judge(
    found: _Causes, leading: PhaseChanges, each: Sequence[PhaseChanges], program: Program, *, is_one_run: bool
) -> Judged:
    judged = judge(leading.changes, leading.slowdown, found.causes, found.calibration, program)
    judged = _with_phase(_with_repair(judged, leading.changes), leading, each)
    return _of_ranks(judged) if is_one_run else judged


def _both(sides: Sides) -> tuple[Activity, Activity]:
    """Of the first pair: all have what any has."""
    return sides.pairs[0].base, sides.pairs[0].candidate


def _changes_of(pair: Pair, *, has_times: bool) -> PhaseChanges:
    changes = find_changes(pair.base, pair.candidate, marked=pair.marked)
    on_cpu = pair.base.is_on_cpu and pair.candidate.is_on_cpu
    return PhaseChanges(pair, changes, find_slowdown(changes, has_times=has_times, on_cpu=on_cpu))


def _with_repair(judged: Judged, changes: Changes) -> Judged:
    """With what the times are, where they aren't those that were recorded."""
    repair = changes.repair
    if repair is None or repair.kind != "normalised":
        return judged
    how = f"Times of the candidate are divided by {repair.ratio:.3g}: it calls most functions so many times as often"
    return replace(judged, why=f"{judged.why} {how}, and nothing marks the steps of both runs alike.")


def _of_ranks(judged: Judged) -> Judged:
    """Ranks of one run run one program: functions that differ are no change of it."""
    return replace(judged, verdict="ranks differ") if judged.verdict == "software change" else judged


def _with_phase(judged: Judged, leading: PhaseChanges, each: Sequence[PhaseChanges]) -> Judged:
    """With the phase that it is about, and others that are slower."""
    if not leading.pair.by_phase:
        return judged
    others = [one for one in each if one is not leading and one.slowdown.speed == "slower"]
    sentences = [f"In {leading.pair.name} steps: {judged.why}"]
    for one in others:
        unlike = "" if one.pair.does_same_work else ", which may be their tokens: they differ or aren't known"
        sentences.append(
            f"{one.pair.name.capitalize()} steps are slower, too ({one.changes.step_ratio:.3f} times){unlike}."
        )
    return replace(judged, why=" ".join(sentences))


def _together(base: Trace, candidate: Trace) -> Losses:
    losses = Losses(base.losses.scope & candidate.losses.scope)
    for trace in (base, candidate):
        losses.add(trace.losses, trace.facts.source)
    return losses


def _not_measured(series: MatchedSeries) -> list[str]:
    """Classes of causes without a metric that both runs have in one unit."""
    units = {(*entity.key, entity.unit) for entity in series.candidate}
    known = {entity.role.cause_class for entity in series.base if (*entity.key, entity.unit) in units}
    return [cls for cls in dict.fromkeys(role.cause_class for role in ROLES) if cls and cls not in known]


def _capacities(base: Trace, candidate: Trace, device: "Device | None") -> Capacities:
    """Of the device named, or of the one that the traces describe."""
    traced = (*base.facts.devices, *candidate.facts.devices)
    device = device or next((known for one in traced if (known := device_of(one))), None)
    if device is None:
        return Capacities()
    link, pcie, memory = (None if one is None else one.value for one in (device.link, device.pcie, device.memory))
    return Capacities(link=link, pcie=pcie, memory=memory)
