"""Where the time of an answer went: by kernel, by phase, by step.

Measured: times, of timestamps around each dispatch (device) and of the host's clock (walls). Modelled: bytes and FLOPs,
each operand once, from the program's shapes; rates and fractions divide one by the other and are named so. A step is a
submit. Dispatches without usable timestamps are counted, never guessed. Compilers ran before the first timed pass.

Three times of the device differ: `summed_ns` adds durations, `busy_ns` is the union of their intervals, `span_ns` goes
from the first begin to the last end of each submit. `tables` makes the frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.engines.webgpu.profile import tables
from inferometer.engines.webgpu.profile.dispatch_times import dispatch_times
from inferometer.engines.webgpu.program import Program
from inferometer.engines.webgpu.program_memory import PurposeMemory, memory_of
from inferometer.engines.webgpu.run.adapter_rates import AdapterRates
from inferometer.engines.webgpu.run.executor import Adapter, LoadPhase, Submission
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

LAUNCH_BOUND = 2.0
"""A kernel whose median is within this of an empty pass's is bound by its launch."""


@dataclass(frozen=True)
class Bandwidth:
    """Bytes of memory that the device moves a second; `source` says who says so: a device file, or a measurement."""

    bytes_per_s: float
    source: str


@dataclass(frozen=True)
class Profile(Result):
    """The profile of one run. Frames are exact; shares are of 1.

    `rows`: a phase and label without its layer: `op`, `role`, `layers` (how many), `kernel`, `calls` that were timed,
    `untimed` ones, `total_ns`, `min_ns`, `median_ns`, `max_ns`, `share` of `summed_ns`; of the timed calls the
    `modelled_bytes` and `modelled_flops`, `gb_per_s` and `gflop_per_s`; `bound_ns` (bytes over the bandwidth) and
    `sol_fraction` (bound over measured), null where no bandwidth is known; `best_fraction` of the best kernel's
    bytes/s; `is_launch_bound`, null where an empty pass wasn't measured; `grid` and `workgroup`. `layer_rows`: the same
    for each label as it is. `phases`, `steps`: see `tables`.

    Time is conserved: totals of `rows` make `summed_ns`; calls and untimed ones make `dispatches`.

    `bandwidth` is what `bound_ns` is made with: a datasheet's where the device is known, since no kernel beats that;
    else what was measured here, which a kernel whose data stays in caches may. `measured`: that, where it was.

    `launch_floor_ns`: the median of the row with the shortest one; `empty_pass_ns`: of a pass that does nothing, where
    that was measured.
    """

    view: ClassVar[str] = "webgpu.profile"
    name: str
    adapter: Adapter | None
    rows: pl.DataFrame
    layer_rows: pl.DataFrame
    phases: pl.DataFrame
    steps: pl.DataFrame
    memory: tuple[PurposeMemory, ...]
    load: tuple[LoadPhase, ...]
    dispatches: int
    untimed: int
    summed_ns: int
    busy_ns: int
    span_ns: int
    wall_ns: int
    bandwidth: Bandwidth | None
    measured: Bandwidth | None
    empty_pass_ns: float | None
    each_layer: bool = False
    brief: bool = False
    losses: Losses = field(default_factory=lambda: Losses(ALL_TABLES))

    @property
    def launch_floor_ns(self) -> float | None:
        """The median of the shortest kernel: what a launch takes here at least."""
        floor = self.rows["median_ns"].min()
        return floor if isinstance(floor, float) else None

    def to_polars(self) -> pl.DataFrame:
        """One row per phase and label: that of `rows`, or with `each_layer` of `layer_rows`."""
        return self.layer_rows if self.each_layer else self.rows

    def as_json(self) -> dict[str, Any]:
        """Everything; device times null where nothing was timed."""
        return {
            "name": self.name,
            "adapter": None if self.adapter is None else self.adapter.name,
            "backend": None if self.adapter is None else self.adapter.backend,
            "dispatches": self.dispatches,
            "untimed": self.untimed,
            "summed_ns": self.summed_ns,
            "busy_ns": self.busy_ns,
            "span_ns": self.span_ns,
            "wall_ns": self.wall_ns,
            "bandwidth_bytes_per_s": None if self.bandwidth is None else self.bandwidth.bytes_per_s,
            "bandwidth_source": None if self.bandwidth is None else self.bandwidth.source,
            "measured_bytes_per_s": None if self.measured is None else self.measured.bytes_per_s,
            "measured_source": None if self.measured is None else self.measured.source,
            "launch_floor_ns": self.launch_floor_ns,
            "empty_pass_ns": self.empty_pass_ns,
            "rows": self.rows.to_dicts(),
            "layer_rows": self.layer_rows.to_dicts(),
            "phases": self.phases.to_dicts(),
            "steps": self.steps.to_dicts(),
            "memory": self.memory_rows,
            "load": self.load_frame.to_dicts(),
            "losses": self.losses.as_dict(),
        }

    @property
    def memory_rows(self) -> list[dict[str, Any]]:
        """Buffers by purpose, with what rounding adds."""
        return [
            {
                "purpose": one.purpose,
                "buffers": one.buffers,
                "size_bytes": one.size_bytes,
                "needed_bytes": one.needed_bytes,
                "overhead_bytes": one.overhead_bytes,
            }
            for one in self.memory
        ]

    @property
    def load_frame(self) -> pl.DataFrame:
        """The parts of getting ready; `gb_per_s` of those that move bytes."""
        rows = [{"name": one.name, "dur_ns": one.dur_ns, "bytes": one.bytes} for one in self.load]
        frame = pl.DataFrame(rows, schema={"name": pl.String, "dur_ns": pl.Int64, "bytes": pl.Int64})
        has_both = (pl.col("bytes") > 0) & (pl.col("dur_ns") > 0)
        return frame.with_columns(pl.when(has_both).then(pl.col("bytes") / pl.col("dur_ns")).alias("gb_per_s"))


