"""Device memory over time: the peak of each device, what held it, and what of the reserved memory lies idle."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import polars as pl

from inferometer.analyses.memory.history import History, find_history
from inferometer.analyses.result import Result
from inferometer.analyses.rows import first_rows
from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

By = Literal["frame", "file", "stack"]
NEEDED: Final = frozenset({"memory_blocks", "memory_events", "call_paths"})
_POINTS: Final = 200
_FREE: Final = "inactive"
_UNKNOWN: Final = "(no stack was recorded)"
_PYTHON: Final = re.compile(r"(.+\.py):\d+ .+", re.DOTALL)
_PYTORCHS: Final = re.compile(r"[/\\]torch[/\\]")
_DEVICES: Final = {
    "device": pl.String,
    **dict.fromkeys(("reserved_bytes", "allocated_bytes", "requested_bytes", "rounding_bytes"), pl.Int64),
    **dict.fromkeys(("free_bytes", "largest_free_bytes", "events", "peak_bytes", "peak_event", "peak_ns"), pl.Int64),
    "mismatched_bytes": pl.Int64,
}
_HOLDERS: Final = {"device": pl.String, "holder": pl.String, "bytes": pl.Int64, "blocks": pl.Int64, "share": pl.Float64}
_SERIES: Final = {"device": pl.String, "first_event": pl.Int64, "time_ns": pl.Int64, "bytes": pl.Int64}


@dataclass(frozen=True)
class MemoryUse(Result):
    """`devices`: a row per device; `holders`: of what is allocated at its peak; `series`: the most per slice of events.

    `reserved_bytes` make `allocated_bytes` (active blocks) and `free_bytes` (inactive ones). `rounding_bytes`: what
    active blocks have more than was asked for. `peak_event` counts events, 0 is before the first; `peak_ns` is when it
    was, null before the first one. `mismatched_bytes`: of blocks on which events and the state at the end disagree.
    """

    view: ClassVar[str] = "memory"
    source: str
    devices: pl.DataFrame
    holders: pl.DataFrame
    series: pl.DataFrame
    by: By
    losses: Losses
    top: int | None = None

    def to_polars(self) -> pl.DataFrame:
        """What held each peak."""
        return self.holders

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "by": self.by,
            "devices": self.devices.to_dicts(),
            "holders": self.holders.to_dicts(),
            "series": self.series.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def memory_use(trace: Trace, *, by: By = "frame", top: int | None = None) -> MemoryUse:
    """How much memory each device held, and for whom.

    Args:
        trace: With `NEEDED`.
        by: What holds memory: the innermost Python frame outside PyTorch, its file, or the whole stack.
        top: Show so many holders of each device.

    Raises:
        InputError: The trace has no memory of devices.
    """
    blocks, events = (trace.tables[table].collect() for table in ("memory_blocks", "memory_events"))
    devices = pl.concat([blocks["device"], events["device"]]).unique().sort().to_list()
    if not devices:
        raise InputError(
            f"{trace.facts.source}: expected what an allocator of device memory held, found none",
            hint="Record it: torch.cuda.memory._record_memory_history(), then _dump_snapshot('snapshot.pickle').",
        )
    names = _HolderNames(trace.call_paths.select("path_id", "parent_id", "name").collect(), by)
    rows, holders, series = [], [], []
    for device in devices:
        own = pl.col("device").eq_missing(device)
        own_blocks, own_events = blocks.filter(own), events.filter(own).sort("order")
        history = _history(own_blocks, own_events)
        rows.append(_device(device, own_blocks, own_events, history))
        holders.append(first_rows(_holders(device, history, names), top))
        series.append(_series(device, history, own_events))
    return MemoryUse(
        trace.facts.source,
        pl.DataFrame(rows, schema=_DEVICES),
        pl.concat(holders),
        pl.concat(series),
        by,
        trace.losses,
        top,
    )


def _history(blocks: pl.DataFrame, events: pl.DataFrame) -> History:
    active = blocks.filter(pl.col("state") != _FREE)
    return find_history(
        events.select("action", "address", "bytes", "path_id").iter_rows(),
        active.select("address", "bytes", "path_id").iter_rows(),
    )


def _device(device: str | None, blocks: pl.DataFrame, events: pl.DataFrame, history: History) -> dict[str, Any]:
    active, free = blocks.filter(pl.col("state") != _FREE), blocks.filter(pl.col("state") == _FREE)
    asked = active.filter(pl.col("requested_bytes").is_not_null())
    peak = history.peak
    return {
        "device": device,
        "reserved_bytes": int(blocks["bytes"].sum()),
        "allocated_bytes": int(active["bytes"].sum()),
        "requested_bytes": int(asked["requested_bytes"].sum()) if asked.height == active.height else None,
        "rounding_bytes": int((asked["bytes"] - asked["requested_bytes"]).sum()),
        "free_bytes": int(free["bytes"].sum()),
        "largest_free_bytes": int(free["bytes"].max() or 0),  # type: ignore[arg-type]
        "events": events.height,
        "peak_bytes": history.curve[peak],
        "peak_event": peak,
        "peak_ns": events["time_ns"][peak - 1] if peak else None,
        "mismatched_bytes": history.mismatched_bytes,
    }


def _holders(device: str | None, history: History, names: "_HolderNames") -> pl.DataFrame:
    """What was allocated at the peak, the most bytes first."""
    living = history.at(history.peak)
    rows = pl.DataFrame(
        {
            "holder": [names.of(life.path) for life in living],
            "bytes": [life.bytes for life in living],
        },
        schema={"holder": pl.String, "bytes": pl.Int64},
    )
    total = rows["bytes"].sum()
    return (
        rows.group_by("holder")
        .agg(pl.col("bytes").sum(), pl.len().cast(pl.Int64).alias("blocks"))
        .sort("bytes", "holder", descending=[True, False])
        .select(
            pl.lit(device, dtype=pl.String).alias("device"),
            *("holder", "bytes", "blocks"),
            (pl.col("bytes") / total if total else pl.lit(None, dtype=pl.Float64)).alias("share"),
        )
    )


def _series(device: str | None, history: History, events: pl.DataFrame) -> pl.DataFrame:
    """The most in each of up to `_POINTS` slices with as many events."""
    curve, times = history.curve, [None, *events["time_ns"]]
    width = -(-len(curve) // _POINTS)
    rows = [
        {
            "device": device,
            "first_event": begin,
            "time_ns": times[begin],
            "bytes": max(curve[begin : begin + width]),
        }
        for begin in range(0, len(curve), width)
    ]
    return pl.DataFrame(rows, schema=_SERIES)


class _HolderNames:
    """What nodes of the stacks are called as holders."""

    def __init__(self, paths: pl.DataFrame, by: By) -> None:
        self._by = by
        self._nodes = {path: (parent, name) for path, parent, name in paths.iter_rows()}
        self._known: dict[int | None, str] = {None: _UNKNOWN}

    def of(self, path: int | None) -> str:
        """The name of one."""
        if path not in self._known:
            self._known[path] = self._name([*self._stack(path)])
        return self._known[path]

    def _stack(self, path: int | None) -> Iterator[str]:
        """Frames, innermost first."""
        while path is not None:
            path, name = self._nodes.get(path, (None, _UNKNOWN))
            yield name

    def _name(self, stack: list[str]) -> str:
        if self._by == "stack":
            return " < ".join(stack)
        python = [frame for frame in stack if _PYTHON.fullmatch(frame)]
        own = next((frame for frame in python if not _PYTORCHS.search(frame)), python[0] if python else stack[0])
        match = _PYTHON.fullmatch(own)
        return match[1] if self._by == "file" and match else own
