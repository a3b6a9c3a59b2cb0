"""Every op with its arguments: calls, launches, measured time, modelled work, the bound and what is reached of it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl
from msgspec.structs import asdict

from inferometer.analyses.absent_work import say_no_launches
from inferometer.analyses.counters.join import JoinAccount, join_counters, losses_of_both
from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.launched import NEEDED as LAUNCHED_NEEDED
from inferometer.analyses.launched_by.op_calls import NEEDED as CALLS_NEEDED
from inferometer.analyses.launched_by.op_calls import STORAGES
from inferometer.analyses.result import Result
from inferometer.analyses.roofline.calls import ARGUMENTS, owned_launches
from inferometer.analyses.roofline.collectives import Collectives, sum_collectives
from inferometer.analyses.roofline.contexts import contexts_of
from inferometer.analyses.roofline.covered_times import CoveredTimes, cover_times
from inferometer.analyses.roofline.cut import keep_selected, mark_selected
from inferometer.analyses.roofline.exchanges import find_exchanges, with_exchange
from inferometer.analyses.roofline.gaps import gaps_by
from inferometer.analyses.roofline.inferred import infer_signatures
from inferometer.analyses.roofline.just_written import JUST_WRITTEN, find_just_written, with_just_written
from inferometer.analyses.roofline.likeness import with_likeness
from inferometer.analyses.roofline.marked_steps import with_steps
from inferometer.analyses.roofline.measured import MEASURED, with_measured
from inferometer.analyses.roofline.named_exchanges import NEEDED as RANGES_NEEDED
from inferometer.analyses.roofline.numbers import with_numbers
from inferometer.analyses.roofline.ran_on import find_device
from inferometer.analyses.roofline.row_sums import sum_rows
from inferometer.analyses.roofline.rows import RowMaker
from inferometer.analyses.roofline.sampled_clocks import SAMPLED, with_clocks, with_sampled
from inferometer.analyses.selection import Selection
from inferometer.hardware.device import Device
from inferometer.operators.framework.lengths import Lengths
from inferometer.operators.framework.output_code import OutputCode
from inferometer.trace.losses import Losses
from inferometer.trace.tables import COLLECTIVES
from inferometer.trace.trace import Trace

_MORE: Final = {
    "collectives": tuple(COLLECTIVES.schema),
    "counters": ("metric", "device", "time_ns", "value"),
    "ops": ("sequence_number", *STORAGES),
}
_PARTS: Final = (LAUNCHED_NEEDED, CALLS_NEEDED, RANGES_NEEDED, _MORE)
NEEDED: Final = {
    table: tuple(dict.fromkeys(column for part in _PARTS for column in part.get(table, ())))
    for table in dict.fromkeys(table for part in _PARTS for table in part)
}
_OF_GAPS: Final = ("row", "node", "kernel", "dur_ns", "rank", "process", "called_ns")
_COLUMNS: Final = (
    *("number", "op", "family", "kernel", *ARGUMENTS, "kernel_file", "calls", "cut_calls", "launches"),
    *("inferred_launches", "total_ns", "dtype"),
    *("flops", "vector_flops", "special_ops", "read_bytes", "write_bytes", "link_bytes", "bound_ns", "warm_bound_ns"),
    *("binding", "fraction", "above_ns", "flops_per_s", "bytes_per_s", "assumes", "operator", "operator_args"),
    *MEASURED,
    *SAMPLED,
    *JUST_WRITTEN,
    *("sizes_recorded", "reason"),
)


@dataclass(frozen=True)
class Roofline(Result):
    """How far each op with its arguments is from its bound.

    Columns of `frame`, which has the ops with the most time above the bound first, then those that aren't modelled:

    - Measured, of all calls together: `calls`, `launches` and `total_ns`. `calls` are whole: of `cut_calls` only some
      launches are selected; they have rows of their own, without a bound.
    - Modelled, of *one* call: `flops` (of matrix products; where there are none, of other arithmetic), `vector_flops`,
      `special_ops`, `read_bytes`, `write_bytes` and `link_bytes`.
    - Modelled, of all calls: `bound_ns`; `warm_bound_ns`, the same with L2 as the memory, in which all that moves fits;
      `binding`, the bound that is the largest. `assumes`: what the arguments don't say. `reason`: why there is no
      bound; then these columns are null.
    - Of both: `fraction`, bound over time; `above_ns`, time less bound, at least 0; `flops_per_s`, `bytes_per_s`.
    - `op` is null for launches whose op isn't known: these have a row for each `kernel`. `inferred_launches` counts
      launches that have no op in the file, but are like ones that have.
    - `number` identifies the op with these arguments, as `replay --op` takes it. `operator` is the catalogue's operator
      that the call is, `operator_args` its arguments as JSON; null where it is none.
    - `sampled_clock_hz` and `sampled_memory_clock_hz`, of launches of a recording that sampled them;
      `sampled_clock_bound_ns`, the bound at these. Null without samples near all of the launches.
    - `just_written_bytes`, of what one call reads, on the mean of the calls: what an op before wrote, and may still lie
      in L2; `just_written_bound_ns`, the bound of all calls with these from there. Null where no execution trace says
      which tensor is which.
    - `MEASURED`, from a profiler's counters; null without them.

    Attributes:
        shortest_kernel_ns: Time of the shortest kernel of the trace; None without kernels.
        small_ns: Time of rows whose launches take less than twice `shortest_kernel_ns`, and have a bound below that.
        by: Time and bounds by family of ops, kernel, module and step.
        collectives: By kind and bytes.
        counters: What a profiler's counters joined; None without them.
    """

    view: ClassVar[str] = "roofline"
    source: str
    device: Device | None
    frame: pl.DataFrame
    times: CoveredTimes
    shortest_kernel_ns: int | None
    small_ns: int
    by: dict[str, pl.DataFrame]
    collectives: Collectives
    notable: tuple[str, ...]
    losses: Losses
    top: int | None = None
    why_none: str = ""
    counters: JoinAccount | None = None

    @property
    def total_ns(self) -> int:
        """Time of all launches."""
        return self.times.total_ns

    @property
    def modelled_ns(self) -> int:
        """Time of rows with a bound, or that would have one if the device were known."""
        return int(self.frame.filter(pl.col("reason").is_null())["total_ns"].sum())

    @property
    def bound_ns(self) -> float | None:
        """Sum of the bounds of all that is modelled; None without a device."""
        return None if self.device is None else float(self.frame["bound_ns"].sum())

    @property
    def cut_ns(self) -> int:
        """Time of launches whose calls are selected in part."""
        return int(self.frame.filter(pl.col("cut_calls").is_not_null())["total_ns"].sum())

    @property
    def exchange_ns(self) -> int:
        """Time of rows that the link bounds: collectives, which also wait for ranks that come late."""
        return int(self.frame.filter(pl.col("binding") == "link")["total_ns"].sum())

    @property
    def exchange_bound_ns(self) -> float:
        """Bounds of these rows."""
        return float(self.frame.filter(pl.col("binding") == "link")["bound_ns"].sum())

    @property
    def above_ns(self) -> float:
        """Time above the bounds."""
        return float(self.frame["above_ns"].sum())

    def to_polars(self) -> pl.DataFrame:
        """All rows."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "hardware": None if self.device is None else self.device.name,
            **asdict(self.times),
            "cut_ns": self.cut_ns,
            "modelled_ns": self.modelled_ns,
            "bound_ns": self.bound_ns,
            "shortest_kernel_ns": self.shortest_kernel_ns,
            "small_ns": self.small_ns,
            "rows": self.frame.to_dicts(),
            "by": {name: frame.to_dicts() for name, frame in self.by.items()},
            "collectives": self.collectives.frame.to_dicts(),
            "counters": None if self.counters is None else self.counters.as_json(),
            "losses": self.losses.as_dict(),
        }


