"""Where the host was while the device ran nothing: between which functions, and in which Python frame.

A pause of the program (a sampler that sleeps, a collection of garbage, a wait for a file) is longer idle time at one
place of a step, where a slower host is longer idle time everywhere. Both are sums over whole steps: the places add up
to the idle time of a step, and so do the frames with what no frame holds.

Frames of our own recordings begin with the first op that is called in them, so they say nothing of the time before it:
of these, the frame that called the op which ended the idle time is reported.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.compare.activity.activity import LANE, OWNER, Activity
from inferometer.analyses.compare.phases import PhaseChanges
from inferometer.analyses.comparison_limits import MOST
from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times
from inferometer.analyses.launched_by.user_frames import UserCode, python_file
from inferometer.analyses.nesting import find_innermost
from inferometer.names import decode
from inferometer.trace.trace import Trace
from inferometer.units import format_duration

NEEDED = ("rank", "process", "thread", "frame", "start_ns", "dur_ns")
_BETWEEN = ["after", "before"]
_OWN_FORMAT = "recording"


class Growth(msgspec.Struct, frozen=True):
    """Idle time per step, ns, in base and candidate."""

    base_ns: int
    candidate_ns: int

    @property
    def delta_ns(self) -> int:
        """How much more the candidate has."""
        return self.candidate_ns - self.base_ns

    def as_json(self) -> dict[str, Any]:
        return {"base_ns": self.base_ns, "candidate_ns": self.candidate_ns, "delta_ns": self.delta_ns}


class Place(Growth, frozen=True):
    """Idle time between two functions; `after` is None before the first of a recording.

    `called_in`: the frame that called the second most often, where the CPU runs both; None where that isn't known.
    """

    after: str | None
    before: str
    called_in: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"after": self.after, "before": self.before, "called_in": self.called_in, **super().as_json()}

    def describe(self) -> str:
        """As in: between linear and argmax."""
        name = decode(self.before).short_name
        before = f"the {name} that {self.called_in} calls" if self.called_in else name
        return f"before {before}" if self.after is None else f"between {decode(self.after).short_name} and {before}"


class InFrame(Growth, frozen=True):
    """Idle time while a frame was the innermost of the launching thread; `caller`: the Python code around a native one.

    `own`: the frame is the innermost of the user's code instead, whatever it called.
    """

    frame: str
    caller: str | None = None
    own: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"frame": self.frame, "caller": self.caller, "own": self.own, **super().as_json()}

    def describe(self) -> str:
        """As in: in <built-in function sleep>, called by sampler.py(12): sample."""
        called = f", called by {self.caller}" if self.caller else ""
        return f"in {self.frame}{called}{', or what that called' if self.own else ''}"


class HostTime(msgspec.Struct, frozen=True):
    """By how much the idle time of a step grew, and what holds most of that: a place, a frame, both or neither."""

    idle: Growth
    place: Place | None
    frame: InFrame | None

    @property
    def is_found(self) -> bool:
        """Whether it is known where the host was."""
        return self.place is not None or self.frame is not None

    def as_json(self) -> dict[str, Any]:
        return {
            "idle": self.idle.as_json(),
            "place": None if self.place is None else self.place.as_json(),
            "frame": None if self.frame is None else self.frame.as_json(),
        }

    def describe(self) -> str:
        """What was found, in a sentence."""
        return " and ".join(
            f"{format_duration(each.delta_ns)} {words}"
            for each, words in (
                (self.place, self.place and self.place.describe()),
                (self.frame, self.frame and f"with the host {self.frame.describe()}"),
            )
            if each is not None
        )


def find_host_time(base: Trace, candidate: Trace, leading: PhaseChanges) -> HostTime | None:
    """Where idle time grew; None where it didn't, where steps aren't compared as they are, or no launches show it."""
    runs = leading.pair.base, leading.pair.candidate
    if leading.changes.repair is not None or any(run.gaps.is_empty() for run in runs):
        return None
    gaps = [_whole_steps(run) for run in runs]
    steps = leading.changes.base_steps, leading.changes.candidate_steps
    before, after = (_per_step(each, count) for each, count in zip(gaps, steps, strict=True))
    idle = Growth(before, after)
    if idle.delta_ns <= 0:
        return None
    place = _grown_place(gaps, steps, idle)
    if place is not None and leading.pair.candidate.is_on_cpu:
        place = replace(place, called_in=_caller(candidate, gaps[1], place))
    return HostTime(idle, place, _grown_frame((base, candidate), gaps, steps, idle))


def _whole_steps(run: Activity) -> pl.DataFrame:
    """The gaps of complete steps."""
    keys = ["cycle", *LANE]
    return run.gaps.join(run.cycles.filter("complete").select(keys), on=keys, how="semi", nulls_equal=True)


def _per_step(gaps: pl.DataFrame, steps: int) -> int:
    return round(int((gaps["end_ns"] - gaps["start_ns"]).sum()) / max(steps, 1))


def _grown_place(gaps: list[pl.DataFrame], steps: tuple[int, int], idle: Growth) -> Place | None:
    """The pair of functions between which most of the growth is; None where it is spread."""
    each = [
        run.group_by(_BETWEEN)
        .agg((pl.col("end_ns") - pl.col("start_ns")).sum() / max(count, 1))
        .rename({"end_ns": "ns"})
        for run, count in zip(gaps, steps, strict=True)
    ]
    after, before, *times = _most_grown(*each, by=_BETWEEN)
    place = Place(round(times[0]), round(times[1]), after, before)
    return place if place.delta_ns > MOST * idle.delta_ns else None


def _most_grown(base: pl.DataFrame, candidate: pl.DataFrame, *, by: list[str]) -> tuple[Any, ...]:
    """The row whose `ns` grew most: its keys, `ns` of base and candidate."""
    both = candidate.join(base, on=by, how="left", nulls_equal=True, suffix="_base").fill_null(0.0)
    ordered = both.sort(pl.col("ns") - pl.col("ns_base"), *by, descending=[True, *[False] * len(by)])
    return ordered.select(*by, "ns_base", "ns").row(0)


def _caller(trace: Trace, gaps: pl.DataFrame, place: Place) -> str | None:
    """The innermost frame in which most of the place's second functions began."""
    ends = gaps.filter(*(pl.col(name).eq_missing(pl.lit(getattr(place, name))) for name in _BETWEEN))
    names = []
    for owner, own in ends.group_by(OWNER, maintain_order=True) if "frames" in trace.scope else ():
        frames = _frames_of(trace, owner)
        at = _innermost(frames, own["end_ns"].to_numpy())
        names += frames["frame"].gather(pl.Series(at).replace(-1, None)).drop_nulls().to_list()
    return Counter(names).most_common(1)[0][0] if len(names) > MOST * ends.height else None


