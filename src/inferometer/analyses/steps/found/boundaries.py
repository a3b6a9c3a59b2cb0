"""Where one step ends and the next begins, between the last layer of the one and the first of the other.

There the last layer's rest, the logits, the sampler and the copies of tokens come before the boundary, and input
copies, preparation and the embedding after it. Each pair of neighbours is a candidate; pairs of equal roles are judged
together, by the median pause of the device between them: the host works between two steps. A copy to the host ends a
step rather than a kernel does. So equal surroundings are cut at the same place, whatever one pause was. The factors
were chosen on synthetic traces, changed in several ways (`benchmarks/steps_truth.py`): no real capture that we have
holds more than two steps.
"""

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.steps.found.anchors import Level
from inferometer.analyses.steps.found.bodies import Bodies
from inferometer.analyses.steps.found.lanes import DeviceLaunches, Numbers
from inferometer.analyses.steps.found.roles import Flags

_NO_PAUSE_NS = 300  # added to every pause, so that pauses of nothing are distinguished by what is around them
_COPY_FIRST = 3.0  # how much likelier a step ends with a copy to the host: engines wait for its tokens
_SAMPLER_FIRST = 1.5  # or with the sampler itself
_OUTERMOST = 1.4  # or as the trace begins or ends: recording often does so between steps; breaks ties only
_CLEAR = 1.5  # times the score of the next best place
_THREE = 3  # launches that show a step's beginning or end where no other step is next to it
_RARE = 0.05  # of the cuts: a pair of roles that is rarer ends no step at an edge of the trace


class Cuts(msgspec.Struct, frozen=True):
    """Where steps begin.

    `places`: a step begins at each but the last, which is after the last step's end; launches before the first and
    from the last on are of no step. `clear`: share of the cuts that had no rival. `begins_whole`, `ends_whole`: the
    first piece begins, and the last ends, as steps do.
    """

    places: Numbers
    clear: float
    begins_whole: bool
    ends_whole: bool


class _Pairs(msgspec.Struct, frozen=True):
    """Candidates: the `event`, the launch `at` that would begin a step, the `pair` of roles there, and its pause."""

    event: Numbers
    at: Numbers
    pair: Numbers
    pause: Numbers


def find_cuts(lane: DeviceLaunches, bodies: Bodies, level: Level) -> Cuts | None:
    """The boundaries of the steps that `level` gives; None where no two steps meet."""
    first, last = _regions(bodies, level)
    if not len(first):
        return None
    first, last = _narrowed(lane, first, last)
    pairs = _pairs(lane, first, last)
    chosen, clear = _choose(lane, pairs, len(first))
    counts = dict(zip(*np.unique(chosen.pair, return_counts=True), strict=True))
    usual = np.array([pair for pair, n in counts.items() if n >= _RARE * len(chosen.pair)], dtype=np.int64)
    until, since = int(chosen.at[0]), int(chosen.at[-1])
    if bodies.unit != "launch":
        until, since = min(until, int(bodies.places[0])), max(since, int(bodies.places[-1]))
    begin, begins_whole = _first_step(lane, until, chosen, usual)
    end, ends_whole = _last_step(lane, since, chosen, usual)
    places = np.unique(np.concatenate((begin, chosen.at, end))).astype(np.int64)
    return Cuts(places, clear, begins_whole, ends_whole)


def _regions(bodies: Bodies, level: Level) -> tuple[Numbers, Numbers]:
    """First and last launch that may begin a step, for each place where two steps meet."""
    slots = level.slots
    if bodies.unit == "launch":  # nothing tells where in its cycle an anchor stands
        return slots[:-1] + 1, slots[1:]
    slots = slots[(slots > 0) & (slots < bodies.total)]
    return bodies.places[slots - 1] + 1, bodies.places[slots]


