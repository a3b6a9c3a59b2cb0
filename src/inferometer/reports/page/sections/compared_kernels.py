"""The kernels of two runs side by side: time, calls and mean of each, and which are new, gone or renamed."""

from inferometer.reports.page.blocks import Block, Grid
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import NOT_COMPARABLE
from inferometer.reports.views.compared_kernels import SUMS, kernel_section

_TITLE = "Kernels side by side"


def build(look: PageData) -> Block | None:
    """The table."""
    found = look.comparison
    if found is None:
        return None
    if not found.kernels.rows:
        return Block("compared_kernels", _TITLE, lacking=NOT_COMPARABLE if found.comparable.stops else _LACKING)
    table = kernel_section(found)
    return Block("compared_kernels", table.title, [Grid(table, sums=SUMS)])


_LACKING = "Times of kernels in both runs."
SECTION = PageSection("compared_kernels", build, after="contributions")
