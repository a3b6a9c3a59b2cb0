"""The launches of each device in the order in which they ran on its main streams.

The main stream is the one with most compute time. Others count as main, too, where they take turns with it: a good part
of the launches runs there, nearly without overlap, so one waits for the other. What runs in parallel with them
(collectives, copies, work of another thread) shows no steps, and is in the step during which it began.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.steps.found.roles import Roles, find_roles
from inferometer.trace.lean import has_one
from inferometer.trace.trace import Trace

Numbers = NDArray[np.int64]
OWNER = ["rank", "process", "device"]
_COLUMNS = ("kind", "kernel", *OWNER, "stream", "start_ns", "dur_ns", "correlation_id")
_LEAST_SHARE = 0.1  # of the compute launches: with fewer, a stream's launches are no phase of their own
_MOST_OVERLAP = 0.01  # of the lesser stream's time: streams that take turns hardly overlap
_NO_STREAM = -1


class DeviceLaunches(msgspec.Struct, frozen=True, dict=True):
    """One device of a process. Arrays are of the main streams' launches, by start; shapes (n,), times in ns.

    `role` numbers `roles.names`. `open_until` is the latest end of all launches before. `same_call` says that a launch
    came from the same call as the one before it, as kernels of a replayed graph do. `kernel_starts` are of all kernels
    of the device, sorted.
    """

    rank: int | None
    process: int | None
    device: str | None
    streams: tuple[int | None, ...]
    roles: Roles
    role: Numbers
    start: Numbers
    end: Numbers
    same_call: NDArray[np.bool_]
    kernel_starts: Numbers

    @cached_property
    def open_until(self) -> Numbers:
        """Shape (n,); the first is the first start."""
        latest = np.maximum.accumulate(self.end)
        return np.concatenate((self.start[:1], latest[:-1]))


def read_lanes(trace: Trace) -> Iterator[DeviceLaunches]:
    """The devices of each process, in order of rank, process and device; those without compute are left out."""
    frame = trace.compact("launches").select(_COLUMNS).collect()
    if frame.is_empty():
        return
    roles, of_launch = _roles(frame)
    frame = frame.select(
        *OWNER,
        pl.col("stream").fill_null(_NO_STREAM),
        "start_ns",
        "dur_ns",
        "correlation_id",
        pl.col("kind").eq("kernel").alias("is_kernel"),
        pl.Series("role", of_launch),
    )
    for part in _parts(frame):
        lane = _lane(part, roles)
        if lane is not None:
            yield lane


def _roles(frame: pl.DataFrame) -> tuple[Roles, Numbers]:
    """The roles, and the number of each launch's."""
    kernels = frame["kernel"].unique()
    names, codes = kernels.cast(pl.String).to_list(), kernels.to_physical().to_numpy()
    roles = find_roles(names)
    table = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    table[codes] = [roles.of[name] for name in names]
    return roles, table[frame["kernel"].to_physical().to_numpy()]


def _parts(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    if has_one(frame, *OWNER):
        yield frame
        return
    owners = frame.select(OWNER).unique()
    owners = owners.with_columns(pl.col("device").cast(pl.String)).sort(OWNER)
    for rank, process, device in owners.iter_rows():
        wanted = zip(OWNER, (rank, process, device), strict=True)
        yield frame.filter(pl.col(name).eq_missing(pl.lit(value, frame.schema[name])) for name, value in wanted)


def _lane(part: pl.DataFrame, roles: Roles) -> DeviceLaunches | None:
    role = part["role"].to_numpy()
    is_compute = roles.compute[role]
    if not is_compute.any():
        return None
    main = part.select("stream", "start_ns", "dur_ns", "role", "correlation_id")
    if has_one(part, "stream"):
        streams = [int(part["stream"][0])]
    else:
        streams = _main_streams(main.select("stream", "start_ns", "dur_ns").filter(pl.Series(is_compute)))
        main = main.filter(pl.col("stream").is_in(streams))
    if not _is_sorted(main["start_ns"].to_numpy()):
        main = main[_order(main)]
    rank, process, device = part.select("rank", "process", pl.col("device").cast(pl.String)).row(0)
    start, calls = main["start_ns"].to_numpy(), main["correlation_id"]
    same_call = (calls == calls.shift(1)).fill_null(value=False).to_numpy()
    return DeviceLaunches(
        rank=rank,
        process=process,
        device=device,
        streams=tuple(None if stream == _NO_STREAM else stream for stream in streams),
        roles=roles,
        role=main["role"].to_numpy(),
        start=start,
        end=start + main["dur_ns"].to_numpy(),
        same_call=same_call,
        kernel_starts=np.sort(part["start_ns"].to_numpy()[part["is_kernel"].to_numpy()], kind="stable"),
    )


def _is_sorted(start: Numbers) -> bool:
    """Whether no two begin at once, and all are in order: then no order of rows could give another one."""
    return bool((start[1:] > start[:-1]).all())


def _order(rows: pl.DataFrame) -> Numbers:
    """By start; of those that begin at once by duration, role and call."""
    start = rows["start_ns"].to_numpy()
    order = np.argsort(start, kind="stable")
    same = start[order[1:]] == start[order[:-1]]
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        few = rows[order[tied]].with_row_index("row")
        order[tied] = order[tied][few.sort("start_ns", "dur_ns", "role", "correlation_id")["row"].to_numpy()]
    return order


def _main_streams(compute: pl.DataFrame) -> list[int]:
    """The stream with most compute time, and those that take turns with it."""
    sums = compute.group_by("stream").agg(pl.len(), pl.col("dur_ns").sum()).sort("dur_ns", "stream", descending=True)
    main = [int(sums["stream"][0])]
    for stream, launches, _ in sums.slice(1).iter_rows():
        if launches >= _LEAST_SHARE * compute.height and _takes_turns(compute, [*main, stream], stream):
            main.append(int(stream))
    return sorted(main)


def _takes_turns(compute: pl.DataFrame, streams: list[int], lesser: int) -> bool:
    """Whether launches of `lesser` hardly run while others do."""
    some = compute.filter(pl.col("stream").is_in(streams)).sort("start_ns", "dur_ns", "stream")
    is_lesser = (some["stream"] == lesser).to_numpy()
    start, dur = some["start_ns"].to_numpy(), some["dur_ns"].to_numpy()
    end = np.maximum.accumulate(start + dur)
    overlap = np.clip(np.minimum(end[:-1], (start + dur)[1:]) - start[1:], 0, None)
    return bool(overlap.sum() <= _MOST_OVERLAP * dur[is_lesser].sum())
