"""How far each kernel of an engine's log is from what its model and the memory allow."""

from collections.abc import Iterator, Sequence

import polars as pl

from inferometer.analyses.model.bounds import ModelBounds
from inferometer.findings.rule import Evidence
from inferometer.reports.page.blocks import Block, Chart, Grid, Part, Words
from inferometer.reports.page.drawing import axis, color, kernel_labels, vertical_line
from inferometer.reports.page.look import RunData
from inferometer.reports.page.sampling import rounded
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.view import facts_of, remarks_of, sections_of
from inferometer.units import format_share

BARS = 30
_DECADES = 1.5
_TITLE = "Against the model's bounds"
_NO_SUMS = "The trace would need kernel times that an engine prints step by step, as WebGPU engines' logs have them."
_NO_MODEL = (
    "The model's dimensions aren't known: the file names none that is bundled with the same dimensions. Give its "
    "config.json with --model-config."
)


def build(run: RunData) -> Block | None:
    """A chart and a table for each phase."""
    asked = run.asked
    evidence = Evidence(
        run.trace, model=asked.model, device=asked.device, bandwidths=asked.bandwidths, steps=run.first.steps
    )
    if evidence.printed.is_empty():
        return Block("bounds", _TITLE, lacking=_NO_SUMS)
    found = evidence.bounds
    if found is None:
        return Block("bounds", _TITLE, lacking=_NO_MODEL)
    words = ". ".join(f"{label}: {text}" for label, text in facts_of(found) if label != "File")
    intro = (
        f"{words}. S is the bound over the measured time: what the least bytes (and FLOPs) would take, modelled, by "
        "what was measured. 1 is the bound; above 1, sizes, dtype or device aren't as assumed."
    )
    parts: list[Part] = [Words(intro), *(Words(text, "note") for text in remarks_of(found))]
    phases = found.rows["phase"].unique(maintain_order=True).to_list()
    for phase, section in zip(phases, sections_of(found), strict=True):
        parts += _charts(found, phase)
        parts.append(Grid(section))
    return Block("bounds", _TITLE, parts)


def _charts(found: ModelBounds, phase: str | None) -> Iterator[Part]:
    """S of the classes with the most time, a bar for each bandwidth that may be the device's."""
    rows = found.rows.filter(pl.col("phase").eq_missing(phase)).select("kernel", "share")
    bounds = found.bounds.filter(pl.col("phase").eq_missing(phase), pl.col("sol_fraction") > 0)
    own = rows.join(bounds.select("kernel").unique(), on="kernel", how="semi", maintain_order="left").head(BARS)
    without = rows.height - rows.join(bounds, on="kernel", how="semi").height
    if own.is_empty():
        yield Words(f"No class of {phase or 'the steps'} has a bound.", "note")
        return
    kernels = own["kernel"].to_list()
    labels = kernel_labels(kernels)
    data = []
    for i, bandwidth in enumerate(found.bandwidths):
        of = bounds.filter(pl.col("bandwidth_bytes_per_s") == bandwidth).select("kernel", "sol_fraction")
        values = own.join(of, on="kernel", how="left", maintain_order="left")["sol_fraction"]
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": f"{bandwidth / 1e9:g} GB/s",
                "x": rounded(values),
                "y": [labels[kernel] for kernel in kernels],
                "customdata": kernels,
                "marker": {"color": color(i)},
                "hovertemplate": "%{customdata}<br>S %{x}<extra></extra>",
            }
        )
    layout = {
        "barmode": "group",
        "xaxis": axis("S: bound over measured time", type="log", dtick=_ticks(bounds["sol_fraction"]), tickformat="~r"),
        "yaxis": {"autorange": "reversed", "automargin": True},
        "shapes": [vertical_line(1, dash="dot")],
    }
    height = 140 + (14 + 10 * len(found.bandwidths)) * len(kernels)
    alt = _alt(bounds, own, found.bandwidths, labels)
    yield Chart(f"S by class, {phase or 'steps'}", alt, data, layout, height=height)
    if without:
        lacking = f"{without:,} of {rows.height:,} classes have no bound"
        yield Words(f"{lacking}: their part in the model isn't known.", "note")


def _ticks(values: pl.Series) -> int | str:
    """Decades; 1, 2 and 5 of each where there are few."""
    logs = values.log10().to_numpy()
    return 1 if float(logs.max() - logs.min()) > _DECADES else "D2"


def _alt(bounds: pl.DataFrame, own: pl.DataFrame, bandwidths: Sequence[float], labels: dict[str, str]) -> str:
    lowest = min(bandwidths)
    of = own.join(bounds.filter(pl.col("bandwidth_bytes_per_s") == lowest), on="kernel", maintain_order="left")
    first = of.row(0, named=True)
    best = of.sort("sol_fraction", descending=True).row(0, named=True)
    return (
        f"{labels[first['kernel']]}, {format_share(first['share'])} of the time, has S {first['sol_fraction']:.3g} "
        f"at {lowest / 1e9:g} GB/s; the highest is {labels[best['kernel']]} with {best['sol_fraction']:.3g}."
    )


SECTION = RunSection("bounds", build, after="kernels")
