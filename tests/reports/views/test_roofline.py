"""Rooflines as tables: bars of the time at the bound, above it, and not modelled."""

import polars as pl
import pytest

from inferometer.analyses.roofline.gaps import GAPS
from inferometer.hardware.known import require_device
from inferometer.reports.views.roofline import BAR, _explanations, _gaps, _with_bars

FITS, TOO_MUCH = 10_000_000, 100_000_000  # bytes; the L2 of an A100 has 40 MB


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


def explained(
    device: str | None, *, warm_ns: float | None, assumes: list[str], moved: int, just_written_ns: float | None = None
) -> str:
    """The first explanation of a row that took 100 ns."""
    bounds = {"warm_bound_ns": warm_ns, "just_written_bound_ns": just_written_ns}
    row = pl.DataFrame(
        [{"total_ns": 100, **bounds, "assumes": assumes, "read_bytes": moved, "write_bytes": 0}],
        schema_overrides={**dict.fromkeys(bounds, pl.Float64), "assumes": pl.List(pl.String)},
    )
    known = None if device is None else require_device(device)
    return next(why for explains, why in _explanations(known) if row.filter(explains).height)


@pytest.mark.parametrize(
    ("device", "warm_ns", "assumes", "moved", "words"),
    [
        ("A100 SXM 80GB", 90.0, ["even"], FITS, "from there they aren't too fast"),
        ("A100 SXM 80GB", 110.0, ["even"], FITS, "what is assumed"),
        ("A100 SXM 80GB", None, [], FITS, "can't be told"),
        ("A100 SXM 80GB", None, [], TOO_MUCH, "only a part of its launches"),
        (None, None, [], FITS, "only a part of its launches"),
    ],
)
def test_a_row_faster_than_its_bound_says_why_or_that_it_cant_be_told(
    device: str | None, warm_ns: float | None, assumes: list[str], moved: int, words: str
) -> None:
    assert words in explained(device, warm_ns=warm_ns, assumes=assumes, moved=moved)


def test_a_row_that_reads_what_was_just_written_is_explained_by_that_where_it_suffices() -> None:
    suffices, falls_short = (
        explained("A100 SXM 80GB", warm_ns=90.0, assumes=["even"], moved=FITS, just_written_ns=bound_ns)
        for bound_ns in (100.0, 101.0)
    )
    assert "had just been written" in suffices
    assert "had just been written" not in falls_short
