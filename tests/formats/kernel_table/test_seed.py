"""The file that a user sent: two tables, a traceback between them, and remarks in Chinese."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.traces import rows

import inferometer
from inferometer import Trace
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.formats.base import find_format
from inferometer.formats.source import Source
from inferometer.reports.views.view import sections_of

SEED = "002_9d4567749f1494f6.txt"


@pytest.fixture
def path(seeds: Path) -> Path:
    return seeds / SEED


@pytest.fixture
def trace(path: Path) -> Trace:
    return inferometer.open(path)


def test_its_content_finds_the_format(path: Path) -> None:
    assert find_format(Source(path)).name == "kernel-table"


def test_the_first_table_has_all_rows_and_launches(trace: Trace) -> None:
    table = kernel_table(trace)
    assert (table.basis, table.section, table.kernels) == ("totals", 0, 201)
    assert table.frame["count"].sum() == 37_254
    split = table.frame.filter(pl.col("kernel").str.contains("cublasLt::splitKreduce_kernel"))
    assert split.select("count", "total_ns", "stddev_ns").rows() == [(2_880, 11_477_000, 1_450.0)]
    assert table.frame.row(0, named=True)["resolution_ns"] == 500_000


def test_percentages_are_the_printed_ones_within_their_rounding(trace: Trace, path: Path) -> None:
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:202]]
    printed = {(cells[-1], int(cells[2])): float(cells[0].removesuffix("%")) for cells in lines}
    frame = kernel_table(trace).frame
    assert len(printed) == frame.height
    for row in frame.iter_rows(named=True):
        assert abs(row["share"] * 100 - printed[row["kernel"], row["count"]]) <= 0.0501


def test_the_second_table_is_a_section_of_its_own(trace: Trace) -> None:
    (second,) = kernel_table(trace).others
    assert (second.section, second.kernels, second.total_ns) == (1, 1, 42_368)
    assert second.frame["kernel"].to_list() == ["triton_poi_fused_clamp_sub_0"]
    assert second.frame["mean_ns"].to_list() == [None]
    assert [(loss.name, loss.example) for loss in trace.losses] == [
        ("share_disagrees", "line 272: 0 % is printed, the rows make 100.0 %")
    ]


def test_the_traceback_is_a_path_of_its_rank(trace: Trace) -> None:
    paths = rows(trace, "call_paths", "depth", "rank", "name", "frame")
    assert [path[0] for path in paths] == list(range(19))
    assert {path[1] for path in paths} == {0}
    assert (paths[0][2], paths[-1][2]) == ("__init__", "apply")
    assert paths[-1][3].endswith("sglang/srt/layers/quantization/unquant.py:131 apply")


def test_remarks_name_their_files_and_kernels(trace: Trace) -> None:
    remarks = {
        line: (source, [name.split("<")[0].split(" ")[-1] for name in json.loads(fields).get("kernels", [])])
        for line, kind, source, fields in rows(trace, "log", "line", "kind", "source", "fields")
        if kind == "remark"
    }
    assert {line: (source.rsplit("/", 1)[1], kernels) for line, (source, kernels) in remarks.items()} == {
        263: ("CUDABlas.cpp", ["cublasLt::splitKreduce_kernel"]),
        264: ("CUDABlas.cpp", ["nvjet_tst_128x128_64x6_2x1_v_bz_splitK_TNT", "cublasLt::splitKreduce_kernel"]),
        268: (
            "flashattention_backend.py",
            ["flash::prepare_varlen_num_blocks_kernel"] * 5 + ["cutlass::device_kernel"] * 3,
        ),
        269: ("flashattention_backend.py", []),
    }


def test_nothing_of_the_file_is_lost(trace: Trace, path: Path) -> None:
    text = path.read_text("utf-8").splitlines()
    kept = dict(rows(trace, "log", "line", "text"))
    names = set(rows(trace, "totals", "kernel"))
    for number, line in enumerate(text, 1):
        if line.strip() and number not in kept:
            assert line.split("\t")[-1].strip() in names
    assert {number: text[number - 1] for number in kept} == kept
    assert trace.losses.seen == {"totals": 202, "log": 63, "call_paths": 19}
    assert trace.losses.dropped() == 0


def test_a_store_of_it_answers_alike(path: Path, tmp_path: Path) -> None:
    store = inferometer.import_trace(path, tmp_path / "seed.ifm")
    ours, theirs = kernel_table(inferometer.open(path)), kernel_table(store)
    assert theirs.frame.equals(ours.frame)
    assert theirs.others[0].frame.equals(ours.others[0].frame)
    assert [section.title for section in sections_of(inferometer.summarize(store))] == [
        "Top kernels, section 0",
        "Kernels, section 1",
    ]
