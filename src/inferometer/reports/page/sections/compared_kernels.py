"""The kernels of two runs side by side, in a step and in the whole runs, each difference with a bar."""

from collections.abc import Iterator

from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.page.blocks import Block, Grid, Part, Tab, Tabs, Words
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.page.sections._two_runs import NOT_COMPARABLE
from inferometer.reports.views.compared_kernels import (
    RUN_SUMS,
    STEP_SUMS,
    account_section,
    describe_kinds,
    per_words,
    run_section,
    step_section,
)

_LACKING = "Times of kernels in both runs."


def build(look: PageData) -> Block | None:
    """What became of the kernels, a table per step and one of the whole runs, and what else makes the step's change."""
    found = look.comparison
    if found is None:
        return None
    if not found.kernels.rows:
        lacking = NOT_COMPARABLE if found.comparable.stops else _LACKING
        return Block("compared_kernels", "Kernels side by side", lacking=lacking)
    return Block("compared_kernels", f"Kernels side by side, {per_words(found)}", [*_parts(found)])


def _parts(found: Comparison) -> Iterator[Part]:
    yield Words(describe_kinds(found.kernels))
    tables = {
        per_words(found).capitalize(): Grid(step_section(found), sums=STEP_SUMS, bars=("delta_ns",)),
        "The whole runs": Grid(run_section(found), sums=RUN_SUMS, bars=("delta_total_ns",)),
    }
    yield Tabs("Times of", [Tab(title, [table]) for title, table in tables.items()])
    yield Grid(account_section(found), sums=(), bars=("delta_ns",))


SECTION = PageSection("compared_kernels", build, after="contributions")
