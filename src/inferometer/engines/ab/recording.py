"""One recorded completion of an arm: a store that every other command reads, with the call paths in it.

Calls of paths are `spans` of the domain `call paths`; the tree is in `call_paths`, its sums in `path_totals`. On a GPU
the device's time of each path comes from that store. Times in it include what recording costs.
"""

import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from inferometer.analyses.ab.measurement import BUSY
from inferometer.engines.ab.completion import Work
from inferometer.engines.ab.device_time import DOMAIN, NEEDED, device_time
from inferometer.engines.arms import Arm, using
from inferometer.engines.paths import PathRecorder
from inferometer.errors import InputError
from inferometer.record.clock import Clock
from inferometer.record.journal.journal import Journal
from inferometer.record.parts import OPS, PROFILE, Makers, Options
from inferometer.record.recorder import Recording
from inferometer.trace.store import read_store
from inferometer.trace.store_writer import is_store

if TYPE_CHECKING:
    from inferometer.trace.facts import Facts

_NO_DEVICE_WORK = "There is no device work with a host call in it: its paths have no device busy time."
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,-]+")


class Recorded(NamedTuple):
    """`busy`: rows of the table `BUSY`, none without device work (a CPU). `remarks`: what wasn't recorded, and why."""

    busy: pl.DataFrame
    remarks: Sequence[str]


def store_names(arms: Sequence[str]) -> dict[str, str]:
    """The name of each arm's store: `torch.ifm`. Arms whose names differ in odd characters only have a number."""
    names: dict[str, str] = {}
    for arm in arms:
        stem = _UNSAFE.sub("_", arm).strip("_")
        number = sum(name.startswith(f"{stem}.") for name in names.values()) + 1
        names[arm] = f"{stem}.ifm" if number == 1 else f"{stem}.{number}.ifm"
    return names


def plan_stores(arms: Sequence[str], folder: Path, *, force: bool) -> dict[str, Path]:
    """Where each arm's store will be. The folder is made where it isn't there.

    Raises:
        InputError: The folder can't be made, a store is there and `force` isn't set, or something else is there.
    """
    places = {arm: folder / name for arm, name in store_names(arms).items()}
    for place in places.values():
        if place.exists() and not force:
            raise InputError(f"{place}: already exists", hint="Give another folder, or --force to replace it.")
        if place.exists() and not is_store(place):
            raise InputError(f"{place}: exists and is not a store; it is not replaced", hint="Give another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there: {error.strerror}") from error
    return places


def allocations(device: str) -> Callable[[], int] | None:
    """Tells how many bytes PyTorch's allocator has ever handed out on this GPU; None on a CPU, whose doesn't count."""
    if not device.startswith("cuda"):
        return None
    import torch

    return lambda: int(torch.cuda.memory_stats(device).get("allocated_bytes.all.allocated", 0))


def record_arm(work: Work, arm: Arm, path: Path, recorder: PathRecorder, *, force: bool) -> Recorded:
    """Record one completion by `arm` into the store `path`.

    Args:
        work: What to run.
        arm: By which backends.
        path: The store to make.
        recorder: An empty one, without events: they would be device work of their own.
        force: Replace a store that is there.
    """
    journals: list[Journal] = []

    def make_journal(place: Path, clock: Clock, *, force: bool) -> Journal:
        journals.append(Journal(place, clock=clock, force=force))
        return journals[-1]

    recording = Recording(path, Options(workers=False), force=force, makers=Makers(journal=make_journal))
    with recording:
        with using(arm), recorder.entered():
            work.run()
        (journal,) = journals
        journal.change_facts(lambda facts: _about(facts, work, arm))
        add_calls(journal, recorder)
        device = device_time_so_far(journal) if work.engine.device.startswith("cuda") else None
        totals = _totals(recorder, device)
        journal.add("path_totals", totals.height, {name: totals[name] for name in _TOTALS})
    if device is None:
        return Recorded(pl.DataFrame(schema=BUSY), recording.remarks)
    if device.is_empty():
        return Recorded(pl.DataFrame(schema=BUSY), [*recording.remarks, _NO_DEVICE_WORK])
    busy = totals.select(pl.lit(arm.name).alias("arm"), *[name for name in BUSY if name != "arm"])
    return Recorded(busy, recording.remarks)


