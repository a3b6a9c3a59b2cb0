"""Tests of a benchmark: how long a repetition takes and its rate, each with its spread."""

from inferometer.reports.page.blocks import Block, Grid, Words
from inferometer.reports.page.look import RunData
from inferometer.reports.page.section import RunSection
from inferometer.reports.views.layout import Section
from inferometer.reports.views.summary import TEST_FIELDS

_TITLE = "Tests"
_INTRO = "Means over the repetitions of each test, and their sample standard deviations, as far as the file tells them."


def build(run: RunData) -> Block | None:
    """The table; no place on the page of another run."""
    tests = run.first.summary.tests
    if tests.is_empty():
        return None
    return Block("tests", _TITLE, [Words(_INTRO), Grid(Section(_TITLE, TEST_FIELDS, tests))])


SECTION = RunSection("tests", build, after="losses")