def _narrowed(lane: DeviceLaunches, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
    """Behind the last sampler or optimizer in the region, and not behind its embedding."""
    ends = _latest(lane, lane.roles.sampling | lane.roles.optimizer, last)
    first = np.where(ends >= first, np.minimum(ends + 1, last), first)
    embeds = _latest(lane, lane.roles.embedding, last)
    return first, np.where(embeds >= first, embeds, last)


def _latest(lane: DeviceLaunches, flags: Flags, at: Numbers) -> Numbers:
    """The last launch up to each of `at` whose role has the flag; -1 where there is none."""
    places = np.concatenate(([-1], np.flatnonzero(flags[lane.role])))
    return np.asarray(places[np.searchsorted(places, at, side="right") - 1])


def _pairs(lane: DeviceLaunches, first: Numbers, last: Numbers) -> _Pairs:
    sizes = last - first + 1
    event = np.repeat(np.arange(len(first)), sizes)
    at = np.arange(len(event)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)
    pause = np.clip(lane.start[at] - lane.open_until[at], 0, None)
    return _Pairs(event, at, _pair(lane, at), np.where(lane.same_call[at], -1, pause))


def _pair(lane: DeviceLaunches, at: Numbers) -> Numbers:
    """The roles before and at each launch, as one number."""
    return lane.role[at - 1] * len(lane.roles.names) + lane.role[at]


def _choose(lane: DeviceLaunches, pairs: _Pairs, events: int) -> tuple[_Pairs, float]:
    """The best candidate of each event, and the share of events without a rival to it."""
    score = _scores(lane, pairs, events) * np.where(_behind_sampler(lane, pairs.at), _SAMPLER_FIRST, 1.0)
    for ends in (np.array([0]), np.array([len(lane.role)])):
        offset = 0 if ends[0] == 0 else _THREE
        score *= np.where(_three(lane, pairs.at - offset) == _three(lane, ends - offset), _OUTERMOST, 1.0)
    score = np.where(pairs.pause < 0, 0.0, score)  # within a graph's replay
    order = np.lexsort((pairs.at, -pairs.pause, -score, pairs.event))
    sorted_events = pairs.event[order]
    begins = np.flatnonzero(np.diff(sorted_events, prepend=-1))
    best = order[begins]
    after = np.minimum(begins + 1, len(order) - 1)
    has_rival = (sorted_events[after] == sorted_events[begins]) & (after > begins)
    rival = np.where(has_rival, score[order[after]], 0.0)
    clear = float(np.mean(score[best] >= _CLEAR * rival))
    return _Pairs(pairs.event[best], pairs.at[best], pairs.pair[best], pairs.pause[best]), clear


def _scores(lane: DeviceLaunches, pairs: _Pairs, events: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How well a step may begin at each candidate: by the median pause of all with its pair, and how common that is."""
    frame = pl.DataFrame({"pair": pairs.pair, "pause": pairs.pause.clip(0), "event": pairs.event})
    known = frame.group_by("pair").agg(pl.col("pause").median(), pl.col("event").n_unique().alias("events"))
    share = (pl.col("events") / events).sqrt()
    scores = known.select("pair", ((pl.col("pause") + _NO_PAUSE_NS) * share).alias("score"))
    score = frame.join(scores, on="pair", how="left", maintain_order="left")["score"].to_numpy()
    return np.asarray(score * np.where(lane.roles.to_host[lane.role[pairs.at - 1]], _COPY_FIRST, 1.0))


def _behind_sampler(lane: DeviceLaunches, at: Numbers) -> Flags:
    flags = lane.roles.sampling | lane.roles.optimizer
    return np.asarray(flags[lane.role[at - 1]])


def _first_step(lane: DeviceLaunches, until: int, chosen: _Pairs, usual: Numbers) -> tuple[list[int], bool]:
    """Where the first step begins, and whether it is whole, as far as its beginning shows.

    At a usual pair a step ends, of which the recording holds too little to have a body, and the first begins. What else
    comes before launches that begin a step as others do is of no step, if the device pauses after it as it does
    between steps, and else of the first step: it was warming up.
    """
    head = np.arange(1, until)
    begins = head[np.isin(_pair(lane, head), usual)]
    if len(begins):
        return [0, int(begins[-1])], False
    head = np.arange(until)
    alike = head[np.isin(_three(lane, head), _three(lane, chosen.at))]
    if not len(alike):
        return [0], int(lane.role[0]) in lane.role[chosen.at]
    place = int(alike[-1])
    pause = int(lane.start[place] - lane.open_until[place])
    return [place if pause >= np.median(chosen.pause) else 0], True


def _last_step(lane: DeviceLaunches, since: int, chosen: _Pairs, usual: Numbers) -> tuple[list[int], bool]:
    """Where the last step ends, and whether it is whole, as far as its end shows; what is after it is of none."""
    size = len(lane.role)
    tail = np.arange(since + 1, size)
    ends = tail[np.isin(_pair(lane, tail), usual)]
    if len(ends):
        return [int(ends[0]), size], False
    tail = np.arange(since + 1, size + 1)
    alike = tail[np.isin(_three(lane, tail - _THREE), _three(lane, chosen.at - _THREE))]
    if not len(alike):
        return [size], int(lane.role[-1]) in lane.role[chosen.at - 1]
    return [int(alike[0])], True


def _three(lane: DeviceLaunches, at: Numbers) -> Numbers:
    """The roles of three launches from each on, as one number; near the ends, of the outermost launches."""
    number, last = len(lane.roles.names), len(lane.role) - 1
    first, second, third = (lane.role[np.clip(at + i, 0, last)] for i in range(_THREE))
    return np.asarray((first * number + second) * number + third)
