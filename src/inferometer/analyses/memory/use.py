"""Device memory over time: the peak of each device, what held it, and what of the reserved memory lies idle.

From a snapshot of an allocator, or from the records of a profiler (`profile_memory=True`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import polars as pl

from inferometer.analyses.launched_by import host_side
from inferometer.analyses.memory.history import History, find_history, find_recorded_history
from inferometer.analyses.memory.holders import OF_STACKS, By, ChainNames, Names, StackNames
from inferometer.analyses.recording_advice import say_how_memory_is_recorded
from inferometer.analyses.result import Result
from inferometer.analyses.rows import first_rows
from inferometer.analyses.timeline.work import at_place
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.tables import TABLES
from inferometer.trace.trace import Trace

Basis = Literal["snapshot", "records"]
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    **{table: tuple(TABLES[table].schema) for table in ("memory_blocks", "memory_events")},
    **host_side.NEEDED,
    "call_paths": ("path_id", "parent_id", "name", "frame", "module"),
}
BEFORE: Final = "(given out before the recording)"
_POINTS: Final = 200
_FREE: Final = "inactive"
_PLACE: Final = {"rank": pl.Int64, "device": pl.String}
_DEVICES: Final = {
    **_PLACE,
    **dict.fromkeys(("reserved_bytes", "allocated_bytes", "requested_bytes", "rounding_bytes"), pl.Int64),
    **dict.fromkeys(("free_bytes", "largest_free_bytes", "events", "peak_bytes", "peak_event", "peak_ns"), pl.Int64),
    **dict.fromkeys(("before_bytes", "mismatched_bytes", "refused"), pl.Int64),
}
_SERIES: Final = {**_PLACE, "first_event": pl.Int64, "time_ns": pl.Int64, "bytes": pl.Int64}


@dataclass(frozen=True)
class MemoryUse(Result):
    """`devices`: a row per device; `holders`: what lived at its peak; `series`: the most in each slice of events.

    `reserved_bytes` make `allocated_bytes` (active blocks) and `free_bytes` (inactive ones). `rounding_bytes`: what
    active blocks have more than was asked for. `peak_event` counts events, 0 is before the first; `peak_ns` is when it
    was, null before the first one. `before_bytes` were allocated before it. `mismatched_bytes`: about which the events
    and what is known besides disagree. `refused`: requests that the allocator had no memory for. Of records, blocks
    that are free aren't known, nor what was asked for.
    """

    view: ClassVar[str] = "memory"
    source: str
    devices: pl.DataFrame
    holders: pl.DataFrame
    series: pl.DataFrame
    by: By
    basis: Basis
    losses: Losses
    top: int | None = None

    def to_polars(self) -> pl.DataFrame:
        """What held each peak."""
        return self.holders

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "by": self.by,
            "basis": self.basis,
            "devices": self.devices.to_dicts(),
            "holders": self.holders.to_dicts(),
            "series": self.series.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def memory_use(trace: Trace, *, by: By | None = None, top: int | None = None) -> MemoryUse:
    """How much memory each device held, and for whom.

    Args:
        trace: With `NEEDED`.
        by: What holds memory: the innermost Python frame outside PyTorch, its file, the whole stack, the chain of ops,
            or the module. By default the frame where any was recorded, else the ops.
        top: Show so many holders of each device.

    Raises:
        InputError: The trace has no memory of devices, or is a snapshot, which knows neither ops nor modules.
    """
    blocks, events = (trace.tables[table].collect() for table in ("memory_blocks", "memory_events"))
    places = pl.concat([frame.select(*_PLACE) for frame in (blocks, events)]).unique().sort(*_PLACE).rows()
    if not places:
        raise InputError(
            f"{trace.facts.source}: expected what an allocator of device memory held, found none",
            hint=say_how_memory_is_recorded(trace.facts.format),
        )
    basis: Basis = "records" if events["allocated_bytes"].count() and blocks.is_empty() else "snapshot"
    by = by or _default(trace, basis)
    names, events = _named(trace, events, basis, by)
    rows, holders, series = [], [], []
    for place in places:
        own_blocks, own_events = (at_place(frame, *place) for frame in (blocks, events))
        own_events = own_events.sort("order" if basis == "snapshot" else "time_ns", "order")
        history = _history(own_blocks, own_events, basis)
        rows.append({**dict(zip(_PLACE, place, strict=True)), **_device(own_blocks, own_events, history, basis)})
        holders.append(first_rows(_holders(place, history, names), top))
        series.append(_series(place, history, own_events))
    return MemoryUse(
        trace.facts.source,
        pl.DataFrame(rows, schema=_DEVICES),
        pl.concat(holders),
        pl.concat(series),
        by,
        basis,
        trace.losses,
        top,
    )


def _default(trace: Trace, basis: Basis) -> By:
    has_frames = basis == "snapshot" or trace.frames.select("frame").head(1).collect().height
    return "frame" if has_frames else "op"


def _named(trace: Trace, events: pl.DataFrame, basis: Basis, by: By) -> tuple[Names, pl.DataFrame]:
    """Names of holders, and the events with the numbers of theirs as `holder`."""
    if basis == "records":
        chains = ChainNames(trace, by)
        return chains, chains.numbered(events)
    if by not in OF_STACKS:
        raise InputError(
            f"{trace.facts.source}: expected {' or '.join(OF_STACKS)} to group a snapshot by, found {by}",
            hint="A snapshot has stacks alone. The records of torch.profiler.profile(profile_memory=True) have ops.",
        )
    return StackNames(trace, by), events.with_columns(pl.col("path_id").alias("holder"))


def _history(blocks: pl.DataFrame, events: pl.DataFrame, basis: Basis) -> History:
    rows = events.select("action", "address", "bytes", "holder")
    if basis == "records":
        return find_recorded_history(rows.rows(), events["allocated_bytes"].to_list())
    active = blocks.filter(pl.col("state") != _FREE)
    return find_history(rows.iter_rows(), active.select("address", "bytes", "path_id").iter_rows())


def _device(blocks: pl.DataFrame, events: pl.DataFrame, history: History, basis: Basis) -> dict[str, Any]:
    peak = history.peak
    return {
        **(_blocks(blocks) if basis == "snapshot" else _last(events, history)),
        "events": events.height,
        "peak_bytes": history.curve[peak],
        "peak_event": peak,
        "peak_ns": events["time_ns"][peak - 1] if peak else None,
        "before_bytes": history.curve[0],
        "mismatched_bytes": history.mismatched_bytes,
        "refused": int((events["action"] == "oom").sum()),
    }


def _blocks(blocks: pl.DataFrame) -> dict[str, int | None]:
    """The state at the end, block by block."""
    active, free = blocks.filter(pl.col("state") != _FREE), blocks.filter(pl.col("state") == _FREE)
    asked = active.filter(pl.col("requested_bytes").is_not_null())
    return {
        "reserved_bytes": int(blocks["bytes"].sum()),
        "allocated_bytes": int(active["bytes"].sum()),
        "requested_bytes": int(asked["requested_bytes"].sum()) if asked.height == active.height else None,
        "rounding_bytes": int((asked["bytes"] - asked["requested_bytes"]).sum()),
        "free_bytes": int(free["bytes"].sum()),
        "largest_free_bytes": int(free["bytes"].max() or 0),  # type: ignore[arg-type]
    }


def _last(events: pl.DataFrame, history: History) -> dict[str, int | None]:
    """The state at the end by its last record."""
    reserved = events["reserved_bytes"].drop_nulls()
    reserved_bytes = reserved[-1] if len(reserved) else None
    allocated = history.curve[-1]
    return {
        "reserved_bytes": reserved_bytes,
        "allocated_bytes": allocated,
        "free_bytes": None if reserved_bytes is None else reserved_bytes - allocated,
    }


def _holders(place: tuple[int | None, str | None], history: History, names: Names) -> pl.DataFrame:
    """What was allocated at the peak, the most bytes first."""
    living = history.at(history.peak)
    rows = pl.DataFrame(
        {"holder": [names.of(life.holder) for life in living], "bytes": [life.bytes for life in living]},
        schema={"holder": pl.String, "bytes": pl.Int64},
    )
    grouped = rows.group_by("holder").agg(pl.col("bytes").sum(), pl.len().cast(pl.Int64).alias("blocks"))
    if unnamed := history.unnamed_at(history.peak):
        before = pl.DataFrame({"holder": [BEFORE], "bytes": [unnamed], "blocks": [None]}, schema=grouped.schema)
        grouped = pl.concat([grouped, before])
    total = grouped["bytes"].sum()
    return grouped.sort("bytes", "holder", descending=[True, False]).select(
        *(pl.lit(value, dtype=_PLACE[name]).alias(name) for name, value in zip(_PLACE, place, strict=True)),
        *("holder", "bytes", "blocks"),
        (pl.col("bytes") / total if total else pl.lit(None, dtype=pl.Float64)).alias("share"),
    )


def _series(place: tuple[int | None, str | None], history: History, events: pl.DataFrame) -> pl.DataFrame:
    """The most in each of up to `_POINTS` slices with as many events."""
    curve, times = history.curve, [None, *events["time_ns"]]
    width = -(-len(curve) // _POINTS)
    rows = [
        {
            **dict(zip(_PLACE, place, strict=True)),
            "first_event": begin,
            "time_ns": times[begin],
            "bytes": max(curve[begin : begin + width]),
        }
        for begin in range(0, len(curve), width)
    ]
    return pl.DataFrame(rows, schema=_SERIES)
