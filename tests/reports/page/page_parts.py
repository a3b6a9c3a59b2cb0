"""A table and a chart to show in a browser, and what their hover says."""

from typing import Any

import polars as pl
from tests.reports.page.browser import Tab

from inferometer.reports.page.blocks import Chart, Grid
from inferometer.reports.views.layout import Field, Section

FIELDS = (
    Field("total_ns", "Total", "ns"),
    Field("count", "Instances", "count"),
    Field("share", "Share", "share"),
    Field("mean_ns", "Mean", "ns"),
    Field("family", "Family", "text"),
    Field("kernel", "Kernel", "name"),
)
ROWS = [
    (9_000, 9, 0.6, 1_000.0, "gemm", "gemm_a"),
    (3_500_000, 1_500, 0.2, 2_333.3, "copy", "copy_b"),
    (2_000, 1, 0.1, 2_000.0, "gemm", "gemm_" + "c" * 100),
    (1_000, 10, 0.05, 100.0, "norm", "norm_d"),
    (999, 10, 0.04, None, "norm", "norm_e"),
    (5, 1, 0.01, 5.0, "copy", "copy_f"),
]


def grid(rows: Any = ROWS, group: str | None = None) -> Grid:
    frame = pl.DataFrame(rows, schema=[field.column for field in FIELDS], orient="row")
    return Grid(Section("Kernels", FIELDS, frame), group)


def bars(names: list[str], **layout: Any) -> Chart:
    trace: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": [3 + i for i, _ in enumerate(names)],
        "text": names,
    }
    trace |= {"hovertemplate": "%{text}: %{x} ms<extra></extra>", "marker": {"color": "var(--series-2)"}}
    return Chart("Time", "The first takes 3 ms.", [trace], {"xaxis": {"title": {"text": "Time, ms"}}, **layout})


def hover(tab: Tab, n: int = 0) -> str:
    """The text that appears next to a bar."""
    tab.run("document.querySelector('.plot').scrollIntoView({behavior: 'instant', block: 'center'})")
    box = tab.run(
        f"(() => {{ const b = document.querySelectorAll('.plot .mark')[{n}].getBoundingClientRect();"
        " return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    tab.point(1, 1)
    tab.wait("document.querySelector('.plot .tip').hidden")
    tab.point(*box)
    tab.wait("!document.querySelector('.plot .tip').hidden")
    return str(tab.run("document.querySelector('.plot .tip').textContent"))
