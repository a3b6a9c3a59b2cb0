"""One path of an A/B as plain numbers: of each arm, and of each candidate compared with the base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferometer.analyses.ab.statistics import Verdict

Interval = tuple[float, float]
_NAMED = 3


@dataclass(frozen=True)
class Layers:
    """What one row of several layers holds: the shortest and the longest, and their median ns per repetition."""

    count: int
    min_ns: float
    min_layer: str
    max_ns: float
    max_layer: str

    def as_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "min": {"layer": self.min_layer, "ns": self.min_ns},
            "max": {"layer": self.max_layer, "ns": self.max_ns},
        }


@dataclass(frozen=True)
class ArmPath:
    """A path in one arm, a repetition. Times are whole nanoseconds that add up: see `whole_means`.

    Attributes:
        calls: Of all layers together; a fraction where repetitions differ.
        backends: What ran, with the calls in all repetitions; empty where it is no call of an operator.
        host_ns: Mean of the time on the host, with what it calls. On a GPU that is the time to launch.
        host_self_ns: Of it, without what it calls.
        span_ns: Mean of the time between events at entry and exit; on a CPU the host's, by definition. None: some calls
            have no events.
        device_busy_ns: Union of device work launched below it; on a CPU the host's. None: not recorded.
        gap_ns: Between device work of one call, idle or others', recorded; None where not recorded.
        kernels: Launches of it; None where not recorded.
        allocated_bytes: Of device memory, freed in it too; None where not recorded.
        time_ns: The one of `host_ns` and `span_ns` that is compared.
        self_ns: Of it, without what it calls: these add up to the root's `time_ns`.
        steady_ns: `time_ns` without interruptions (see `steady`): what candidates are compared with.
        steady_self_ns: Of it, without what it calls: these add up to the root's `steady_ns`.
        interval_ns: 95 % interval of the mean of `time_ns`; None of one repetition.
        median_call_ns: Of a call, over all repetitions and layers.
        p95_call_ns: The same: 95 of 100 calls are no longer.
        share: Of the root's `steady_ns`.
        layers: None where no layers are pooled.
    """

    calls: float
    backends: Mapping[str, int]
    host_ns: int
    host_self_ns: int
    span_ns: int | None
    device_busy_ns: int | None
    gap_ns: int | None
    kernels: int | None
    allocated_bytes: int | None
    time_ns: int
    self_ns: int
    steady_ns: int
    steady_self_ns: int
    interval_ns: Interval | None
    median_call_ns: float
    p95_call_ns: float
    share: float | None
    layers: Layers | None

    @property
    def ran(self) -> frozenset[str]:
        """What ran, whoever refused before: `torch` of `torch (…)`."""
        return frozenset(name.split(" (")[0] for name in self.backends)

    @property
    def backend(self) -> str | None:
        """What ran, with counts where it was several; None where it is no call of an operator."""
        if len(self.backends) < 2:  # one needs no count
            return next(iter(self.backends), None)
        return ", ".join(f"{name} x {count}" for name, count in self.backends.items())

    def as_json(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "backends": dict(self.backends),
            "calls": self.calls,
            "host_ns": self.host_ns,
            "host_self_ns": self.host_self_ns,
            "device_busy_ns": self.device_busy_ns,
            "gap_ns": self.gap_ns,
            "kernels": self.kernels,
            "allocated_bytes": self.allocated_bytes,
            "span_ns": self.span_ns,
            "time_ns": self.time_ns,
            "self_ns": self.self_ns,
            "steady_ns": self.steady_ns,
            "steady_self_ns": self.steady_self_ns,
            "interval_ns": self.interval_ns,
            "median_call_ns": self.median_call_ns,
            "p95_call_ns": self.p95_call_ns,
            "share": self.share,
            "layers": None if self.layers is None else self.layers.as_json(),
        }


@dataclass(frozen=True)
class PathError:
    """How far an operator's answers are from the base's on the same inputs: of a path or, worst, of those below it.

    `failure`: why one is wrong; None where all are right. `call`: the first such, of its path, from 1.
    """

    max_error: float | None = None
    normalised_error: float | None = None
    tolerance: float | None = None
    call: int | None = None
    failure: str | None = None


@dataclass(frozen=True)
class KernelRatio:
    """The candidate's kernels of a path, and of all below it, over the base's in the same surroundings: see `control`.

    Attributes:
        ratio: Geometric mean over pairs of completions.
        interval: At 95 %; None of too few pairs.
        p: Of no difference, two-sided; None of too few pairs.
    """

    ratio: float
    interval: Interval | None
    p: float | None

    def as_json(self) -> dict[str, Any]:
        return {"ratio": self.ratio, "interval": self.interval, "p": self.p}


@dataclass(frozen=True)
class Versus:
    """A path in a candidate compared with the base.

    Attributes:
        ratio: Steady time of the candidate over that of the base: above 1 it is slower. Geometric mean over pairs of
            repetitions; None where one of them doesn't call it.
        interval: At 95 %, of this path alone; None of too few pairs.
        p: Of no difference, two-sided; None of too few pairs.
        pairs: Repetitions in which both called it.
        verdict: None where one of them doesn't call it; that is reported in `absent`.
        difference_ns: Of mean steady times, candidate less base: what is below a path adds up to it, exactly. A path
            that isn't called took 0.
        difference_interval_ns: At 95 %, from pairs; None of too few.
        self_difference_ns: Of the path itself, without what it calls.
        self_interval_ns: The same.
        is_own: Whether the path itself differs, beyond chance of all paths.
        absent: `not called by triton`; None where both call it.
        error: Of the candidate's answers.
        control: None where it wasn't measured, or the arms don't call the same operators there.
    """

    ratio: float | None
    interval: Interval | None
    p: float | None
    pairs: int
    verdict: Verdict | None
    difference_ns: int
    difference_interval_ns: Interval | None
    self_difference_ns: int
    self_interval_ns: Interval | None
    is_own: bool
    absent: str | None
    error: PathError
    control: KernelRatio | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "ratio": self.ratio,
            "interval": self.interval,
            "p": self.p,
            "pairs": self.pairs,
            "verdict": self.verdict,
            "absent": self.absent,
            "difference_ns": self.difference_ns,
            "difference_interval_ns": self.difference_interval_ns,
            "self_difference_ns": self.self_difference_ns,
            "self_interval_ns": self.self_interval_ns,
            "self_differs": self.is_own,
            "control": None if self.control is None else self.control.as_json(),
            "max_error": self.error.max_error,
            "normalised_error": self.error.normalised_error,
            "tolerance": self.error.tolerance,
            "failing_call": self.error.call,
            "failure": self.error.failure,
        }


@dataclass(frozen=True)
class PathRow:
    """One path. `arms` has those that call it, `versus` all but the base, by name."""

    path: str
    name: str
    parent: int | None
    depth: int
    operator: str | None
    arms: Mapping[str, ArmPath]
    versus: Mapping[str, Versus]

    @property
    def calls(self) -> float:
        """A repetition, of the first arm that calls it."""
        return next(iter(self.arms.values())).calls


@dataclass(frozen=True)
class PathDifference:
    """A place that differs by itself, beyond chance: a path, or a caller below which the arms call different paths.

    Attributes:
        path: The nearest that both arms call; what one arm alone calls at the top is a place by itself.
        gone, new: Names of the paths below that the base alone calls, and the candidate alone: they count with it.
        base_ns: A repetition: steady time of its own, with that of the replaced paths.
        difference_ns: Candidate less base.
        interval_ns: At 95 %.
        share: Of the difference at the root; None where that is 0.
    """

    path: str
    gone: Sequence[str]
    new: Sequence[str]
    base_ns: int
    candidate_ns: int
    difference_ns: int
    interval_ns: Interval | None
    share: float | None

    @property
    def replaced(self) -> str:
        """` (rms_norm -> add_rms_norm)`, ` (without q, k and 4 more)`; empty where both arms call the same."""
        gone, new = _listed(self.gone), _listed(self.new)
        if gone and new:
            return f" ({gone} -> {new})"
        return f" (without {gone})" if gone else f" (with {new})" if new else ""

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "gone": list(self.gone),
            "new": list(self.new),
            "base_ns": self.base_ns,
            "candidate_ns": self.candidate_ns,
            "difference_ns": self.difference_ns,
            "interval_ns": self.interval_ns,
            "share": self.share,
        }


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