def _grown_frame(
    traces: tuple[Trace, Trace], gaps: list[pl.DataFrame], steps: tuple[int, int], idle: Growth
) -> InFrame | None:
    """The frame that holds most of the growth; where native and framework code share it, that of the user's code."""
    if any("frames" not in trace.scope or trace.facts.format == _OWN_FORMAT for trace in traces):
        return None
    times = [_frame_times(*of) for of in zip(traces, gaps, steps, strict=True)]
    if any(each.is_empty() for each in times):
        return None
    for column, is_own in (("frame", False), ("own", True)):
        keys = [column] if is_own else [column, "caller"]
        known = [each.filter(pl.col(column).is_not_null()).group_by(keys).agg(pl.col("ns").sum()) for each in times]
        if known[1].is_empty():
            continue
        name, *rest = _most_grown(known[0], known[1], by=keys)
        caller = None if is_own else rest.pop(0)
        found = InFrame(round(rest[0]), round(rest[1]), name, caller, own=is_own)
        if found.delta_ns > MOST * idle.delta_ns:
            return found
    return None


def _frame_times(trace: Trace, gaps: pl.DataFrame, steps: int) -> pl.DataFrame:
    """`ns` per step by `frame` (the innermost), `caller` (of a native one) and `own` (the user's innermost)."""
    parts = [pl.DataFrame(schema={"frame": pl.String, "caller": pl.String, "own": pl.String, "ns": pl.Float64})]
    for owner, own_gaps in gaps.group_by(OWNER, maintain_order=True):
        parts += _innermost_times(_frames_of(trace, owner), own_gaps, steps)
    return pl.concat(parts).group_by("frame", "caller", "own").agg(pl.col("ns").sum())


def _frames_of(trace: Trace, owner: Sequence[object]) -> pl.DataFrame:
    """`frame`, `start_ns`, `end_ns` of a process's thread that queued most; on a CPU, of the one with most frames."""
    of = [pl.col(name).eq_missing(pl.lit(value, pl.Int64)) for name, value in zip(OWNER, owner, strict=True)]
    frames = trace.frames.filter(*of, pl.col("dur_ns") > 0)
    calls = trace.calls.filter(*of, pl.col("correlation_id").is_not_null()) if "calls" in trace.scope else None
    thread = None
    for rows in (calls, frames):
        if rows is not None and (counts := rows.group_by("thread").len().sort("len", "thread").collect()).height:
            thread = counts["thread"][-1]
            break
    end = (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")
    own = frames.filter(pl.col("thread").eq_missing(pl.lit(thread, pl.Int64)))
    return own.select(pl.col("frame").cast(pl.String), "start_ns", end).collect()


def _innermost_times(frames: pl.DataFrame, gaps: pl.DataFrame, steps: int) -> Iterator[pl.DataFrame]:
    """The gaps' time by the innermost frame of each moment: nothing begins or ends within a piece."""
    idle = Cover.of(gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy())
    if frames.is_empty():
        return
    times = (frames["start_ns"].to_numpy(), frames["end_ns"].to_numpy(), idle.start_ns, idle.end_ns)
    cuts = np.unique(np.concatenate(times))
    time_ns = idle.within(cuts[:-1], cuts[1:])
    pieces = np.flatnonzero(time_ns)
    names = frames["frame"].unique()
    in_python = frames["frame"].is_in(names.filter([python_file(name) is not None for name in names]).implode())
    own = frames["frame"].is_in(names.filter([UserCode().is_own(name) for name in names]).implode())
    found = {}
    for column, of in (("frame", frames), ("caller", frames.filter(in_python)), ("own", frames.filter(own))):
        found[column] = of["frame"].gather(pl.Series(_innermost(of, cuts[pieces])).replace(-1, None))
    table = pl.DataFrame({**found, "ns": time_ns[pieces] / max(steps, 1)})
    native = pl.when(pl.col("caller") != pl.col("frame")).then("caller")
    yield table.with_columns(native.alias("caller"))


def _innermost(frames: pl.DataFrame, times_ns: Times) -> Times:
    """The row of the frame that is the innermost at each time, -1 where there is none."""
    starts, ends = frames["start_ns"].to_numpy(), frames["end_ns"].to_numpy()
    return find_innermost(np.zeros_like(starts), starts, ends, np.zeros_like(times_ns), times_ns)
