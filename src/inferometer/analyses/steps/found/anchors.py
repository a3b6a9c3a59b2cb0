"""What comes once per step: kernels whose names say their part in it, else kernels that come regularly, with pauses.

An anchor is compared with the bodies (`bodies.py`): between its occurrences must lie the same number of them, nearly
always. Occurrences between two bodies are one event, however many kernels they are. Names come first, since a layer
repeats within a step as a step does within a cycle of prefills, and order alone can't tell which of them is the step.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from inferometer.analyses.steps.found.bodies import Bodies
from inferometer.analyses.steps.found.lanes import DeviceLaunches, Numbers
from inferometer.analyses.steps.found.roles import Flags

_LOST = 0.2  # of a step's bodies: profilers lose records in bursts, and a draft model or an encoder adds some
_LEAST_FIT = 0.85  # of the distances of a named anchor: lost records and chunked prompts break some
_MOST_UNNAMED_ODD = 0.005  # of an unnamed one's: a layer's kernels are regular, too, but for one distance a step
_LEAST_COVERED = 0.8  # of the bodies: what comes in a part of the trace only delimits no step
_FEWEST_UNNAMED = 4  # three distances alike; of two, too many kernels would be
_MOST_UNNAMED = 200  # kernels tried, the rarest first: what comes once per step is rarer than what comes in a layer
_UNNAMED = 0.8  # how far regular order is trusted where no name supports it
_CLEAR_PAUSE = 2.0  # times the longest pause between bodies elsewhere: a host's work between steps
_MOST_PAUSES = 2  # a step: that between two, and one where the host waits for a number
_TWO_KINDS = 2  # of named anchors must agree on steps of a single body, not both copies: weights may come by layer
_COPIES = 0.9  # how far copies are trusted


class Level(msgspec.Struct, frozen=True):
    """An anchor: its `name` in words, and the `slots` in which it stands.

    `strength`, 0 to 1: how well its name shows that it comes once per step. `per_step`: bodies between two; `fit`:
    share of its distances that are about as long.
    """

    name: str
    strength: float
    slots: Numbers
    per_step: int
    fit: float

    def describe(self, bodies: Bodies) -> str:
        """`sampling kernels, every 32 attentions`."""
        units = {"attention": "attention", "gemm": "matrix product", "graph": "graph"}
        unit = units.get(bodies.unit, "launch")
        ending = "" if self.per_step == 1 else "es" if unit == "launch" else "s"
        return f"{self.name}, every {self.per_step:,} {unit}{ending}"


def find_level(lane: DeviceLaunches, bodies: Bodies) -> Level | str:
    """The anchor of the lane's steps, or why there is none."""
    named = [level for level in _named(lane, bodies) if level.fit >= _LEAST_FIT]
    single = [level for level in named if level.per_step == 1]
    may_be_one = bodies.unit == "graph" or (
        len(single) >= _TWO_KINDS and any(level.strength > _COPIES for level in single)
    )
    for level in named:
        if level.per_step > 1 or may_be_one:
            return _filled(level)
    return _unnamed(lane, bodies)


def is_usual(lengths: Numbers, per_step: int) -> Flags:
    """Which lengths are that of a step, but for records that were lost and kernels that don't belong there."""
    return np.asarray(np.abs(lengths - per_step) <= _LOST * per_step)


def _named(lane: DeviceLaunches, bodies: Bodies) -> Iterator[Level]:
    """Anchors known by their names, the best first."""
    roles = lane.roles
    kinds: tuple[tuple[str, float, Flags], ...] = (
        ("sampling kernels", 1.0, roles.sampling),
        ("optimizer kernels", 1.0, roles.optimizer),
        ("embedding kernels", 0.95, roles.embedding),
        ("copies to the host", _COPIES, roles.to_host),
        ("copies to the device", _COPIES, roles.to_device),
    )
    for name, strength, flags in kinds:
        level = _measure(name, strength, np.flatnonzero(flags[lane.role]), bodies)
        if level is not None:
            yield level


