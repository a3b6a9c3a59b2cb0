"""Why a kernel without an op in the file isn't inferred: how like it the launches are whose op is known."""

from typing import Final, Literal

import polars as pl

from inferometer.analyses.roofline.calls import LAUNCH
from inferometer.analyses.roofline.inferred import UNKNOWN

Likeness = Literal["never", "other_shape", "once", "several", "alike"]
LIKENESS: Final[dict[Likeness, str]] = {
    "never": "no launch whose op is known runs this kernel",
    "other_shape": "launches of this kernel whose op is known differ in grid, block, registers or shared memory",
    "once": "only one launch like it has a known op",
    "several": "launches like it are of several ops or sizes",
    "alike": "launches like it may have other sizes",
}
"""In words. `alike`: of kernels of graphs, whose sizes need not be those of other calls."""
_GRAPH: Final = "graph_launch"


def with_likeness(launches: pl.DataFrame) -> pl.DataFrame:
    """`launches` with `likeness`, null where the op is known, or where it isn't looked for.

    Args:
        launches: Of `infer_signatures`.
    """
    is_open = (
        pl.col("signature").is_null()
        & (pl.col("kind") == "kernel")
        & pl.col("how").cast(pl.String).is_in([*UNKNOWN, _GRAPH])
    )
    numbered = launches.with_row_index("at")
    left = numbered.filter(is_open).select("at", *LAUNCH)
    if not left.height:
        return launches.with_columns(pl.lit(None, dtype=pl.String).alias("likeness"))
    shape = [name for name in LAUNCH if left[name].null_count() == 0]
    known = launches.filter(pl.col("signature").is_not_null() & ~pl.col("inferred"))
    alike = known.group_by(shape).agg(pl.len().alias("count"), pl.col("signature").n_unique().alias("signatures"))
    named = known.select("kernel").unique().with_columns(pl.lit(value=True).alias("is_named"))
    likeness = (
        pl.when(pl.col("signatures") > 1)
        .then(_lit("several"))
        .when(pl.col("count") == 1)
        .then(_lit("once"))
        .when(pl.col("count") > 1)
        .then(_lit("alike"))
        .when("is_named")
        .then(_lit("other_shape"))
        .otherwise(_lit("never"))
    )
    found = left.join(alike, on=shape, how="left").join(named, on="kernel", how="left").select("at", likeness=likeness)
    return numbered.join(found, on="at", how="left", maintain_order="left").drop("at")


def _lit(likeness: Likeness) -> pl.Expr:
    return pl.lit(likeness)
