"""Why kernels without an op aren't inferred, by the launches whose op is known."""

import polars as pl
from tests.analyses.roofline.test_inferred import launches

from inferometer.analyses.roofline.inferred import infer_signatures
from inferometer.analyses.roofline.likeness import with_likeness

OPEN = ("a", None, None)


def likeness(rows: list[tuple[str, int | None, int | None]], how: str = "launch_before_window") -> str | None:
    """Of the first launch, which has no op."""
    found = launches(*rows).with_columns(
        pl.when(pl.col("signature").is_null()).then(pl.lit(how)).otherwise("how").alias("how")
    )
    return with_likeness(infer_signatures(found))["likeness"][0]


def test_each_kind_of_likeness() -> None:
    assert likeness([OPEN, ("b", 0, 1)]) == "never"
    assert likeness([OPEN, ("a", 0, 1)]) == "once"
    assert likeness([OPEN, ("a", 0, 1), ("a", 1, 2)]) == "several"
    assert likeness([OPEN, ("a", 0, 1), ("a", 0, 2)], "graph_launch") == "alike"


def test_a_launch_of_another_grid_is_not_alike() -> None:
    rows = infer_signatures(launches(OPEN, ("a", 0, 1)))
    wider = pl.when(pl.col("signature").is_null()).then(pl.lit([2, 1, 1])).otherwise("grid").alias("grid")

    assert with_likeness(rows.with_columns(wider))["likeness"][0] == "other_shape"


def test_what_no_op_is_looked_for_has_none() -> None:
    assert likeness([OPEN, ("a", 0, 1)], "call") is None
    assert likeness([("a", 0, 1)]) is None


def test_what_is_inferred_has_none() -> None:
    found = with_likeness(infer_signatures(launches(OPEN, ("a", 0, 1), ("a", 0, 2))))
    assert found["likeness"].to_list() == [None] * 3