def roofline(
    found: Attribution,
    trace: Trace,
    *,
    selection: Selection | None = None,
    device: Device | None = None,
    lengths: Lengths | None = None,
    counters: Trace | None = None,
    output_code: OutputCode | None = None,
    top: int | None = None,
) -> Roofline:
    """How far each op of a trace is from its bound.

    Args:
        found: Of `attribute`, with op calls, of all launches: what is selected may be a part of a call.
        trace: Of these launches. Of its tables `collectives`, `spans` and `counters` are read here, if they were read.
        selection: Which launches; all by default. Calls are found from all launches.
        device: What it ran on; None: as the file says.
        lengths: Of sequences, where the names of steps don't say.
        counters: Of the same kernels, with `join.NEEDED`.
        output_code: Sources of compiled kernels, for those whose ops name them.
        top: Show so many rows.

    Raises:
        InputError: `counters` holds none that are read, or the selection names something that is not there.
    """
    selection = selection or Selection()
    hardware, notes = (device, []) if device else find_device(found, trace.facts)
    owned = owned_launches(found)
    inferred = mark_selected(with_likeness(infer_signatures(owned.launches)), trace, selection)
    exchanges = find_exchanges(trace, inferred, owned.signatures, found.op_calls)
    launches = with_exchange(inferred, exchanges)
    contexts = contexts_of(found.tree, launches["node"].unique().to_list())
    maker = RowMaker(
        owned.signatures, found.op_calls, contexts, hardware, lengths or Lengths(), exchanges.distinct, output_code
    )
    all_placed, all_modelled = maker.place(launches)
    just_written = find_just_written(all_placed, all_modelled, found.op_calls, hardware)
    placed, modelled = keep_selected(all_placed, all_modelled, selection)
    joined = None if counters is None else join_counters(placed, counters)
    summed = with_just_written(with_numbers(sum_rows(placed, modelled)), placed, just_written, hardware)
    frame = with_measured(with_sampled(summed, with_clocks(placed, trace), hardware), joined, hardware)
    shortest_ns = _shortest_kernel(placed)
    return Roofline(
        source=found.source,
        device=hardware,
        frame=frame.select(_COLUMNS),
        times=cover_times(placed, frame),
        shortest_kernel_ns=shortest_ns,
        small_ns=_small(frame, shortest_ns),
        by=_gaps(placed, frame, found, trace),
        collectives=sum_collectives(inferred, exchanges, hardware),
        notable=tuple(notes),
        losses=found.losses if counters is None else losses_of_both(found.losses, counters),
        top=top,
        why_none=found.why_none or ("" if placed.height else say_no_launches(trace)),
        counters=joined.account if joined else None,
    )


