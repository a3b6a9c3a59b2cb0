import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.fleet.digests import fleet_of, kernel, op, steps
from tests.fleet.mined import write_trace

from inferometer.errors import InputError, UnknownName
from inferometer.fleet.opening import Fleet, open_fleet
from inferometer.fleet.questions.outliers import fleet_outliers
from inferometer.fleet.questions.overview import fleet_overview
from inferometer.fleet.questions.savings import fleet_savings
from inferometer.fleet.questions.times import fleet_times

HOUR = 3_600_000_000_000


@pytest.fixture
def three(tmp_path: Path) -> Fleet:
    """Two traces of model a on a GPU, one of model b on a CPU."""
    return fleet_of(
        tmp_path / "f.ifm",
        {
            "a1": {
                "about": {"model": "a", "held_ns": 2 * HOUR, "busy_ns": HOUR, "stepped_ns": 100, "launch_bound_ns": 25,
                          "modelled_ns": HOUR, "bound_ns": HOUR / 4, "above_ns": HOUR * 0.75, "began_ns": 10**18},
                "kernels": [kernel("gemm", HOUR // 2, 3), kernel("copy", HOUR // 2)],
                "findings": [{"rule": "r", "severity": each, "title": "t"} for each in ("high", "low")],
            },
            "a2": {"about": {"model": "a", "held_ns": HOUR, "stepped_ns": 100}, "kernels": [kernel("gemm", HOUR)]},
            "b": {"about": {"model": "b", "gpus": 0}, "kernels": [kernel("gemm", HOUR // 4)]},
        },
    )  # fmt: skip


def test_time_adds_up_over_traces_and_groups(three: Fleet) -> None:
    found = fleet_times(three, "kernels")
    assert found.frame.select("kernel", "traces", "launches", "total_ns", "gpu_hours").rows() == [
        ("gemm", 3, 5, HOUR * 7 // 4, 1.5),
        ("copy", 1, 1, HOUR // 2, 0.5),
    ]
    by = fleet_times(three, "families", by="model").frame
    assert by.select("group", "family", "total_ns", "share").rows() == [
        ("a", "gemm", 2 * HOUR, 1.0),
        ("b", "gemm", HOUR // 4, 1.0),
    ]
    assert found.total_ns == by["total_ns"].sum() == HOUR * 9 // 4


def test_top_is_of_each_group_and_match_of_names(three: Fleet) -> None:
    assert fleet_times(three, "kernels", by="model", top=1).frame["kernel"].to_list() == ["gemm", "gemm"]
    assert fleet_times(three, "kernels", match="^co").frame["kernel"].to_list() == ["copy"]
    with pytest.raises(InputError, match="regular expression"):
        fleet_times(three, "kernels", match="(")


def test_an_overview_sums_hours_launch_bound_time_and_the_distance_to_the_bound(three: Fleet) -> None:
    a, b = fleet_overview(three, by="model").frame.to_dicts()
    assert (a["group"], a["traces"], a["held_gpu_hours"], a["busy_share"]) == ("a", 2, 3.0, 1 / 3)
    assert (a["launch_bound_share"], a["above_gpu_hours"], a["above_share"], a["findings"]) == (0.125, 0.75, 0.75, 1)
    assert (b["group"], b["held_gpu_hours"], b["launch_bound_share"], b["above_gpu_hours"]) == ("b", 0.0, None, None)
    assert fleet_overview(three).frame["traces"].to_list() == [3]


def test_only_what_was_asked_for_counts(three: Fleet) -> None:
    only = open_fleet(three.folder, {"model": "a", "date": "2001-09-09"})
    assert only.traces["path"].to_list() == ["a1"]
    assert fleet_times(only, "kernels").total_ns == HOUR
    with pytest.raises(UnknownName, match='unknown model "c"'):
        open_fleet(three.folder, {"model": "c"})


def test_a_sixth_of_a_kernel_is_saved_where_it_is_a_fifth_faster(three: Fleet) -> None:
    found = fleet_savings(three, faster=0.2)
    gemm = found.frame.row(0, named=True)
    assert (found.traces, found.held_gpu_hours, gemm["total_ns"]) == (2, 3.0, HOUR * 3 // 2)
    assert gemm["saved_gpu_hours"] == pytest.approx(0.25)
    assert gemm["share"] == pytest.approx(0.25 / 3)
    # of a1 alone 1/12 / 2 hours, of a2 alone 1/6 / 1 hour: draws of two clusters have these and the mean
    assert (gemm["low"], gemm["high"]) == (pytest.approx(1 / 24), pytest.approx(1 / 6))


def test_an_outlier_is_told_apart_from_what_is_alike(tmp_path: Path) -> None:
    usual = {f"t{n}": steps(1000.0 + n) for n in range(9)}
    others = {"other": steps(9000.0, model="x"), "newer": steps(9000.0, version="2")}
    fleet = fleet_of(tmp_path / "f.ifm", usual | others | {"slow": steps(1500.0)})
    found = fleet_outliers(fleet)
    assert found.frame.select("path", "alike").rows() == [("slow", 10)]
    assert found.frame["ratio"].item() == pytest.approx(1500 / 1004.5)
    assert (found.compared, found.alone) == (10, 2)


def test_like_traces_that_differ_little_have_no_outlier(tmp_path: Path) -> None:
    equal = fleet_of(tmp_path / "f.ifm", {f"t{n}": steps(1000.0) for n in range(9)} | {"near": steps(1090.0)})
    assert fleet_outliers(equal).frame.is_empty()
    apart = fleet_of(tmp_path / "g.ifm", {f"t{n}": steps(1000.0) for n in range(9)} | {"far": steps(1110.0)})
    assert fleet_outliers(apart).frame["distance"].to_list() == [None]


def test_kernels_of_a_fleet_sum_as_those_of_its_traces(tmp_path: Path) -> None:
    from tests.fleet.mined import mined

    for n in range(3):
        write_trace(tmp_path / "t" / f"{n}.json", ("gemm", 10.125 + n), ("softmax", 1.5), ("gemm", 3.0))
    mined(tmp_path / "f.ifm", tmp_path / "t")
    found = fleet_times(open_fleet(tmp_path / "f.ifm"), "kernels").frame
    assert found.select("kernel", "launches", "total_ns").rows() == [("gemm", 6, 42_375), ("softmax", 3, 4_500)]


def test_operators_without_an_op_are_a_row(tmp_path: Path) -> None:
    ops = [op("aten::mm", 30, "[[2,3],[3,4]]"), op("aten::mm", 20, "[[1,3],[3,4]]"), op(None, 10, kernel="k")]
    fleet = fleet_of(tmp_path / "f.ifm", {"t": {"ops": ops}})
    assert fleet_times(fleet, "operators").frame.select("op", "total_ns").rows() == [("aten::mm", 50), (None, 10)]
    assert fleet_times(fleet, "shapes").frame["input_dims"].to_list() == ["[[2,3],[3,4]]", "[[1,3],[3,4]]", None]


def test_every_result_is_json(three: Fleet) -> None:
    from inferometer import json_of

    for result in (fleet_times(three, "kernels"), fleet_overview(three), fleet_outliers(three), fleet_savings(three)):
        assert json.loads(json.dumps(json_of(result)))["source"] == three.source
        assert isinstance(result.to_polars(), pl.DataFrame)


def test_runs_that_name_no_model_are_alike_by_what_they_multiply(tmp_path: Path) -> None:
    def unnamed(ns: float, inner: int | None) -> dict[str, Any]:
        given = steps(ns)
        given["labels"].pop("model")
        return given if inner is None else given | {"ops": [op("aten::mm", 10, f"[[7,{inner}],[{inner},8]]")]}

    usual = {f"t{n}": unnamed(1000.0 + n, 64) for n in range(6)}
    fleet = fleet_of(tmp_path / "f.ifm", usual | {"slow": unnamed(2000.0, 64), "other": unnamed(4000.0, 32)})
    found = fleet_outliers(fleet)
    assert (found.frame["path"].to_list(), found.compared, found.alone, found.unknown) == (["slow"], 7, 1, 0)
    bare = fleet_of(tmp_path / "g.ifm", {f"t{n}": unnamed(1000.0 + n, None) for n in range(6)})
    assert (fleet_outliers(bare).compared, fleet_outliers(bare).unknown) == (6, 6)
