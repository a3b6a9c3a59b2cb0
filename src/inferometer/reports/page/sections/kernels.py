"""Kernels: the whole table with what the names say, and where the time is, by family and kernel.

Tables that a source printed are shown each for itself: they may count the same time.
"""

from collections.abc import Iterator, Mapping

import polars as pl

from inferometer.analyses.tables.kernel_remarks import tell_printed_sums, tell_whole_graphs
from inferometer.analyses.tables.kernels import KernelTable
from inferometer.names.decoding import decode_frame
from inferometer.names.engine_labels import class_of_label
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import TimeUnit, kernel_labels
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.page.shades import REST
from inferometer.reports.page.tree_boxes import ALL, GROUND, Box, icicle
from inferometer.reports.views.kernels import fields_of, title_of
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.measured_counters import kernel_counter_sections, say_counters
from inferometer.units import format_duration, format_share

FEW = 12
"""Kernels that bars can show one by one; more are boxes below their families."""

LEAVES = 80
"""Kernels with a box of their own; the others of a family are one box."""

TABLES = 4
_ALL = "all kernels"
_TELLS = ("family", "library", "dtype")
_TOLD = (
    Field("family", "Family", "text"),
    Field("library", "Library", "text"),
    Field("dtype", "Type", "text", spare=7),
)
_LACKING = "The trace would need launches of kernels with their times, or sums by kernel as a profiler prints them."


def build(run: RunData) -> Block | None:
    """All tables of kernels, each with its chart."""
    tables = [table for table in (run.kernels, *run.kernels.others) if table.kernels]
    if not tables:
        found = " ".join([*tell_whole_graphs(run.kernels), *run.kernels.notes])
        by_step = run.steps is not None and not run.steps.class_steps.is_empty()
        where = " Times of functions by step are above, under Kernel classes by step." if by_step else ""
        return Block("kernels", "Kernels", lacking=f"{_LACKING}{where} {found}".strip())
    notes = [*tell_whole_graphs(run.kernels), *tell_printed_sums(run.kernels)]
    parts: list[Part] = [Words(text, "note") for text in notes]
    for table in tables[:TABLES]:
        known = _with_names(table.frame)
        parts += [*_charts(table, known, run.shades), _grid(table, known)]
    if len(tables) > TABLES:
        rest = f"{len(tables) - TABLES:,} more tables of the source are not shown here: inferometer kernels --section."
        parts.append(Words(rest, "note"))
    if run.kernels.counted is not None:
        parts += [Words(text, "note") for text in say_counters(run.kernels.counted.account)]
        parts += map(Grid, kernel_counter_sections(run.kernels.counted))
    return Block("kernels", "Kernels", parts)


