"""How far each op is from what the device allows: a roofline, and where the time above the bounds is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.roofline.shapes import say_shapes
from inferometer.analyses.roofline.table import Roofline
from inferometer.hardware.device import Device
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import REST_COLOR, TimeUnit, color, cut, distinct, stacked
from inferometer.reports.page.look import RunData
from inferometer.reports.page.roofs import TERA, intensity_axis, rate_axis, roof_lines
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.layout import Section
from inferometer.reports.views.roofline import BAR, NONE
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.units import format_counted, format_duration, format_share

MOST_DOTS = 500
"""Ops of a chart, those with the most time."""

BARS = 15
"""Families or modules of a chart; the others are one bar."""

TABLE = 100
"""Rows of the table of ops."""

_TITLE = "Against the device's bounds"
_NO_SHAPES = (
    "The trace would need the shapes of ops, as PyTorch's profiler records them with record_shapes=True, and launches "
    "that can be tied to them."
)
_NO_DEVICE = "What the file ran on isn't known: name it with --hardware."
_LARGEST, _SMALLEST = 36.0, 5.0  # pixels of a dot's diameter
_NAMES = {"family": "family of ops", "module": "module"}


def build(run: RunData) -> Block | None:
    """The roofline, time at the bounds and above them, and a table of ops."""
    found = run.roofline
    if found is None or not found.modelled_ns:
        return Block("roofline", _TITLE, lacking=_NO_SHAPES)
    if found.device is None:
        return Block("roofline", _TITLE, lacking=" ".join(found.notable) or _NO_DEVICE)
    intro = (
        f"Times are measured. FLOPs, bytes and bounds on the {found.device.name} are modelled, from the shapes that "
        "the profiler recorded."
    )
    parts: list[Part] = [
        Words(intro),
        *(Words(text, "note") for text in remarks_of(found)),
        *_roofline(found, found.device),
    ]
    parts += [_bars(found.by[by], by) for by in _NAMES if found.by[by]["key"].drop_nulls().len()]
    parts += [Grid(_to_read(section)) for section in sections_of(replace(found, top=TABLE))]
    return Block("roofline", _TITLE, parts)


def _to_read(section: Section) -> Section:
    """Without bars, since charts draw them here; the op heads a row, not the operator, which few ops are."""
    fields = [field for field in section.fields if field.column != BAR]
    return msgspec.structs.replace(section, fields=sorted(fields, key=lambda field: field.column == "operator"))


def _roofline(found: Roofline, device: Device) -> Iterator[Part]:
    """Each op a dot; those without arithmetic have no place on logarithmic axes."""
    modelled = found.frame.filter(pl.col("reason").is_null(), pl.col("total_ns") > 0)
    moved = pl.col("read_bytes") + pl.col("write_bytes")
    placed = (
        modelled.filter(pl.col("flops") > 0, moved > 0)
        .with_columns((pl.col("flops") / moved).alias("intensity"))
        .sort("total_ns", descending=True)
    )
    dots = placed.head(MOST_DOTS)
    if dots.height:
        yield _chart(dots, device)
    if placed.height > dots.height:
        rest = format_duration(int(placed["total_ns"].sum()) - int(dots["total_ns"].sum()))
        yield Words(f"{placed.height - dots.height:,} more ops, {rest} together, aren't shown.", "note")
    if modelled.height > placed.height:
        without = format_duration(int(modelled["total_ns"].sum()) - int(placed["total_ns"].sum()))
        count = modelled.height - placed.height
        ops = "1 op does" if count == 1 else f"{count:,} ops do"
        yield Words(f"{ops} no arithmetic and can't be placed: {without}.", "note")


def _chart(dots: pl.DataFrame, device: Device) -> Chart:
    places = list(dots.select("intensity", "flops_per_s").iter_rows())
    families = dots.group_by("family", maintain_order=True).agg(pl.col("total_ns").sum()).sort(
        "total_ns", descending=True, maintain_order=True
    )["family"]  # fmt: skip
    largest = int(dots["total_ns"].max())  # type: ignore[arg-type]
    data = [
        *roof_lines(device, dots["dtype"].unique().to_list(), places),
        *(
            _points(dots.filter(pl.col("family") == family), family, color(i), largest)
            for i, family in enumerate(families)
        ),
    ]
    layout = {"xaxis": intensity_axis(), "yaxis": rate_axis("reached"), "hovermode": "closest"}
    return Chart(f"Roofline of {device.name}", _alt(dots), data, layout, height=620, kind="roofline")


def _points(dots: pl.DataFrame, family: str, shade: str, largest_ns: int) -> dict[str, Any]:
    """Areas are as the times are."""
    sizes = ((time / largest_ns) ** 0.5 * _LARGEST for time in dots["total_ns"])
    return {
        "type": "scatter",
        "mode": "markers",
        "name": family,
        "x": rounded(dots["intensity"]),
        "y": rounded(dots["flops_per_s"] / TERA),
        "customdata": [_texts(row) for row in dots.iter_rows(named=True)],
        "marker": {"color": shade, "size": rounded(max(_SMALLEST, size) for size in sizes), "opacity": 0.7},
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}"
        "<br>%{x} FLOP/B, %{y} TFLOP/s<extra></extra>",
    }


def _texts(row: dict[str, Any]) -> list[str]:
    """What pointing at a dot says."""
    calls = format_counted(row["calls"], "call")
    reached = f"{format_share(row['fraction'])} of the bound by {row['binding']}"
    shapes = say_shapes(row["input_dims"], row["input_dtypes"])
    return [row["op"], shapes, f"{calls}, {format_duration(row['total_ns'])}, {reached}"]


def _alt(dots: pl.DataFrame) -> str:
    op, shapes, measured = _texts(dots.row(0, named=True))
    return (
        f"{dots.height:,} ops by the FLOPs over the bytes that their shapes ask for, and the FLOP/s reached; a dot's "
        f"area is the op's time. The most time takes {op} {cut(shapes, 80)}: {measured}. Lines are the device's limits."
    )


def _bars(frame: pl.DataFrame, by: str) -> Chart:
    """What the time is made of: at the bound, above it, and not modelled; in all they are the measured time."""
    what, none = _NAMES[by], NONE[by]
    rows = _longest(frame.with_columns(pl.col("key").fill_null(none)))
    parts = (
        ("at the bound", rows["modelled_ns"] - rows["above_ns"], color(0)),
        ("above it", rows["above_ns"], color(1)),
        ("not modelled", rows["total_ns"] - rows["modelled_ns"], REST_COLOR),
    )
    unit = TimeUnit.of(float(rows["total_ns"].max()))  # type: ignore[arg-type]
    labels = distinct([cut(key) for key in rows["key"]])
    data = [_stack(name, times, shade, unit, labels, rows["key"].to_list()) for name, times, shade in parts]
    axes = {"xaxis": unit.axis("Device time"), "yaxis": {"autorange": "reversed", "automargin": True}}
    layout = stacked(axes, bargap=0.3, legend={"traceorder": "normal"})
    first = rows.filter(pl.col("key") != none).row(0, named=True)
    alt = (
        f"Of {format_duration(first['total_ns'])} in {first['key']}, the {what} with the most time, "
        f"{format_duration(first['above_ns'])} are above the bounds."
    )
    return Chart(f"Time at the bounds and above, by {what}", alt, data, layout, height=150 + 24 * rows.height)


def _longest(frame: pl.DataFrame) -> pl.DataFrame:
    """Those with the most time, and the others as one row."""
    rows = frame.sort("total_ns", "key", descending=[True, False])
    if rows.height <= BARS:
        return rows
    rest = rows.slice(BARS - 1).select(
        pl.lit(f"({rows.height - BARS + 1:,} others)").alias("key"), pl.all().exclude("key").sum()
    )
    return pl.concat([rows.head(BARS - 1), rest.select(rows.columns)])


def _stack(
    name: str, times: pl.Series, shade: str, unit: TimeUnit, labels: Sequence[str], keys: Sequence[str]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": unit.scaled(times),
        "y": list(labels),
        "customdata": [f"{key}: {format_duration(time)} {name}" for key, time in zip(keys, times, strict=True)],
        "marker": {"color": shade},
        "hovertemplate": "%{customdata}<extra></extra>",
    }


SECTION = RunSection("roofline", build, after="kernels", is_of_callers=True)
