"""How the numbers of the page are made, as far as they are on it."""

from inferometer import __version__
from inferometer.reports.page.blocks import Block, Point, Points
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection

_TIMES = (
    "Busy time is the union of intervals, summed time adds durations and counts overlap twice, wall time is the end "
    "minus the start."
)
_TABLES = "Tables show times with three decimals; the exact number is the cell's title, and sorting goes by it."
_CHARTS = "Charts may show fewer points than the trace has, and then say so; tables and sums are of all rows."
_TOTALS = "A file holds sums of kernel time, no single launches: what needs launches isn't on this page."
_MODELLED = "Bytes, FLOPs and bounds are modelled from the dimensions of the model; times are measured."
_PAIR = "What sections show of one run they show of both, on the same scales: side by side, or behind a switch."


def _build(look: PageData) -> Block:
    texts = [_TIMES, _TABLES, _CHARTS]
    if "totals" in {run.kernels.basis for run in look.runs}:
        texts.append(_TOTALS)
    if look.asked.model is not None:
        texts.append(_MODELLED)
    if look.candidate is not None:
        texts.append(_PAIR)
    texts.append(f"Made by inferometer {__version__}. The page is one file and loads nothing.")
    return Block("notes", "How to read this page", [Points([Point(text) for text in texts])])


SECTION = PageSection("notes", _build, after="counters")
