"""Every op with its arguments: calls, launches, measured time, modelled work, the bound and what is reached of it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import polars as pl

from inferometer.analyses.absent_work import say_no_launches
from inferometer.analyses.counters.join import JoinAccount, join_counters, losses_of_both
from inferometer.analyses.hardware.devices import device_of
from inferometer.analyses.hardware.traced_names import describe_devices, infer_traced
from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.launched import NEEDED as LAUNCHED_NEEDED
from inferometer.analyses.launched_by.op_calls import NEEDED as CALLS_NEEDED
from inferometer.analyses.result import Result
from inferometer.analyses.roofline.calls import ARGUMENTS, owned_launches
from inferometer.analyses.roofline.collectives import Collectives, sum_collectives
from inferometer.analyses.roofline.contexts import contexts_of
from inferometer.analyses.roofline.cut import keep_selected, mark_selected
from inferometer.analyses.roofline.exchanges import find_exchanges, with_exchange
from inferometer.analyses.roofline.gaps import gaps_by
from inferometer.analyses.roofline.inferred import infer_signatures
from inferometer.analyses.roofline.likeness import with_likeness
from inferometer.analyses.roofline.marked_steps import with_steps
from inferometer.analyses.roofline.measured import MEASURED, with_measured
from inferometer.analyses.roofline.named_exchanges import NEEDED as RANGES_NEEDED
from inferometer.analyses.roofline.numbers import with_numbers
from inferometer.analyses.roofline.rows import RowMaker
from inferometer.analyses.roofline.sampled_clocks import SAMPLED, with_clocks, with_sampled
from inferometer.analyses.selection import Selection
from inferometer.hardware.device import Device
from inferometer.operators.framework.lengths import Lengths
from inferometer.operators.framework.output_code import OutputCode
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.tables import COLLECTIVES
from inferometer.trace.trace import Trace
from inferometer.units import format_list

_MORE: Final = {
    "collectives": tuple(COLLECTIVES.schema),
    "counters": ("metric", "device", "time_ns", "value"),
    "ops": ("sequence_number",),
}
_PARTS: Final = (LAUNCHED_NEEDED, CALLS_NEEDED, RANGES_NEEDED, _MORE)
NEEDED: Final = {
    table: tuple(dict.fromkeys(column for part in _PARTS for column in part.get(table, ())))
    for table in dict.fromkeys(table for part in _PARTS for table in part)
}
_COLUMNS: Final = (
    *("number", "op", "family", "kernel", *ARGUMENTS, "kernel_file", "calls", "cut_calls", "launches"),
    *("inferred_launches", "total_ns", "dtype"),
    *("flops", "vector_flops", "special_ops", "read_bytes", "write_bytes", "link_bytes", "bound_ns", "warm_bound_ns"),
    *("binding", "fraction", "above_ns", "flops_per_s", "bytes_per_s", "assumes", "operator", "operator_args"),
    *MEASURED,
    *SAMPLED,
    *("sizes_recorded", "reason"),
)


@dataclass(frozen=True)
class Roofline(Result):
    """`frame`: a row for each op and arguments, most time above the bound first; then those that aren't modelled.

    Measured: `calls`, `launches` and `total_ns`, all of them together. Modelled: `flops` (of matrix products; where
    there are none, of other arithmetic), `vector_flops`, `special_ops`, `read_bytes`, `write_bytes` and `link_bytes`
    of *one* call; `bound_ns` of all calls, `warm_bound_ns` the same where memory's bound is that of L2, in which all
    fits that moves; `binding`, which bound that is; `fraction`, the bound over the time; `above_ns`, the time less the
    bound, 0 where that is greater; `flops_per_s` and `bytes_per_s`, what is modelled over what is measured. `assumes`:
    what the arguments don't say. `reason`: why there is no bound; of what isn't known, these columns are null. `op` is
    null of launches whose op isn't known: a row for each `kernel`. `inferred_launches`: of those, how many have no op
    in the file, but are like ones that have. `calls` are whole: of `cut_calls` only some launches are selected, and
    they have rows of their own, without a bound. `number` is that of the op with these arguments, as `replay --op`
    takes it. `operator`: the catalogue's operator that the call is, with its arguments as JSON; null where it is none.

    `total_ns` is the time of all launches, `op_known_ns` of those whose op the file or a capture says, `captured_ns` of
    those whose op a capture says, `inferred_ns` of those whose op neither says, but launches that are alike have one.
    `sized_ns` is that part of `op_known_ns` which is of kernels, not copies, in rows with `sizes_recorded`: the size of
    any tensor stands among the op's arguments, or it is recorded what a collective exchanges; `sized_modelled_ns` is
    what of it is modelled. `modelled_ns` of rows with a bound, or without a device with work. `bound_ns` sums the
    bounds. `small_ns`: time of rows whose launches take less than twice `shortest_kernel_ns`, the shortest kernel of
    the trace, and have a bound below that. `by`: the same sums by family of ops, kernel, module and step.
    `collectives`: by kind and bytes.

    `sampled_clock_hz` and `sampled_memory_clock_hz`: of launches of a recording that sampled them, with
    `sampled_clock_bound_ns`, the bound at these; null without samples near all of them.

    `counters`: what a profiler's counters joined, None without them; columns `MEASURED` of `frame` are null then.
    """

    view: ClassVar[str] = "roofline"
    source: str
    device: Device | None
    frame: pl.DataFrame
    total_ns: int
    op_known_ns: int
    op_modelled_ns: int
    sized_ns: int
    sized_modelled_ns: int
    inferred_ns: int
    captured_ns: int
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
    def modelled_ns(self) -> int:
        """Time of rows that are modelled."""
        return int(self.frame.filter(pl.col("reason").is_null())["total_ns"].sum())

    @property
    def bound_ns(self) -> float | None:
        """Of all that is modelled; None without a device."""
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
            "total_ns": self.total_ns,
            "op_known_ns": self.op_known_ns,
            "op_modelled_ns": self.op_modelled_ns,
            "sized_ns": self.sized_ns,
            "sized_modelled_ns": self.sized_modelled_ns,
            "inferred_ns": self.inferred_ns,
            "captured_ns": self.captured_ns,
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
        selection: Which launches; all by default. All tell what calls are and how far they reach.
        device: What it ran on; None: as the file says.
        lengths: Of sequences, where the names of steps don't tell.
        counters: Of the same kernels, with `join.NEEDED`.
        output_code: Sources of compiled kernels, for those whose ops name them.
        top: Show so many rows.

    Raises:
        InputError: `counters` holds none that are read, or the selection names something that is not there.
    """
    selection = selection or Selection()
    said, notes = (device, []) if device else _device_of(found, trace.facts)
    owned = owned_launches(found)
    inferred = mark_selected(with_likeness(infer_signatures(owned.launches)), trace, selection)
    exchanges = find_exchanges(trace, inferred, owned.signatures, found.op_calls)
    launches = with_exchange(inferred, exchanges)
    contexts = contexts_of(found.tree, launches["node"].unique().to_list())
    maker = RowMaker(
        owned.signatures, found.op_calls, contexts, said, lengths or Lengths(), exchanges.distinct, output_code
    )
    placed, modelled = keep_selected(*maker.place(launches), selection)
    joined = None if counters is None else join_counters(placed, counters)
    summed = with_numbers(_summed(placed, modelled))
    frame = with_measured(with_sampled(summed, with_clocks(placed, trace), said), joined, said)
    shortest = _shortest(placed)
    op_known = placed.filter(pl.col("signature").is_not_null() & ~pl.col("inferred"))
    sized = op_known.filter(pl.col("kind") == "kernel").join(frame.filter("sizes_recorded"), on="row", how="semi")
    modelled_rows = frame.filter(pl.col("reason").is_null())["row"]
    each = (
        placed.join(frame.select("row", "fraction", "family"), on="row", how="left")
        .join(found.sites.select("node", "module_pooled"), on="node", how="left")
        .pipe(with_steps, found.tree, trace)
    )
    return Roofline(
        source=found.source,
        device=said,
        frame=frame.select(_COLUMNS),
        total_ns=int(placed["dur_ns"].sum()),
        op_known_ns=int(op_known["dur_ns"].sum()),
        op_modelled_ns=int(op_known.filter(pl.col("row").is_in(modelled_rows.to_list()))["dur_ns"].sum()),
        sized_ns=_time(sized),
        sized_modelled_ns=_time(sized.join(frame.filter(pl.col("reason").is_null()), on="row", how="semi")),
        inferred_ns=int(placed.filter("inferred")["dur_ns"].sum()),
        captured_ns=int(placed.filter(pl.col("op_source") > 0)["dur_ns"].sum()),
        shortest_kernel_ns=shortest,
        small_ns=_small(frame, shortest),
        by={
            "family": gaps_by(each, "family"),
            "kernel": gaps_by(each, "kernel"),
            "module": gaps_by(each, "module_pooled"),
            "step": gaps_by(each, "step"),
        },
        collectives=sum_collectives(inferred, exchanges, said),
        notable=tuple(notes),
        losses=found.losses if counters is None else losses_of_both(found.losses, counters),
        top=top,
        why_none=found.why_none or ("" if placed.height else say_no_launches(trace)),
        counters=joined.account if joined else None,
    )


