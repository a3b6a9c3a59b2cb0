"""Losses and scope as people read them."""

from inferometer.reports.base import clean, loss_lines, scope_line
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES


def test_examples_cannot_drive_a_terminal() -> None:
    losses = Losses()
    losses.count("truncated", category="a\x1b[2J", example="b\x1b]0;title\x07\n")
    (line,) = loss_lines(losses)
    assert clean(line) == line


def test_a_part_says_that_it_is_one() -> None:
    assert scope_line(Losses(ALL_TABLES)) is None
    assert scope_line(Losses({"ops", "launches"})) == "Only launches, ops were read; losses count those alone."
