"""How far each op of a trace is from what the hardware allows, and where the time above the bounds is."""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from inferometer.analyses.roofline.gaps import with_fractions
from inferometer.analyses.roofline.shapes import say_op, shapes_of
from inferometer.analyses.roofline.table import Roofline
from inferometer.hardware.device import Device
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.exchanges import collective_sections, say_collectives
from inferometer.reports.views.layout import Field, Section, say_rest
from inferometer.reports.views.measured_counters import OP_OR_KERNEL, counter_sections, op_or_kernel, say_counters
from inferometer.reports.views.view import View
from inferometer.units import format_bytes, format_count, format_counted, format_duration, format_share

BAR: Final = "bar"
"""Column that draws each row's time: at the bound, above it, and not modelled."""
_CELLS: Final = 20  # of the longest
_FIELDS: Final = (
    Field("above_ns", "Above Bound", "ns"),
    Field("total_ns", "Total Time", "ns"),
    Field("fraction", "Reached", "share"),
    Field("binding", "Bound by", "text"),
    Field("sampled_clock_bound_ns", "Bound at Clock", "ns", spare=5),
    Field("calls", "Calls", "count", spare=3),
    Field("launches", "Launches", "count", spare=6),
    Field("tflops_per_s", "TFLOP/s", "ratio", spare=5),
    Field("gb_per_s", "GB/s", "ratio", spare=4),
    Field("number", "#", "count", spare=3),
    Field("operator", "Operator", "name", spare=7),
    Field("op", "Op", "name"),
    Field("shapes", "Shapes", "name", spare=1),
)
_GAPS: Final = (
    Field("above_ns", "Above Bound", "ns"),
    Field("total_ns", "Total Time", "ns"),
    Field("bound_ns", "Bound", "ns", spare=1),
    Field("fraction", "Reached", "share"),
    Field("modelled", "Modelled", "share", spare=2),
    Field("launches", "Launches", "count", spare=3),
    Field(BAR, "█ bound ░ above", "text", spare=2),
)
_TITLES: Final = {"family": "Family", "module": "Module", "step": "Step"}
NONE: Final = {"family": "(not modelled)", "module": "(no module)", "step": "(no step)"}
"""What stands where a launch belongs to none."""
_BOUNDED: Final = ("above_ns", "fraction", "binding")
_ROWS: Final = 20
_REASONS: Final = 10
_ABOVE: Final = ("time above the bounds", "other time above the bounds")


def _facts(found: Roofline) -> Iterator[tuple[str, str]]:
    yield "File", found.source
    yield "Device", found.device.name if found.device else "not known"
    if found.counters is not None:
        yield "Counters", found.counters.source


def _sections(found: Roofline) -> Iterator[Section]:
    yield _ops(found, found.top or _ROWS)
    yield from counter_sections(found)
    yield from collective_sections(found.collectives)
    if (reasons := _not_modelled(found)).height:
        fields = (Field("total_ns", "Total Time", "ns"), Field("launches", "Launches", "count"),
                  OP_OR_KERNEL, Field("reason", "Why", "sentence"))  # fmt: skip
        shown = reasons.head(_REASONS)
        yield Section("Not modelled", fields, shown, tuple(say_rest(shown.height, reasons.height)))
    for by, frame in found.by.items() if found.device else ():
        if by in _TITLES and frame["key"].drop_nulls().len() > (0 if by == "family" else 1):
            yield _gaps(by, frame)


def _ops(found: Roofline, count: int) -> Section:
    rows = found.frame.filter(pl.col("reason").is_null())
    shown = rows.head(count)
    is_sampled = rows["sampled_clock_bound_ns"].is_not_null().any()
    left_out = (() if found.device else _BOUNDED) + (() if is_sampled else ("sampled_clock_bound_ns",))
    fields = tuple(field for field in _FIELDS if field.column not in left_out)
    title = "Ops, most time above the bound first" if found.device else "Ops, longest first"
    return Section(title, fields, _with_shapes(shown), tuple(say_rest(shown.height, rows.height)))


