"""Losses and scope as people read them."""

import polars as pl

from inferometer.errors import clean
from inferometer.reports.base import loss_lines, scope_line, shown_fields
from inferometer.reports.views.layout import Field, Section
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES


def test_examples_cannot_drive_a_terminal() -> None:
    losses = Losses()
    losses.count("truncated", category="a\x1b[2J", example="b\x1b]0;title\x07\n")
    (line,) = loss_lines(losses)
    assert clean(line) == line


def test_a_part_says_that_it_is_one() -> None:
    assert scope_line(Losses(ALL_TABLES)) is None
    assert scope_line(Losses({"launches"})) == "Read only launches; loss counts cover only that table."
    assert scope_line(Losses({"ops", "launches"})) == "Read only launches and ops; loss counts cover only those tables."


def test_a_column_that_can_be_spared_and_holds_nothing_is_not_shown() -> None:
    fields = (Field("a", "A", "ns"), Field("b", "B", "ns", spare=1), Field("c", "C", "ns", spare=2))
    frame = pl.DataFrame({"a": [None, None], "b": [None, None], "c": [None, 1]}, schema_overrides={"a": pl.Int64})
    assert [field.column for field in shown_fields(Section("T", fields, frame))] == ["a", "c"]
    assert len(shown_fields(Section("T", fields, frame.clear()))) == 3