def _gaps(placed: pl.DataFrame, frame: pl.DataFrame, found: Attribution, trace: Trace) -> dict[str, pl.DataFrame]:
    """What launches take above their bounds, by family of ops, kernel, module and step."""
    launches = (
        placed.select(_OF_GAPS)
        .join(frame.select("row", "fraction", "family"), on="row", how="left")
        .join(found.sites.select("node", "module_pooled"), on="node", how="left")
        .pipe(with_steps, found.tree, trace)
    )
    columns = {"family": "family", "kernel": "kernel", "module": "module_pooled", "step": "step"}
    return {name: gaps_by(launches, column) for name, column in columns.items()}


def _shortest_kernel(placed: pl.DataFrame) -> int | None:
    """Time of the shortest kernel."""
    shortest: int | None = (
        placed.filter(pl.col("kind") == "kernel", pl.col("dur_ns") > 0).select(pl.col("dur_ns").min()).item()
    )
    return shortest


def _small(frame: pl.DataFrame, shortest_ns: int | None) -> int:
    """Time of rows whose launches have a bound below the shortest kernel's time, and take less than twice that."""
    if shortest_ns is None:
        return 0
    bound, took = (pl.col(name) / pl.col("launches") for name in ("bound_ns", "total_ns"))
    return int(frame.filter(bound < shortest_ns, took < 2 * shortest_ns)["total_ns"].sum())
