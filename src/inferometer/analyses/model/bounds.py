"""How far each printed kernel of an engine's run is from what its model and device allow.

The operator calls of the model's step (`architectures`) are joined with the classes of kernels that the source printed
step by step. Measured: time. Modelled: bytes and FLOPs, and the bounds that follow from them; the two never share a
column. A bound is the larger of a memory bound (bytes over bandwidth) and a compute bound (FLOPs over the peak, where
the device is known), and S is that bound over the measured time: above 1, sizes, dtype or device aren't as assumed.
`roles` finds what each class does, `pass_work` what that takes, `measured_rows` sets time and work side by side.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from inferometer.analyses.hardware.devices import device_of
from inferometer.analyses.model.measured_rows import phase_rows, printed_rows_of_run, with_rates
from inferometer.analyses.model.pass_work import Sizes
from inferometer.analyses.result import Result
from inferometer.analyses.steps.table import StepTable
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.architectures import Model
    from inferometer.hardware.device import Device

BRACKET = (100e9, 200e9, 400e9)
"""Bytes per second, where neither a device nor a bandwidth is known: a laptop's chip to a workstation's."""

NEEDED = ("totals", "steps", "log", "selections")
KEYS = ("phase", "kernel")


@dataclass(frozen=True)
class ModelBounds(Result):
    """Each kernel's work, rate and bounds.

    `rows`: one per phase and class: `unit` (`token` or `step`), `units` of them summed, `measured_ns` per unit, and the
    modelled `weight_bytes`, `moved_bytes`, `flops` a unit, null where the class's part in the model isn't known; the
    achieved `bytes_per_s` and `flops_per_s`, and `best_bytes_per_s`, the highest rate of any class of the run.
    `bounds`: one per row and bandwidth: `memory_bound_ns`, `compute_bound_ns` (null without a device), `bound_ns`,
    `bound`, `sol_fraction`. `unclaimed`: operator calls of the model that no printed kernel names.
    """

    view: ClassVar[str] = "bounds"
    source: str
    model: "Model"
    sizes: Sizes
    device: "Device | None"
    bandwidths: tuple[float, ...]
    rows: pl.DataFrame
    bounds: pl.DataFrame
    unclaimed: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]
    losses: Losses
    top: int | None = None

    @property
    def best_bytes_per_s(self) -> float | None:
        """The highest rate at which a class of the run that reads whole matrices moved its bytes."""
        best = self.rows["best_bytes_per_s"].max()
        return best if isinstance(best, float) else None

    def to_polars(self) -> pl.DataFrame:
        """One row per phase and kernel."""
        return self.rows

    def as_json(self) -> dict[str, Any]:
        bounds: dict[Any, list[Any]] = {}
        for row in self.bounds.iter_rows(named=True):
            bounds.setdefault(tuple(row[key] for key in KEYS), []).append(
                {name: value for name, value in row.items() if name not in KEYS}
            )
        rows = [row | {"bounds": bounds[row["phase"], row["kernel"]]} for row in self.rows.to_dicts()]
        return {
            "source": self.source,
            "model": self.model.name,
            "bytes_an_element": {name: getattr(self.sizes, name) for name in ("weight", "activation", "kv")},
            "device": None if self.device is None else self.device.name,
            "bandwidths_bytes_per_s": list(self.bandwidths),
            "rows": rows,
            "unclaimed": {phase: list(roles) for phase, roles in self.unclaimed.items()},
            "losses": self.losses.as_dict(),
        }


def model_bounds(
    trace: Trace,
    model: "Model",
    *,
    device: "Device | None" = None,
    bandwidths: Iterable[float] = (),
    sizes: Sizes | None = None,
    run: int | None = None,
    steps: StepTable | None = None,
    by_layer: bool = False,
    top: int | None = None,
) -> ModelBounds:
    """Bytes, FLOPs, bounds and S of every kernel of a run that was printed step by step.

    Args:
        trace: Needs `totals` and `steps`.
        model: Its dimensions.
        device: What it ran on, for the bandwidth and the compute bound; None: as the trace says, if we know that.
        bandwidths: Bytes per second to bound by; those of `device`, or `BRACKET`, when empty.
        sizes: Bytes of an element; 2 each when None.
        run: Which run of the file, from 0; the first when None.
        steps: The steps of that run, where they are made already.
        by_layer: A row for each label as printed, with its layer, instead of one per class.
        top: Show so many rows of each phase; the frames have all.

    Raises:
        InputError: The source printed no sums by step.
    """
    used = printed_rows_of_run(trace, run, steps)
    device = device or next((known for one in trace.facts.devices if (known := device_of(one))), None)
    chosen = tuple(bandwidths) or _bandwidths_of(device) or BRACKET
    sizes = sizes or Sizes()
    frames, unclaimed = [], {}
    for (phase,), rows in used.partition_by("phase", as_dict=True, maintain_order=True).items():
        frame, left = phase_rows(rows, phase, model, sizes, by_layer=by_layer)
        frames.append(frame)
        unclaimed[phase or "not known"] = left
    rows = with_rates(pl.concat(frames, how="diagonal_relaxed"))
    return ModelBounds(
        source=trace.facts.source,
        model=model,
        sizes=sizes,
        device=device,
        bandwidths=chosen,
        rows=rows,
        bounds=_bounds(rows, chosen, _peak(device, sizes)),
        unclaimed=unclaimed,
        notes=tuple(_notes(trace, model, used, unclaimed)),
        losses=trace.losses,
        top=top,
    )


def differing_dimensions(metrics: Mapping[str, Any], model: "Model") -> Iterator[tuple[str, int, int]]:
    """What an engine prints of its model's dimensions that isn't so in `model`: the word, what is printed, ours."""
    ours = {"layers": model.layers, "hidden": model.hidden, "heads": model.heads, "head_dim": model.head_dim}
    for word, own in ours.items():
        logged = metrics.get(word)
        if isinstance(logged, int) and logged != own:
            yield word, logged, own


def _bounds(rows: pl.DataFrame, bandwidths: Sequence[float], peak: tuple[str, float] | None) -> pl.DataFrame:
    """One row per kernel and bandwidth."""
    lit = pl.LazyFrame({"bandwidth_bytes_per_s": list(bandwidths)}, schema={"bandwidth_bytes_per_s": pl.Float64})
    unit, flops_per_s = peak or (None, None)
    memory = pl.col("moved_bytes") / pl.col("bandwidth_bytes_per_s") * 1e9
    compute = pl.col("flops") / pl.lit(flops_per_s, dtype=pl.Float64) * 1e9
    by_compute = (pl.col("compute_bound_ns") > pl.col("memory_bound_ns")).fill_null(value=False)
    return (
        rows.lazy()
        .join(lit, how="cross")
        .with_columns(memory.alias("memory_bound_ns"), compute.alias("compute_bound_ns"))
        .with_columns(
            pl.max_horizontal("memory_bound_ns", "compute_bound_ns").alias("bound_ns"),
            pl.when(pl.col("memory_bound_ns").is_null())
            .then(None)
            .when(by_compute)
            .then(pl.lit(unit, dtype=pl.String))
            .otherwise(pl.lit("memory"))
            .alias("bound"),
        )
        .with_columns((pl.col("bound_ns") / pl.col("measured_ns")).alias("sol_fraction"))
        .select(
            *("phase", "kernel", "bandwidth_bytes_per_s", "memory_bound_ns", "compute_bound_ns", "bound_ns"),
            *("bound", "sol_fraction"),
        )
        .collect()
    )


def _bandwidths_of(device: "Device | None") -> tuple[float, ...]:
    return () if device is None or device.memory_bandwidth is None else (float(device.memory_bandwidth.value),)


def _peak(device: "Device | None", sizes: Sizes) -> tuple[str, float] | None:
    """The unit that multiplies fastest in the type of the activations, and its rate; None where that isn't known."""
    if device is None:
        return None
    dtypes = ("fp16", "bf16", "fp32") if sizes.activation <= 2 else ("tf32", "fp32")
    peaks = [
        (float(peaks[dtype].value), unit)
        for unit, peaks in (("matrix", device.matrix), ("vector", device.vector))
        for dtype in dtypes
        if dtype in peaks
    ]
    rate, unit = max(peaks, default=(0.0, ""))
    return (unit, rate) if rate else None


def _notes(trace: Trace, model: "Model", used: pl.DataFrame, unclaimed: Mapping[str, Sequence[str]]) -> Iterable[str]:
    for word, logged, own in differing_dimensions(trace.facts.engine_metrics, model):
        yield f"The file's model has {logged} {word}, {model.name} has {own}: the numbers below are of another model."
    if used.filter(pl.col("phase") == "decode", pl.col("context").is_null()).height:
        yield "How long the context was isn't known of all decode steps: what grows with it has no bound."
    if used.filter(pl.col("phase") != "decode", pl.col("tokens").is_null() | pl.col("context").is_null()).height:
        yield "Of some prefill steps it isn't known how many tokens they had: what depends on that has no bound."
    for phase, roles in unclaimed.items():
        if roles:
            yield f"Of the model's {phase} step, no kernel names: {', '.join(dict.fromkeys(roles))}."