def _with_names(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows, the largest first, with what their names say."""
    known = decode_frame(frame["kernel"]).select("kernel", *_TELLS)
    joined = frame.join(known, on="kernel", how="left", maintain_order="left")
    return joined.sort("total_ns", "kernel", descending=[True, False], nulls_last=True, maintain_order=True)


def _grid(table: KernelTable, known: pl.DataFrame) -> Grid:
    *times, name = fields_of(table)
    return Grid(Section(title_of(table), (*times, *_TOLD, name), known), group="family")


def _charts(table: KernelTable, known: pl.DataFrame, shades: Mapping[str, str]) -> Iterator[Chart]:
    timed = _by_class(known) if table.steps else known
    timed = timed.filter(pl.col("total_ns") > 0)
    if timed.height:
        yield _bars(table, timed, shades) if timed.height <= FEW else _tree(table, timed, shades)


def _by_class(known: pl.DataFrame) -> pl.DataFrame:
    """Labels that differ in their layers alone, as one."""
    classes = {label: class_of_label(label) for label in known["kernel"]}
    sums = known.group_by(pl.col("kernel").replace_strict(classes), maintain_order=True).agg(
        pl.col("total_ns").sum(), pl.col("share").sum(), pl.col("family").first()
    )
    return sums.sort("total_ns", "kernel", descending=[True, False])


def _main_fact(table: KernelTable, timed: pl.DataFrame) -> str:
    first = timed.row(0, named=True)
    label = kernel_labels([first["kernel"]])[first["kernel"]]
    families = _families(timed)
    family, family_ns = families.row(0)
    what = "classes of kernels" if table.steps else "kernels"
    return (
        f"{label} takes {format_share(first['share'])} of {format_duration(table.total_ns)} kernel time, the most of "
        f"{timed.height:,} {what}; the largest family is {family} with {format_share(family_ns / table.total_ns)}."
    )


def _families(timed: pl.DataFrame) -> pl.DataFrame:
    """Families and their times, the largest first."""
    sums = timed.group_by("family").agg(pl.col("total_ns").sum())
    return sums.sort("total_ns", "family", descending=[True, False])


def _bars(table: KernelTable, timed: pl.DataFrame, shades: Mapping[str, str]) -> Chart:
    labels = kernel_labels(timed["kernel"].to_list())
    unit = TimeUnit.of(float(timed["total_ns"][0]))
    data = {
        "type": "bar",
        "orientation": "h",
        "x": unit.scaled(timed["total_ns"]),
        "y": [labels[kernel] for kernel in timed["kernel"]],
        "text": [format_share(share) for share in timed["share"]],
        "customdata": timed["kernel"].to_list(),
        "marker": {"color": [_shade(family, shades) for family in timed["family"]]},
        "hovertemplate": f"%{{customdata}}<br>%{{x}} {unit.name}, %{{text}}<extra></extra>",
        "showlegend": False,
    }
    layout = {"xaxis": unit.axis("Kernel time"), "yaxis": {"autorange": "reversed", "automargin": True}}
    return Chart(f"{title_of(table)}: time", _main_fact(table, timed), [data], layout, height=120 + 26 * timed.height)


def _tree(table: KernelTable, timed: pl.DataFrame, shades: Mapping[str, str]) -> Chart:
    return icicle(
        f"{title_of(table)}: time by family", _main_fact(table, timed), _boxes(table, timed, shades), {}, depth=1
    )


def _boxes(table: KernelTable, timed: pl.DataFrame, shades: Mapping[str, str]) -> Iterator[Box]:
    """All kernels, their families, and the kernels of each: every level adds up to the table's time."""
    labels = kernel_labels(timed["kernel"].head(LEAVES).to_list())
    own, rest = timed.head(LEAVES), timed.slice(LEAVES)
    yield Box(ALL, "", _ALL, _ALL, _text(table.total_ns, table.total_ns), GROUND, table.total_ns)
    for i, (family, family_ns) in enumerate(_families(timed).iter_rows()):
        shade = _shade(family, shades)
        yield Box(f"f{i}", ALL, family, family, _text(family_ns, table.total_ns), shade, family_ns)
        kernels = own.filter(pl.col("family") == family)
        for j, (kernel, time_ns) in enumerate(kernels.select("kernel", "total_ns").iter_rows()):
            yield Box(f"f{i}k{j}", f"f{i}", labels[kernel], kernel, _text(time_ns, table.total_ns), shade, time_ns)
        others = rest.filter(pl.col("family") == family)
        if others.height:
            words, time_ns = f"other {others.height:,} kernels", int(others["total_ns"].sum())
            yield Box(f"f{i}rest", f"f{i}", words, words, _text(time_ns, table.total_ns), shade, time_ns)


def _shade(family: str | None, shades: Mapping[str, str]) -> str:
    return f"var({shades.get(family or '', REST)})"


def _text(time_ns: int, total_ns: int) -> str:
    return f"{format_duration(time_ns)}, {format_share(time_ns / total_ns)}"


SECTION = RunSection("kernels", build, after="step_classes")
