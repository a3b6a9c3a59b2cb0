"""Selections that cut calls: a bound is charged only to calls of which all launches are selected."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import SHARED_DATA
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.launched_by.attribution import Attribution, attribute
from inferometer.analyses.roofline.op_arguments import op_arguments
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.analyses.selection import Selection
from inferometer.errors import UnknownName
from inferometer.hardware.known import require_device
from inferometer.reports.views.view import remarks_of

REAL = [
    Path(__file__).parents[3] / "samples" / "decode.json.gz",
    *(SHARED_DATA / "traces" / "kineto" / f"{name}.json.gz" for name in ("h100_qwen1.5-0.5b", "mi300_resnet_ddp")),
]
WHY = "cut by --between: it has only some of the launches of these calls"


def split_k() -> Trace:
    """Two products, each a kernel and one that sums its parts, on streams 7 and 8; a copy after each."""
    launches, calls, ops = [], [], []
    for n in range(2):
        at = n * 1_000
        product = {"op": "aten::mm", "input_dims": "[[16,64],[64,32]]", "input_dtypes": '["float","float"]'}
        copy = {"op": "aten::copy_", "input_dims": "[[16,32],[16,32]]", "input_dtypes": '["float","float"]'}
        ops += [{**product, "start_ns": at, "dur_ns": 50}, {**copy, "start_ns": at + 60, "dur_ns": 20}]
        for each, (kernel, called, stream) in enumerate((("gemm", 10, 7), ("reduce", 20, 8), ("copy", 65, 7))):
            number = 3 * n + each
            calls.append({"api": "cudaLaunchKernel", "start_ns": at + called, "dur_ns": 1, "correlation_id": number})
            launches.append({"kernel": kernel, "start_ns": at + 100 * each + 200, "dur_ns": 90, "stream": stream,
                             "device": "gpu:0", "correlation_id": number})  # fmt: skip
    here = {"process": 1, "thread": 1, "rank": 0}
    return trace_of(
        [{**each, "process": 1, "rank": 0} for each in launches],
        calls=[{**each, **here} for each in calls],
        ops=[{**each, **here} for each in ops],
    )


def found_in(trace: Trace, **selection: Any) -> Roofline:
    found = attribute(trace, with_op_calls=True)
    return roofline(found, trace, selection=Selection(**selection), device=require_device("H100 SXM"))


def rows_of(found: Roofline) -> list[tuple[Any, ...]]:
    columns = ("op", "calls", "cut_calls", "launches", "total_ns", "reason")
    return sorted(found.frame.select(columns).iter_rows(), key=str)


def test_a_window_that_ends_within_a_call_gives_the_rest_a_row_without_a_bound() -> None:
    found = found_in(split_k(), between_ns=(0, 1_250))

    assert rows_of(found) == [
        ("aten::copy_", 1, None, 1, 90, None),
        ("aten::mm", 1, None, 2, 180, None),
        ("aten::mm", None, 1, 1, 90, WHY),
    ]
    whole = found_in(split_k()).frame.filter(pl.col("op") == "aten::mm")
    assert found.frame.filter(pl.col("op") == "aten::mm")["bound_ns"].sum() == whole["bound_ns"].item() / 2
    assert found.cut_ns == found.as_json()["cut_ns"] == 90
    assert "90 ns are launches of calls of which the selection has only a part: they have no bound." in remarks_of(
        found
    )


def test_a_stream_that_has_a_part_of_every_call_gives_them_no_bound() -> None:
    found = found_in(split_k(), stream=8)

    assert rows_of(found) == [("aten::mm", None, 2, 2, 180, WHY.replace("between", "stream"))]
    assert (found.modelled_ns, found.bound_ns, found.total_ns) == (0, 0.0, 180)
    [row] = op_arguments(found).frame.to_dicts()
    assert (row["calls"], row["cut_calls"], row["mean_of_call_ns"], row["flops"]) == (None, 2, None, None)


def test_all_options_that_select_are_named() -> None:
    found = found_in(split_k(), stream=7, between_ns=(0, 1_000))

    [row] = found.frame.filter(pl.col("reason").is_not_null()).to_dicts()
    assert row["reason"].startswith("cut by --between and --stream: ")


def test_a_selection_of_nothing_and_of_what_is_not_there() -> None:
    found = found_in(split_k(), between_ns=(600, 700))

    assert (found.frame.height, found.total_ns, found.why_none) == (0, 0, "No device work in the selection.")
    with pytest.raises(UnknownName):
        found_in(split_k(), stream=9)


def attributed(path: Path) -> tuple[Trace, Attribution]:
    if not path.exists():
        pytest.skip("needs ../shared/data")
    trace = inferometer.open(path)
    return trace, attribute(trace, with_op_calls=True)


KEY = ("op", "input_dims", "input_dtypes", "input_strides", "scalars")


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name.partition(".")[0])
def test_two_adjoining_windows_have_all_calls_but_those_that_both_cut(path: Path) -> None:
    trace, found = attributed(path)
    begin, end = trace.window() or (0, 0)
    several = found.launches.filter(pl.len().over("op_call") > 1, pl.col("op_call").is_not_null())
    second = several.filter(pl.col("start_ns").rank("ordinal").over("op_call") == 2)["start_ns"].sort()
    at = int(second[len(second) // 2]) - begin

    whole = roofline(found, trace)
    parts = [
        roofline(found, trace, selection=Selection(between_ns=window)) for window in ((0, at), (at, end - begin + 1))
    ]

    assert sum(part.total_ns for part in parts) == whole.total_ns
    assert sum(part.frame["launches"].sum() for part in parts) == whole.frame["launches"].sum()
    first, then = (_sums(part, "cut_calls") for part in parts)
    assert first == then
    assert first
    kept, all_of = [_sums(part, "calls") for part in parts], _sums(whole, "calls")
    assert {key: kept[0].get(key, 0) + kept[1].get(key, 0) + first.get(key, 0) for key in all_of} == all_of
    bounds = dict(whole.frame.select(pl.struct(KEY).struct.json_encode(), "bound_ns").drop_nulls().iter_rows())
    lost = sum(bounds.get(key, 0.0) * count / all_of[key] for key, count in first.items())
    assert sum(part.bound_ns or 0.0 for part in parts) == pytest.approx((whole.bound_ns or 0.0) - lost)


def _sums(found: Roofline, of: str) -> dict[str, int]:
    """By op and arguments."""
    rows = found.frame.filter(pl.col(of).is_not_null()).group_by(pl.struct(KEY).struct.json_encode().alias("key"))
    return dict(rows.agg(pl.col(of).sum()).iter_rows())
