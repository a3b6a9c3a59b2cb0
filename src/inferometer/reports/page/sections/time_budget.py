"""Where the device's time went: rows that add up to its window, and which findings speak of them.

Of two runs it begins with both in one table: shares of each run's own window, and how they changed.
"""

from msgspec.structs import replace

from inferometer.reports.page.beside import HEADS, SWITCH
from inferometer.reports.page.blocks import Block, Grid, Tab, Tabs, Words
from inferometer.reports.page.look import SIDES, PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.views.first_look import budget_of
from inferometer.reports.views.time_budget import TITLE, compared_budget

_LACKING = "The trace would need single launches with their times: the source holds none."
_PARTS = "Parts of the window"
_ALONE = "Of the {side} alone: the other run holds no launches."
_BOTH = ("base_ns", "base_share", "candidate_ns", "candidate_share")
_SUMS = ("time_ns", "share", "count")


def _build(look: PageData) -> Block:
    tables = [budget_of(run.first) for run in look.runs]
    grids = [Grid(replace(table, title=_PARTS), sums=_SUMS) for table in tables if table is not None]
    if not grids:
        return Block("time_budget", TITLE, lacking=_LACKING)
    if look.candidate is None:
        return Block("time_budget", TITLE, grids)
    if len(grids) < len(tables):
        side = SIDES[[table is not None for table in tables].index(True)]
        return Block("time_budget", TITLE, [Words(_ALONE.format(side=side), "note"), *grids])
    both = compared_budget(*(run.first.findings.budget for run in look.runs))
    untitled = [replace(grid, section=replace(grid.section, title=TITLE)) for grid in grids]
    switch = [("Both", Grid(both, sums=_BOTH)), *zip(HEADS, untitled, strict=True)]
    return Block("time_budget", TITLE, [Tabs(SWITCH, [Tab(head, [grid]) for head, grid in switch])])


SECTION = PageSection("time_budget", _build, after="timeline")
