"""Where the device's time went: the rows that add up to its window, and which findings speak of them."""

from dataclasses import replace

from inferometer.reports.page.blocks import Block, Grid
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.views.first_look import budget_of
from inferometer.reports.views.time_budget import TITLE

_LACKING = "The trace would need single launches with their times: the source holds none."
_SUMS = ("time_ns", "share", "count")


def _build(look: PageData) -> Block:
    runs = {"Parts of the window": look.base.first}
    if look.candidate is not None:
        runs = {"Base": look.base.first, "Candidate": look.candidate.first}
    tables = {title: budget_of(run) for title, run in runs.items()}
    parts = [Grid(replace(table, title=title), sums=_SUMS) for title, table in tables.items() if table is not None]
    return Block("time_budget", TITLE, parts) if parts else Block("time_budget", TITLE, lacking=_LACKING)


SECTION = PageSection("time_budget", _build, after="timeline")
