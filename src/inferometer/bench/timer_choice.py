"""Which timer a run uses: the one that was asked for, or the best that works here, with what spoke against others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inferometer.bench.candidates import Candidate
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.lineup import Lineup
from inferometer.bench.race import Caught, Pace, ProfileTimes, Race
from inferometer.bench.results import Timer
from inferometer.bench.session import ProcessLimits, Session
from inferometer.errors import InputError, Unavailable
from inferometer.operators import require_operator

_BEST: Sequence[Timer] = ("cupti", "graph", "events")
_PROBE = "rms_norm"  # with its first tiny shape
_PROBE_S = 0.2


@dataclass(frozen=True)
class TimerChoice:
    """`timer` is used for every call of a run; `refused`: why better ones weren't."""

    timer: Timer
    refused: Mapping[str, str] = field(default_factory=dict)


def choose_timer(asked: Timer | None, device: str, of_profile: ProfileTimes, limits: ProcessLimits) -> TimerChoice:
    """On a CPU the host's clock. On a GPU the one that was asked for, or the first that can time a plain kernel.

    Raises:
        InputError: That timer isn't for this device.
        Unavailable: It doesn't work here, or none does.
    """
    if device == "cpu":
        if asked not in (None, "host"):
            raise InputError(f"--timer {asked} is for GPUs: on a CPU calls are timed by the host's clock")
        return TimerChoice("host")
    if asked == "host":
        raise InputError("--timer host is for CPUs: a GPU goes on when the host has queued the call")
    refused: dict[str, str] = {}
    for timer in _BEST if asked is None else (asked,):
        why = _try(timer, device, of_profile, limits)
        if why is None:
            return TimerChoice(timer, refused)
        refused[timer] = why
    text = "; ".join(f"{name}: {why}" for name, why in refused.items())
    raise Unavailable(f"no timer works on {device}: {text}", hint="--timer chooses another.")


def _try(timer: Timer, device: str, of_profile: ProfileTimes, limits: ProcessLimits) -> str | None:
    """Why a timer can't time a kernel of PyTorch on a device; None where it can."""
    operator = require_operator(_PROBE)
    args: Mapping[str, Any] = operator.tiny[0]
    try:
        with Lineup([Session(operator, Candidate("torch"), device, timed=True, limits=limits)]) as lineup:
            race = Race(lineup, operator, "probe", args, 1, device, Pace(timer, _PROBE_S), 1, of_profile)
            return race.run("warm").cannot
    except (CandidateFailed, Caught) as failed:
        return str(failed)