def _not_modelled(found: Roofline) -> pl.DataFrame:
    return (
        found.frame.filter(pl.col("reason").is_not_null())
        .group_by(*op_or_kernel(), "reason")
        .agg(pl.col("total_ns").sum(), pl.col("launches").sum())
        .sort("total_ns", "what", descending=[True, False])
    )


def _gaps(by: str, frame: pl.DataFrame) -> Section:
    shown = with_fractions(_with_bars(frame.head(_ROWS))).with_columns(
        pl.col("key").fill_null(NONE[by]), (pl.col("modelled_ns") / pl.col("total_ns")).fill_nan(None).alias("modelled")
    )
    return Section(
        f"By {by}", (*_GAPS, Field("key", _TITLES[by], "name")), shown, tuple(say_rest(shown.height, frame.height))
    )


def _with_bars(rows: pl.DataFrame) -> pl.DataFrame:
    parts = ("modelled_ns", "above_ns", "total_ns")
    longest = int(rows["total_ns"].max() or 0) or 1  # type: ignore[arg-type]
    bars = []
    for modelled, above, total in rows.select(parts).iter_rows():
        bound, known, whole = (round(_CELLS * ns / longest) for ns in (modelled - above, modelled, total))
        bars.append("█" * bound + "░" * (known - bound) + "·" * (whole - known))
    return rows.with_columns(pl.Series(BAR, bars, dtype=pl.String))


