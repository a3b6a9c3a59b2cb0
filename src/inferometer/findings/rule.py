"""A rule, and the evidence that it reads: the trace of one run and what the analyses make of it, each made once.

Frames here are of one run. What the source doesn't hold is None or an empty frame, and a rule that needs it is
silent.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from inferometer.findings.evidence.locked_property import locked_cached_property
from inferometer.findings.finding import Finding, Scale
from inferometer.names import KernelName, decode
from inferometer.names.engine_labels import class_of_label
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.analyses.model.bounds import ModelBounds
    from inferometer.analyses.steps.table import StepTable
    from inferometer.architectures import Model
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence
    from inferometer.hardware import Device

WARNINGS = ("warning", "warn")
NEEDED = frozenset(  # the tables that rules read
    {
        *("totals", "steps", "log", "selections"),
        *("launches", "calls", "ops", "frames", "spans", "call_paths", "graph_nodes", "collectives"),
    }
)
_FUSED = "fused"  # in a label it says that several operators are one kernel
_PRINTED = {
    "step": pl.Int64,
    "phase": pl.String,
    "passes": pl.Int64,
    "class": pl.String,
    "op": pl.String,
    "layer": pl.String,
    "role": pl.String,
    "total_ns": pl.Int64,
}


class Evidence:
    """What rules may ask of one run.

    Args:
        trace: Needs the tables of `NEEDED`.
        model: Dimensions of the model; None: those bundled under the name in the file, if what the file prints of
            its dimensions agrees.
        device: The device, if the user named it. What a log calls the device is no evidence of a chip.
        bandwidths: Of memory, bytes/s, where the device isn't known.
        steps: The run's steps, where they are made already.
        launches: What the analyses make of the trace's launches, where somebody asks them besides the rules.
        most_launches: Rules about launches are silent where the trace has more; None: they never are for that.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        model: "Model | None" = None,
        device: "Device | None" = None,
        bandwidths: Sequence[float] = (),
        steps: "StepTable | None" = None,
        launches: "LaunchEvidence | None" = None,
        most_launches: int | None = None,
    ) -> None:
        self.trace = trace
        self.bandwidths = tuple(bandwidths)
        self._model = model
        self._device = device
        self._steps = steps
        self._launches = launches
        self._most_launches = most_launches

    @locked_cached_property
    def launches(self) -> "LaunchEvidence | None":
        """What the analyses make of single launches; None where the trace has none, or more than asked about."""
        count = self.trace.launches.select(pl.len()).collect().item()
        if not count or (self._most_launches is not None and count > self._most_launches):
            return None
        from inferometer.findings.evidence.launch_evidence import LaunchEvidence

        return self._launches or LaunchEvidence(self.trace, device=self._device)

    @locked_cached_property
    def is_on_cpu(self) -> bool:
        """Whether ops on the CPU are all the work that was recorded."""
        devices = self.trace.compact("launches").select(pl.col("device").unique()).collect()["device"]
        return devices.to_list() == ["cpu"]

    @property
    def metrics(self) -> Mapping[str, Any]:
        """What the engine printed of itself: `facts.engine_metrics`."""
        return self.trace.facts.engine_metrics

    def number(self, *path: str) -> int | float | None:
        """A number of `metrics`, by its path; None where it isn't printed or is no number."""
        found: Any = self.metrics
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, int | float) and not isinstance(found, bool) else None

    @locked_cached_property
    def log(self) -> pl.DataFrame:
        """Lines of the log."""
        return self.trace.log.select("line", "level", "kind", "text").collect()

    @locked_cached_property
    def selections(self) -> pl.DataFrame:
        """The engine's choices of kernels."""
        return self.trace.selections.select("op", "variant", "reason").collect()

    @locked_cached_property
    def model(self) -> "Model | None":
        """The model's dimensions."""
        name = self.trace.facts.model
        if self._model is not None or name is None:
            return self._model
        from inferometer.analyses.model.bounds import differing_dimensions
        from inferometer.architectures import find_model

        found = find_model(name)  # a name may be used for another model
        return None if found is None or any(differing_dimensions(self.metrics, found)) else found

    @locked_cached_property
    def steps(self) -> "StepTable | None":
        """Steps, phases, classes and growth; None where no step is recorded."""
        if self._steps is not None:
            return self._steps
        if not self.trace.steps.select(pl.len()).collect().item():
            return None
        from inferometer.analyses.steps.table import step_table

        return step_table(self.trace)

    @locked_cached_property
    def bounds(self) -> "ModelBounds | None":
        """Bytes, FLOPs and bounds of each class; None without the model, or where its steps aren't printed."""
        if self.model is None or self.printed.is_empty():
            return None
        from inferometer.analyses.model.bounds import model_bounds

        return model_bounds(self.trace, self.model, device=self._device, bandwidths=self.bandwidths, steps=self.steps)

    @locked_cached_property
    def bandwidths_bytes_per_s(self) -> tuple[float, ...]:
        """Of the device named, or those to bracket it with; empty where nothing is known."""
        quantity = self._device.memory_bandwidth if self._device is not None else None
        return self.bandwidths if quantity is None else (float(quantity.value),)

    @locked_cached_property
    def best_bytes_per_s(self) -> float | None:
        """The highest rate that a class of this run reached, from the model's bytes."""
        return None if self.bounds is None else self.bounds.best_bytes_per_s

    @locked_cached_property
    def decode_steps(self) -> pl.DataFrame:
        """Rows of the step table that generate tokens, in order; empty where there are none."""
        if self.steps is None:
            return pl.DataFrame(schema={"step": pl.Int64})
        return self.steps.steps.filter(pl.col("phase") == "decode").sort("step")

    @locked_cached_property
    def quiet_steps(self) -> pl.DataFrame:
        """`decode_steps` that nothing disturbed."""
        return self.decode_steps.filter(~pl.col("disturbed")) if self.decode_steps.height else self.decode_steps

    @locked_cached_property
    def printed(self) -> pl.DataFrame:
        """Sums as printed, with their step's phase: one row a label and step.

        `passes`: how often the layer ran in the step, one per token in decode. `op`: the label's first word. Empty
        where sums aren't by step.
        """
        steps = self.trace.steps.select("step", "phase", "decode_tokens").collect().unique("step", keep="first")
        rows = self.trace.totals.filter(pl.col("step").is_not_null()).collect()
        if rows.is_empty() or steps.is_empty():
            return pl.DataFrame(schema=_PRINTED)
        labels = rows["kernel"].unique()
        words = pl.DataFrame(
            {
                "kernel": labels,
                "class": [class_of_label(label) for label in labels],
                "op": [op_of_label(label) for label in labels],
            }
        )
        in_decode = pl.col("phase") == "decode"
        return (
            rows.join(words, on="kernel")
            .join(steps, on="step")
            .with_columns(pl.when(in_decode).then("decode_tokens").otherwise(1).cast(pl.Int64).alias("passes"))
            .filter(pl.col("total_ns").is_not_null())
            .select(list(_PRINTED))
            .sort("step", "class", "layer")
        )

    @locked_cached_property
    def class_times(self) -> pl.DataFrame:
        """Per phase and class: `op`, `role`, `layers` (0 where unlayered), `total_ns`, `share` of the phase's total."""
        return (
            self.printed.group_by("phase", "class", maintain_order=True)
            .agg(
                pl.col("op").first(),
                pl.col("role").drop_nulls().first(),
                pl.col("layer").drop_nulls().n_unique().cast(pl.Int64).alias("layers"),
                pl.col("total_ns").sum(),
            )
            .with_columns((pl.col("total_ns") / pl.col("total_ns").sum().over("phase")).fill_nan(0.0).alias("share"))
            .sort("phase", "total_ns", descending=[False, True])
        )

    def bound_of(self, phase: str | None, name: str) -> Mapping[str, Any] | None:
        """The row of `bounds` of a phase and class."""
        if self.bounds is None:
            return None
        rows = self.bounds.rows.filter(pl.col("phase").eq_missing(pl.lit(phase)), pl.col("kernel") == name)
        return rows.row(0, named=True) if rows.height else None

    def gpu_ns(self, phase: str) -> int:
        """Sum over the rows of a phase."""
        return int(self.class_times.filter(pl.col("phase") == phase)["total_ns"].sum())

    @locked_cached_property
    def kinds(self) -> dict[str, KernelName]:
        """What the name of each class says, from one of its labels."""
        rows = self.trace.totals.select("kernel").unique().sort("kernel").collect()
        return {class_of_label(label): _decode(label) for label in rows["kernel"]}

    def is_fused(self, name: str) -> bool:
        """Whether the class says that several operators are one kernel."""
        return _FUSED in op_of_label(name).lower() or bool(self.kinds[name].fused)

    def lines(self, *levels: str) -> list[dict[str, Any]]:
        """Rows of the log with one of these levels."""
        return self.log.filter(pl.col("level").is_in(levels)).to_dicts()


class Rule(msgspec.Struct, frozen=True):
    """One kind of oddity. `find` yields nothing where it isn't, or where what it needs wasn't recorded.

    It runs in parallel with other rules on threads: it changes nothing that others see, the evidence least of all.
    `scales` are those that it judges by.
    """

    name: str
    find: Callable[[Evidence], Iterator[Finding]]
    scales: tuple[Scale, ...] = ()


def op_of_label(label: str) -> str:
    """The first word of a label; a name that isn't one is its own."""
    return label if "::" in label else label.partition(":")[0]


def _decode(label: str) -> KernelName:
    """What the label shows where it is one that is known whole, else its first word alone: roles would mislead."""
    whole = decode(label)
    return whole if whole.library != "other" else decode(op_of_label(label))
