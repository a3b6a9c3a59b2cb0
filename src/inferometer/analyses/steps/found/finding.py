"""Steps found in the order of launches alone: names, times, streams. No host side is needed.

    from inferometer.analyses.steps.found.finding import find_steps
    find_steps(trace).steps

Each device's main streams are one sequence (`lanes.py`) of roles (`roles.py`). What repeats within steps counts their
length (`bodies.py`), what comes once per step is their anchor (`anchors.py`), and the host's pause between two is their
boundary (`boundaries.py`). The steps are then compared with each other (`segments.py`): where they aren't alike, there
are none, with the reason.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.steps.found.lanes import OWNER, DeviceLaunches, read_lanes
from inferometer.analyses.steps.found.parting import Parting, find_parting, is_training
from inferometer.analyses.steps.found.phases import PHASES
from inferometer.analyses.steps.found.segments import count_layers
from inferometer.analyses.steps.found.warm_up import find_warm_up
from inferometer.trace.trace import Trace

STEPS = pl.Schema(
    {
        "rank": pl.Int64(),
        "process": pl.Int64(),
        "device": pl.String(),
        **dict.fromkeys(("step", "start_ns", "dur_ns"), pl.Int64()),
        "phase": pl.String(),
        **dict.fromkeys(("kernels", "launches", "layers"), pl.Int64()),
        **dict.fromkeys(("is_partial", "is_warm_up"), pl.Boolean()),
        "confidence": pl.Float64(),
    }
)
DEVICES = pl.Schema(
    {
        "rank": pl.Int64(),
        "process": pl.Int64(),
        "device": pl.String(),
        "streams": pl.List(pl.Int64()),
        **dict.fromkeys(("launches", "outside", "steps"), pl.Int64()),
        "anchor": pl.String(),
        "confidence": pl.Float64(),
        "why_none": pl.String(),
    }
)


class FoundSteps(msgspec.Struct, frozen=True):
    """`steps`: one row per step, by device and time. `devices`: one row per device, with what was found or why not.

    Of `steps`: `start_ns` is the start of the first launch on the main streams, `dur_ns` lasts until the last one there
    ended; `launches` are those of the main streams, `kernels` those of all streams of the device that began meanwhile.
    `phase` is null where kernels don't show it, `layers` where nothing repeats within. `is_partial`: the recording
    began or ended in it. `confidence`, 0 to 1, is no probability: how regular the anchor is, how alike the steps are.

    `anchor`: of the device with most steps; None where none were found. `notes`: what to know.
    """

    steps: pl.DataFrame
    devices: pl.DataFrame
    anchor: str | None
    notes: tuple[str, ...]

    @property
    def confidence(self) -> float | None:
        """The mean of the whole steps; None without any."""
        whole = self.steps.filter(~pl.col("is_partial"))["confidence"]
        return float(np.mean(whole.to_numpy())) if len(whole) else None


def find_steps(trace: Trace) -> FoundSteps:
    """The steps of each device of each process, each found alone; none where nothing is convincing.

    Args:
        trace: Needs `launches`. Takes a few seconds for ten million.
    """
    found = [_find(lane) for lane in read_lanes(trace)]
    steps = pl.concat([pl.DataFrame(schema=STEPS), *(steps for steps, _ in found)])
    devices = pl.DataFrame([device for _, device in found], schema=DEVICES)
    with_steps = devices.filter(pl.col("steps") > 0).sort("steps", descending=True, maintain_order=True)
    anchor = with_steps["anchor"][0] if with_steps.height else None
    return FoundSteps(steps, devices, anchor, tuple(_notes(devices)))


def _find(lane: DeviceLaunches) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The steps of one device, and what to say of it."""
    parting = find_parting(lane)
    if isinstance(parting, str):
        return pl.DataFrame(schema=STEPS), _device(lane, why_none=parting)
    segments = parting.segments
    inside = int((segments.last - segments.first).sum())
    known = {"anchor": parting.anchor, "confidence": parting.mean}
    device = _device(lane, steps=len(segments.first), outside=len(lane.role) - inside, **known)
    return _rows(lane, parting), device


def _rows(lane: DeviceLaunches, parting: Parting) -> pl.DataFrame:
    segments, phases = parting.segments, parting.phases
    kernels = np.searchsorted(lane.kernel_starts, segments.end) - np.searchsorted(lane.kernel_starts, segments.start)
    layers = count_layers(segments, parting.bodies, parting.level, is_training=is_training(lane))
    columns = {
        "step": np.arange(len(segments.first)),
        "start_ns": segments.start,
        "dur_ns": segments.end - segments.start,
        "phase": pl.Series([PHASES[phase] for phase in phases.tolist()], dtype=pl.String),
        "kernels": kernels,
        "launches": segments.last - segments.first,
        "layers": pl.Series(layers).fill_nan(None),
        "is_partial": segments.is_partial,
        "is_warm_up": find_warm_up(segments, phases),
        "confidence": parting.confidence,
    }
    owner = [pl.lit(getattr(lane, name), dtype=STEPS[name]).alias(name) for name in OWNER]
    return pl.DataFrame(columns).with_columns(owner).select(pl.col(name).cast(STEPS[name]) for name in STEPS)


def _device(lane: DeviceLaunches, **known: Any) -> dict[str, Any]:
    usual: dict[str, Any] = dict.fromkeys(("anchor", "confidence", "why_none"))
    owner = {name: getattr(lane, name) for name in OWNER}
    size = len(lane.role)
    counts = {"launches": size, "outside": size, "steps": 0}
    return {**owner, "streams": list(lane.streams), **usual, **counts, **known}


def _notes(devices: pl.DataFrame) -> Sequence[str]:
    """What was found where, and what not."""
    if devices.is_empty():
        return ["There are no launches of kernels to find steps in."]
    notes = []
    found = devices.filter(pl.col("steps") > 0)
    for anchor, least in found.group_by("anchor", maintain_order=True).agg(pl.col("confidence").min()).iter_rows():
        notes.append(f"Steps were found in the order of kernels ({anchor}; confidence {least:.2f}).")
    for why, some in devices.filter(pl.col("steps") == 0).group_by("why_none", maintain_order=True).len().iter_rows():
        where = "" if devices.height == 1 else f" on {some:,} of {devices.height:,} devices"
        notes.append(f"No steps were found in the order of kernels{where}: {why}.")
    return notes