def _measure(name: str, strength: float, places: Numbers, bodies: Bodies) -> Level | None:
    """The level of an anchor at these launches; None where it doesn't repeat, or in a part of the trace only."""
    slots = _events(places, bodies)
    if len(slots) < 2:
        return None
    lengths = np.diff(slots)
    values, counts = np.unique(lengths, return_counts=True)
    per_step = int(values[np.argmax(counts)]) if 2 * counts.max() >= len(lengths) else int(np.median(lengths))
    near = np.count_nonzero(is_usual(lengths, per_step))
    several = np.count_nonzero((lengths % per_step == 0) & (lengths > per_step)) if per_step > 1 else 0
    fit = (near + several / 2) / len(lengths)
    first, last = int(slots[0]), int(slots[-1])
    covered = last - first + min(first, per_step) + min(bodies.total - last, per_step)
    if covered < _LEAST_COVERED * bodies.total:
        return None
    return Level(name, strength, slots, per_step, float(fit))


def _events(places: Numbers, bodies: Bodies) -> Numbers:
    """The slots of these launches, each once; where every launch is a body, neighbours are one event."""
    slots = bodies.before[places]
    least = 1 if bodies.unit == "launch" else 0
    return slots[np.diff(slots, prepend=-2) > least]


def _filled(level: Level) -> Level:
    """With the steps whose anchor is not there: where distances are two or more steps long."""
    lengths = np.diff(level.slots)
    missing = np.where((lengths % level.per_step == 0) & (level.per_step > 1), lengths // level.per_step - 1, 0)
    begin = np.repeat(level.slots[:-1], missing)
    turn = np.arange(len(begin)) - np.repeat(np.cumsum(missing) - missing, missing) + 1
    slots = np.sort(np.concatenate((level.slots, begin + turn * level.per_step)))
    return Level(level.name, level.strength, slots, level.per_step, level.fit)


def _unnamed(lane: DeviceLaunches, bodies: Bodies) -> Level | str:
    """The shortest of the regular distances of kernels that come once in several bodies, if the device pauses there.

    Without pauses it may as well be a group of layers or a cycle of steps.
    """
    best: dict[int, Level] = {}
    for role, places in _rare(lane, bodies):
        level = _measure(f"`{lane.roles.names[role]}`", _UNNAMED, places, bodies)
        if level is None or level.per_step < 2 or not _is_regular(level):
            continue
        if level.per_step not in best or level.fit > best[level.per_step].fit:
            best[level.per_step] = level
    if not best:
        return "no kernel comes at regular distances that are longer than a layer"
    levels = [best[per_step] for per_step in sorted(best)]
    paused = [level for level in levels if _pauses(lane, bodies, level)]
    if paused:
        return _filled(paused[0])
    known = levels[0].describe(bodies)
    return f"kernels repeat ({known}), but neither names nor pauses say that these are steps"


def _is_regular(level: Level) -> bool:
    lengths = np.diff(level.slots)
    return bool(np.count_nonzero(lengths != level.per_step) <= _MOST_UNNAMED_ODD * len(lengths))


def _rare(lane: DeviceLaunches, bodies: Bodies) -> Iterator[tuple[int, Numbers]]:
    """Roles that are too rare to be of every body, with their launches, the rarest first."""
    counts = np.bincount(lane.role, minlength=len(lane.roles.names))
    most = bodies.total / 2
    able = [int(role) for role in np.argsort(counts, kind="stable") if _FEWEST_UNNAMED <= counts[role] <= most]
    order = np.argsort(lane.role, kind="stable")
    ends = np.cumsum(counts)
    for role in able[:_MOST_UNNAMED]:
        yield role, order[ends[role] - counts[role] : ends[role]]


def _pauses(lane: DeviceLaunches, bodies: Bodies, level: Level) -> bool:
    """Whether the device pauses longer where the anchor stands than between other bodies.

    Where every launch is a body, the anchor may be anywhere in its step: then whether it pauses once per step.
    """
    idle = np.clip(lane.start - lane.open_until, 0, None)
    if bodies.unit == "launch":
        usual = float(np.quantile(idle, 1 - _MOST_PAUSES / level.per_step))
        return bool(np.median(np.maximum.reduceat(idle, level.slots)) > _CLEAR_PAUSE * max(1.0, usual))
    begins = np.concatenate(([0], bodies.places + 1))
    begins = begins[begins < len(idle)]
    longest = np.maximum.reduceat(idle, begins)
    at_anchor = np.zeros(len(longest), dtype=np.bool_)
    at_anchor[level.slots[level.slots < len(longest)]] = True
    if at_anchor.all() or not at_anchor.any():
        return False
    return bool(np.median(longest[at_anchor]) > _CLEAR_PAUSE * max(1.0, float(np.median(longest[~at_anchor]))))
