"""Rooflines as tables: bars of the time at the bound, above it, and not modelled."""

import polars as pl

from inferometer.reports.views.roofline import BAR, _with_bars


def test_bars_are_as_long_as_the_time_and_parted_by_the_bound() -> None:
    rows = pl.DataFrame({"modelled_ns": [80, 50, 0], "above_ns": [60.0, 0.0, 0.0], "total_ns": [100, 50, 10]})
    assert _with_bars(rows)[BAR].to_list() == ["█" * 4 + "░" * 12 + "·" * 4, "█" * 10, "··"]


def test_without_time_there_are_none() -> None:
    rows = pl.DataFrame({"modelled_ns": [0], "above_ns": [0.0], "total_ns": [0]})
    assert _with_bars(rows)[BAR].to_list() == [""]