def make_profile(
    program: Program,
    submissions: Sequence[Submission],
    *,
    adapter: Adapter | None = None,
    load: Sequence[LoadPhase] = (),
    bandwidth: Bandwidth | None = None,
    empty_pass_ns: float | None = None,
    rates: AdapterRates | None = None,
    each_layer: bool = False,
    brief: bool = False,
) -> Profile:
    """The profile of these submissions; without timestamps it has walls only.

    Args:
        program: What ran.
        submissions: Of one answer, in order.
        adapter: What ran it.
        load: The parts of getting ready.
        bandwidth: The device's; None: of the data of devices, where the adapter is known there, else the measured one.
        empty_pass_ns: Of a pass that does nothing; None: that of `rates`.
        rates: What was measured on the adapter.
        each_layer: Reports show a row for each label with its layer.
        brief: Reports leave out memory and loading, which are next to them.

    Raises:
        InferometerError: A submission has times of other than all its dispatches.
    """
    measured = None if rates is None else Bandwidth(rates.bytes_per_s, f"measured here: {rates.how}")
    bandwidth = bandwidth or known_bandwidth(adapter) or measured
    empty_pass_ns = rates.empty_pass_ns if empty_pass_ns is None and rates is not None else empty_pass_ns
    times = dispatch_times(program, submissions)
    steps = tables.step_rows(times, submissions)
    bytes_per_s = None if bandwidth is None else bandwidth.bytes_per_s
    least_ns = None if empty_pass_ns is None else empty_pass_ns * LAUNCH_BOUND
    rows, layer_rows = (tables.kernel_rows(times, by, bytes_per_s, least_ns) for by in ("class", "label"))
    return Profile(
        name=program.name,
        adapter=adapter,
        rows=rows,
        layer_rows=layer_rows,
        phases=tables.phase_rows(steps),
        steps=steps,
        memory=tuple(memory_of(program)),
        load=tuple(load),
        dispatches=times.height,
        untimed=times["dur_ns"].null_count(),
        summed_ns=int(times["dur_ns"].sum()),
        busy_ns=int(steps["busy_ns"].sum()),
        span_ns=int(steps["span_ns"].sum()),
        wall_ns=int(steps["wall_ns"].sum()),
        bandwidth=bandwidth,
        measured=measured,
        empty_pass_ns=empty_pass_ns,
        each_layer=each_layer,
        brief=brief,
    )


def known_bandwidth(adapter: Adapter | None) -> Bandwidth | None:
    """Of the device that the adapter's name means; None where we have no data of it."""
    from inferometer.hardware.known import find_device

    device = None if adapter is None else find_device(adapter.name)
    if device is None or device.memory_bandwidth is None:
        return None
    known = device.memory_bandwidth
    return Bandwidth(float(known.value), f"{known.kind} of {device.name}")
