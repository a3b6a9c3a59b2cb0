"""Columns give way in the order of their importance, and never more of them than the screen asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.reports.screen.widths import Column, choose_widths, total_width, whole_widths
from inferometer.reports.views.layout import Field, Kind

TIME = Column(Field("total_ns", "Total Time", "ns"), [1], ["168.724 μs"])
SHARE = Column(Field("share", "Time", "share"), [1], ["99.4 %"])
COUNT = Column(Field("count", "Instances", "count", spare=1), [1], ["144"])
MEAN = Column(Field("mean_ns", "Avg", "ns", spare=2), [1], ["84.362 μs"])
NAME = Column(Field("kernel", "Name", "kernel"), ["k"], ["k" * 60])
SAID = Column(Field("title", "Finding", "sentence"), ["s"], ["word " * 30])
KINDS: tuple[Kind, ...] = ("text", "name", "kernel", "sentence", "count", "ns", "share")


def titles(columns: list[Column], width: int) -> list[str]:
    return [column.field.title for column in choose_widths(columns, width)]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (200, ["Time", "Total Time", "Instances", "Avg", "Name"]),
        (80, ["Time", "Total Time", "Instances", "Name"]),
        (70, ["Time", "Total Time", "Name"]),
        (44, ["Time", "Total Time", "Name"]),
        (28, ["Total Time", "Name"]),
    ],
)
def test_name_and_time_go_last(width: int, shown: list[str]) -> None:
    assert titles([SHARE, TIME, COUNT, MEAN, NAME], width) == shown


def test_a_name_has_all_the_room_that_numbers_leave() -> None:
    assert choose_widths([TIME, NAME], 200)[NAME] == 60
    assert choose_widths([TIME, NAME], 50)[NAME] == 50 - 2 - 10


def test_a_finding_is_wrapped_into_the_room_that_is_left() -> None:
    rule = Column(Field("rule", "Rule", "text", spare=1), ["r"], ["idle_device"])
    assert titles([SAID, TIME, rule], 80) == ["Finding", "Total Time", "Rule"]
    assert titles([SAID, TIME, rule], 60) == ["Finding", "Total Time"]


def test_asked_for_all_nothing_is_left_out_or_cut() -> None:
    columns = [SHARE, TIME, COUNT, MEAN, NAME]
    assert whole_widths(columns, 40) == {column: column.natural for column in columns}


COLUMNS = st.builds(
    lambda kind, spare, text: Column(Field("x", "Title", kind, spare), [text], [text]),
    *(st.sampled_from(KINDS), st.integers(0, 9), st.text("ab", max_size=12)),
)


@given(st.lists(COLUMNS, min_size=1, max_size=12), st.integers(40, 200))
def test_what_is_shown_fits_and_a_spared_column_is_never_kept_for_one_that_matters_more(
    columns: list[Column], width: int
) -> None:
    widths = choose_widths(columns, width)
    assert total_width(widths.values()) <= width
    assert all(0 < width <= max(column.natural, 1) for column, width in widths.items())
    left_out = [column.field.spare for column in columns if column not in widths]
    spared = [column.field.spare for column in widths if column.field.spare]
    assert not spared or not left_out or max(spared) <= min(spare for spare in left_out) or 0 in left_out