def _time(launches: pl.DataFrame) -> int:
    return int(launches["dur_ns"].sum())


def _shortest(placed: pl.DataFrame) -> int | None:
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


def _summed(placed: pl.DataFrame, modelled: pl.DataFrame) -> pl.DataFrame:
    """The rows with what was measured, and what follows from both."""
    by_kernel = (
        placed.group_by("row", pl.col("kernel").cast(pl.String))
        .agg(pl.col("dur_ns").sum())
        .sort("dur_ns", "kernel", descending=[True, False])
        .unique("row", keep="first", maintain_order=True)
        .select("row", "kernel")
    )
    calls = pl.col("call").n_unique().cast(pl.Int64)
    measured = placed.group_by("row").agg(
        pl.when(pl.col("call").is_not_null().any() & ~pl.col("is_cut").any()).then(calls).alias("calls"),
        pl.when(pl.col("is_cut").any()).then(calls).alias("cut_calls"),
        pl.len().cast(pl.Int64).alias("launches"),
        pl.col("inferred").sum().cast(pl.Int64).alias("inferred_launches"),
        pl.col("dur_ns").sum().alias("total_ns"),
    )
    bound = pl.col("bound_of_call_ns") * pl.col("calls")
    seconds = pl.col("total_ns") / 1e9
    is_timed = (pl.col("total_ns") > 0) & pl.col("reason").is_null()
    read = pl.when(pl.col("binding") != "pcie").then("read_bytes").otherwise(0)  # a copy crosses PCIe once
    moved = read.cast(pl.Float64) + pl.col("write_bytes")
    fraction = pl.when(is_timed).then(bound / pl.col("total_ns"))
    return (
        modelled.join(measured, on="row", how="inner")
        .join(by_kernel, on="row", how="left")
        .with_columns(
            bound.alias("bound_ns"),
            (pl.col("warm_bound_of_call_ns") * pl.col("calls")).alias("warm_bound_ns"),
            fraction.alias("fraction"),
            pl.when(is_timed).then((pl.col("total_ns") - bound).clip(lower_bound=0)).alias("above_ns"),
            pl.when(is_timed).then(pl.col("flops").cast(pl.Float64) * pl.col("calls") / seconds).alias("flops_per_s"),
            pl.when(is_timed).then(moved * pl.col("calls") / seconds).alias("bytes_per_s"),
        )
        .sort("above_ns", "total_ns", "row", descending=[True, True, False], nulls_last=True)
    )


def _device_of(found: Attribution, facts: Facts) -> tuple[Device | None, list[str]]:
    """What most of the launches ran on, and what to say of it."""
    counts = found.launches.filter(~pl.col("is_captured")).group_by(pl.col("device").cast(pl.String)).len()
    used = [name for name, _ in counts.sort("len", descending=True).iter_rows() if name is not None]
    described = describe_devices(facts, used)
    for text in used:
        traced = described.get(text)
        if traced is None:
            continue
        if known := device_of(traced):
            return known, []
        if alike := infer_traced(traced):
            if len(alike) == 1:
                return alike[0], [f"The file doesn't name its device: it looks like {alike[0].name} (inferred)."]
            names = format_list([device.name for device in alike])
            return None, [f"The device may be {names}: name it with --hardware for bounds."]
    named = [name for text in used if (traced := described.get(text)) and (name := traced.name)]
    if named:
        names = format_list(list(dict.fromkeys(named)))
        why = f"No peaks of {names} are known here, and without them there are no bounds"
        how = "inferometer hardware --measure, on that machine, writes them for --hardware-file"
        return None, [f"{why}: {how}."]
    return None, ["What the file ran on isn't known: name it with --hardware for bounds."]
