"""Rooflines as tables: bars of the time at the bound, above it, and not modelled."""

import polars as pl

from inferometer.analyses.roofline.gaps import GAPS
from inferometer.reports.views.roofline import BAR, _gaps, _with_bars


def test_bars_are_as_long_as_the_time_and_parted_by_the_bound() -> None:
    rows = pl.DataFrame({"modelled_ns": [80, 50, 0], "above_ns": [60.0, 0.0, 0.0], "total_ns": [100, 50, 10]})
    assert _with_bars(rows)[BAR].to_list() == ["█" * 4 + "░" * 12 + "·" * 4, "█" * 10, "··"]


def test_without_time_there_are_none() -> None:
    rows = pl.DataFrame({"modelled_ns": [0], "above_ns": [0.0], "total_ns": [0]})
    assert _with_bars(rows)[BAR].to_list() == [""]


def test_what_is_not_modelled_has_no_bound_and_no_time_above_it() -> None:
    gaps = pl.DataFrame([("a", 1, 100, 80, 20.0, 60.0), (None, 2, 10, 0, 0.0, 0.0)], schema=GAPS, orient="row")

    rows = _gaps("family", gaps).frame

    assert rows["above_ns"].to_list() == [60.0, None]
    assert rows["bound_ns"].to_list() == [20.0, None]
    assert rows["fraction"].to_list() == [0.25, None]