_TOTALS = ("path_id", "order", "calls", "host_ns", "device_busy_ns", "span_ns", "self_ns", "backend")


def _about(facts: "Facts", work: Work, arm: Arm) -> "Facts":
    from msgspec.structs import replace

    note = f"One completion by the arm {arm.name}. Times of its call paths include what recording costs."
    return replace(facts, model=work.engine.name, notes=(*facts.notes, note))


def add_calls(journal: Journal, recorder: PathRecorder) -> None:
    """Paths as `call_paths`, calls as `spans`, callers before what they call."""
    paths, count = recorder.paths, len(recorder.path_of)
    journal.add(
        "call_paths",
        len(paths),
        {
            "path_id": list(range(len(paths))),
            "parent_id": [path.parent for path in paths],
            "name": [path.name for path in paths],
            "depth": [path.depth for path in paths],
        },
    )
    begun = sorted(range(count), key=lambda n: (recorder.start_ns[n], -n))
    journal.add(
        "spans",
        count,
        {
            "span": [paths[recorder.path_of[n]].name for n in begun],
            "domain": DOMAIN,
            "process": os.getpid(),
            "thread": threading.get_native_id(),
            "start_ns": [journal.clock.at(recorder.start_ns[n]) for n in begun],
            "dur_ns": [recorder.end_ns[n] - recorder.start_ns[n] for n in begun],
        },
    )


def device_time_so_far(journal: Journal) -> pl.DataFrame:
    """From what has been recorded so far: a store can be read while it is written."""
    for shared in (PROFILE, OPS):
        flush = getattr(shared.recorder, "flush", None)
        if flush is not None:
            flush()
    journal.flush()
    with read_store(journal.path, NEEDED) as trace:
        return device_time(trace)


def _totals(recorder: PathRecorder, device: pl.DataFrame | None) -> pl.DataFrame:
    """A row per path: the columns of `path_totals`, and `path`, `kernels`, `gap_ns` and `allocated_bytes`."""
    count = len(recorder.paths)
    calls, host_ns, below_ns = [0] * count, [0] * count, [0] * count
    backends: list[dict[str, None]] = [{} for _ in range(count)]
    allocated: list[int | None] = [None] * count
    for node, more in zip(recorder.path_of, recorder.allocated_bytes, strict=True):
        if more is not None:
            allocated[node] = (allocated[node] or 0) + more
    for node, start_ns, end_ns, backend in zip(
        recorder.path_of, recorder.start_ns, recorder.end_ns, recorder.backend, strict=True
    ):
        calls[node] += 1
        host_ns[node] += end_ns - start_ns
        if (parent := recorder.paths[node].parent) is not None:
            below_ns[parent] += end_ns - start_ns
        if backend is not None:
            backends[node][backend] = None
    made = pl.DataFrame(
        {
            "path_id": range(count),
            "order": range(count),
            "path": [path.key for path in recorder.paths],
            "calls": calls,
            "host_ns": host_ns,
            "self_ns": [host - below for host, below in zip(host_ns, below_ns, strict=True)],
            "backend": pl.Series([", ".join(each) or None for each in backends], dtype=pl.String),
            "allocated_bytes": pl.Series(allocated, dtype=pl.Int64),
        }
    )
    numbers = ("device_busy_ns", "span_ns", "kernels")
    if device is None or device.is_empty():
        return made.with_columns(pl.lit(None, dtype=pl.Int64).alias(name) for name in (*numbers, "gap_ns"))
    joined = made.join(device, on="path", how="left", maintain_order="left")
    joined = joined.with_columns(pl.col(numbers).fill_null(0))  # a call of no time on the clock held nothing
    return joined.with_columns((pl.col("span_ns") - pl.col("device_busy_ns")).alias("gap_ns"))
