"""Which marked step each launch is of: by the ranges around its call, else by the moment of the call.

A mark is a range on one thread. What other threads of the process call meanwhile, as autograd's does for all of a
backward pass, is of the same step, as the table of steps has it.
"""

from typing import Final

import polars as pl

from inferometer.analyses.launched_by.chain_tree import ROOT, CallTree
from inferometer.analyses.steps.engine_marks import read_mark
from inferometer.analyses.steps.sources import PROFILER_STEP
from inferometer.trace.trace import Trace

_OWNER: Final = ("rank", "process")
_NO_ID: Final = -(2**63)  # stands for null where polars joins by equality only


def with_steps(launches: pl.DataFrame, tree: CallTree, trace: Trace) -> pl.DataFrame:
    """`launches` with `step`: the name of the outermost range that marks a step of an engine or profiler.

    Args:
        launches: With `node`, `called_ns`, `rank` and `process`.
        tree: Of the nodes.
        trace: Of its tables `spans` is read, if it was read.
    """
    found = launches.join(_around(tree), on="node", how="left", maintain_order="left")
    if not found["step"].null_count():
        return found
    return found.with_columns(pl.coalesce("step", _meanwhile(found, trace)).alias("step"))


def _is_mark(span: str) -> bool:
    return PROFILER_STEP.fullmatch(span) is not None or read_mark(span) is not None


def _around(tree: CallTree) -> pl.DataFrame:
    steps: list[str | None] = []
    for node, parent in enumerate(tree.parent):
        above = steps[parent] if parent != ROOT else None
        label = tree.label_of(node)
        steps.append(above or (label.name if label.kind == "span" and _is_mark(label.name) else None))
    return pl.DataFrame({"node": range(len(tree)), "step": steps}, schema={"node": pl.Int64, "step": pl.String})


def _meanwhile(launches: pl.DataFrame, trace: Trace) -> pl.Series:
    """The mark that was open in the process at each launch's call."""
    marks = _marks(trace)
    called = launches.select(*(pl.col(name).fill_null(_NO_ID) for name in _OWNER), "called_ns").with_row_index("row")
    open_then = (
        called.filter(pl.col("called_ns").is_not_null())
        .sort("called_ns")
        .join_asof(
            marks,
            left_on="called_ns",
            right_on="start_ns",
            by=_OWNER,
            strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("called_ns") < pl.col("end_ns"))
        .select("row", "mark")
    )
    return called.join(open_then, on="row", how="left", maintain_order="left")["mark"]


def _marks(trace: Trace) -> pl.DataFrame:
    """Of the host, by start: of those within others the outermost alone."""
    if "spans" not in trace.scope:
        return pl.DataFrame(
            schema=dict.fromkeys((*_OWNER, "start_ns", "end_ns"), pl.Int64) | {"mark": pl.String},
        )
    spans = trace.spans.filter(pl.col("thread").is_not_null()).select("span", *_OWNER, "start_ns", "dur_ns").collect()
    named = [name for name in spans["span"].cast(pl.String).unique() if name is not None and _is_mark(name)]
    end_ns = (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")
    marks = spans.select(
        pl.col("span").cast(pl.String).alias("mark"),
        *(pl.col(name).fill_null(_NO_ID) for name in _OWNER),
        "start_ns",
        end_ns,
    ).filter(pl.col("mark").is_in(named), pl.col("end_ns").is_not_null())
    ordered = marks.sort("start_ns", "end_ns", descending=[False, True])
    is_outer = pl.col("end_ns") > pl.col("end_ns").cum_max().shift(1).over(_OWNER)
    return ordered.filter(is_outer.fill_null(value=True))