def _with_shapes(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(
        shapes_of(rows),
        (pl.col("flops_per_s") / 1e12).alias("tflops_per_s"),
        (pl.col("bytes_per_s") / 1e9).alias("gb_per_s"),
    )


def _remarks(found: Roofline) -> Iterator[str]:
    if found.why_none:
        yield found.why_none
    yield from found.notable
    if not found.total_ns:
        return
    share, modelled, total = found.modelled_ns / found.total_ns, found.modelled_ns, found.total_ns
    of_all = f"{format_duration(modelled)} of {format_duration(total)}"
    yield f"{format_share(share)} of the device time is modelled: {of_all}."
    if found.times.sized_ns:
        sized, of_sized = found.times.sized_modelled_ns, format_duration(found.times.sized_ns)
        part = f"{format_duration(sized)} of {of_sized}"
        yield f"Of kernels whose op and sizes are recorded it is {format_share(sized / found.times.sized_ns)}: {part}."
    if found.cut_ns:
        cut = format_duration(found.cut_ns)
        yield f"{cut} are launches of calls of which the selection has only a part: they have no bound."
    if found.times.inferred_ns:
        inferred = format_duration(found.times.inferred_ns)
        yield f"The op of {inferred} isn't in the file and is inferred from launches that are alike."
    if found.times.captured_ns:
        captured = format_duration(found.times.captured_ns)
        yield f"Shapes of {captured} are those of the capture: they are the replay's where it ran the same batch."
    if found.bound_ns is not None and found.modelled_ns:
        yield from _say_gap(found, found.bound_ns)
    yield from _say_clocks(found)
    yield from _say_just_written(found)
    if found.counters is not None:
        yield from say_counters(found.counters)
    yield from say_collectives(found.collectives, found.total_ns)


def _say_clocks(found: Roofline) -> Iterator[str]:
    rows = found.frame.filter(pl.col("sampled_clock_bound_ns").is_not_null())
    if not rows.height:
        return
    clocks = rows["sampled_clock_hz"] / 1e6
    low, high = (format_count(round(float(each))) for each in (clocks.min(), clocks.max()))  # type: ignore[arg-type]
    held = f"{low} MHz" if low == high else f"{low} to {high} MHz"
    there, peak = (format_duration(float(rows[name].sum())) for name in ("sampled_clock_bound_ns", "bound_ns"))
    yield (
        f"Where the clock of the multiprocessors was sampled nearby ({held}), bounds are {there} at the sampled clocks "
        f"and {peak} at the nominal ones."
    )


def _say_just_written(found: Roofline) -> Iterator[str]:
    rows = found.frame.filter(pl.col("just_written_bytes").is_not_null())
    if not rows.height:
        return
    calls = rows["calls"].cast(pl.Float64)
    held, read = (
        format_bytes(round(float((rows[name] * calls).sum()))) for name in ("just_written_bytes", "read_bytes")
    )
    bounded = rows.filter(pl.col("just_written_bound_ns").is_not_null())
    there, cold = (format_duration(float(bounded[name].sum())) for name in ("just_written_bound_ns", "bound_ns"))
    yield (
        f"Of the {read} that calls with known tensors read, {held} had just been written and fit into the L2 cache "
        f"with what moved since: from there the bounds of these calls are {there}, from memory {cold}."
    )


def _say_gap(found: Roofline, bound_ns: float) -> Iterator[str]:
    yield (
        f"At their bounds the modelled calls would take {format_duration(bound_ns)}: "
        f"{format_share(bound_ns / found.modelled_ns)} is reached."
    )
    if found.exchange_ns:
        yield (
            f"{format_duration(found.exchange_ns)} of that time are collectives, in which ranks also wait; "
            f"the bound of these is {format_duration(found.exchange_bound_ns)}."
        )
    rows = found.frame.filter(pl.col("above_ns") > 0, pl.col("binding") != "link")
    if rows.height:
        first = rows.row(0, named=True)
        share, above = format_share(first["above_ns"] / rows["above_ns"].sum()), _ABOVE[bool(found.exchange_ns)]
        yield f"{share} of the {above} is in {format_counted(first['calls'], 'call')} of {say_op(first)}."
    if found.small_ns and found.shortest_kernel_ns is not None:
        yield (
            f"{format_duration(found.small_ns)} are launches about as short as the shortest kernel here "
            f"({format_duration(found.shortest_kernel_ns)}), with a bound below it: fewer help there, not faster ones."
        )
    yield from _say_faster(found)


def _say_faster(found: Roofline) -> Iterator[str]:
    """Rows that are faster than their bound, by what may explain it; of each the first that may."""
    faster = found.frame.filter(pl.col("fraction") > 1)
    for explains, why in _explanations(found.device):
        explained = faster.filter(explains)
        faster = faster.filter(~explains)
        if count := explained.height:
            yield f"{_rows(count)} faster than {'its' if count == 1 else 'their'} bound: {why}."


def _explanations(device: Device | None) -> Iterator[tuple[pl.Expr, str]]:
    warm, moved = pl.col("warm_bound_ns"), pl.col("read_bytes") + pl.col("write_bytes")
    yield (
        (pl.col("just_written_bound_ns") <= pl.col("total_ns")).fill_null(value=False),
        "what they read had just been written, and from the L2 cache they aren't too fast",
    )
    yield (
        (warm <= pl.col("total_ns")).fill_null(value=False),
        "all that they move fits in the L2 cache, and from there they aren't too fast",
    )
    yield (
        (pl.col("assumes").list.len() > 0).fill_null(value=False),
        ("what is assumed of them doesn't hold (`assumes` of --json)"),
    )
    if device is not None and device.l2 is not None and device.l2_bandwidth is None:
        yield (
            (moved <= device.l2.value).fill_null(value=False),
            "all that they move fits in the L2 cache, but its rate isn't known: it can't be told whether that is why",
        )
    yield (
        pl.lit(value=True),
        (
            "the device, the op of the launches, or our model of it isn't what ran, "
            "or the file has only a part of its launches"
        ),
    )


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{format_count(count)} rows are"


def _table(found: Roofline) -> Section:
    return Section(
        "Ops", [Field(name, name, _kind(dtype)) for name, dtype in found.frame.schema.items()], _flat(found.frame)
    )


def _kind(dtype: Any) -> Any:
    return "count" if dtype == pl.Int64 else "number" if dtype == pl.Float64 else "text"


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("assumes").list.join("; "))


VIEW = View(
    schema=Schema("roofline", 1), facts=_facts, sections=_sections, remarks=_remarks, remarks_in_json=True, table=_table
)
