"""`inferometer roofline --counters`: what Nsight Compute counted, next to what is modelled of a trace of that program.

The trace is written here, with the ops, kernels, grids and blocks of the program that the sample's counters are of, in
PyTorch's spelling; the counters are real.
"""

import json
import math
import operator
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import Event, call, event, kernel, write_file
from tests.ncu_files import DETAILS, RAW, printed

BF16 = "c10::BFloat16"
SIZE = [4096, 4096]
GEMM, SPLIT = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_NNT"
REDUCE = (
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, false, float, "
    "__nv_bfloat16, __nv_bfloat16, true, false, false, false>(cublasLt::cublasSplitKParams<float>, float const*)"
)
SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::BFloat16, float, c10::BFloat16, "
    "at::native::(anonymous namespace)::SoftMaxForwardEpilogue, long, 4>(c10::BFloat16*, c10::BFloat16 const*, long)"
)
Capsys = pytest.CaptureFixture[str]
Launch = tuple[str, list[int], list[int]]

LARGE: Launch = (GEMM, [2, 66, 1], [384, 1, 1])
SMALL: tuple[Launch, ...] = ((SPLIT, [2, 64, 1], [384, 1, 1]), (REDUCE, [128, 1, 1], [32, 16, 1]))
ROWS: Launch = (SOFTMAX, [4096, 1, 1], [1024, 1, 1])


def op(name: str, begin: int, dims: list[Any], values: list[str], *launches: Launch) -> list[Event]:
    """A call of an op, with launches of 5 us."""
    kinds = [BF16 if each else "Scalar" for each in dims]
    found = [event("cpu_op", name, str(begin), "40", Input_Dims=dims, Input_type=kinds, Concrete_Inputs=values)]
    for at, (text, grid, block) in enumerate(launches):
        shape = {"grid": grid, "block": block, "correlation": begin + at}
        found.append(call(ts=str(begin + 1 + 3 * at), dur="2", correlation=begin + at))
        found.append(kernel(text, str(begin + 50 + 6 * at), "5", **shape))
    return found


def product(begin: int, rows: int, *launches: Launch) -> list[Event]:
    return op("aten::mm", begin, [[rows, 4096], SIZE], ["", ""], *launches)


PROGRAM = [
    *(event_ for at in (1000, 2000, 3000) for event_ in product(at, 4096, LARGE)),
    *op("aten::_softmax", 4000, [SIZE, [], []], ["", "-1", "False"], ROWS),
    *product(5000, 8, *SMALL),
    *op("aten::silu", 6000, [SIZE], [""], ("some other kernel", [7, 1, 1], [128, 1, 1])),
]


def written(tmp_path: Path, events: list[Event]) -> Path:
    device = {"id": 0, "name": "NVIDIA H200", "numSms": 132, "totalGlobalMem": 150109880320, "computeMajor": 9,
              "computeMinor": 0}  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(events, before={"schemaVersion": 1, "deviceProperties": [device]}))
    return path


def data_of(capsys: Capsys, trace: Path, counters: Path = RAW, *more: str) -> dict[str, Any]:
    code, out, err = run("roofline", trace, "--counters", counters, "--json", *more, capsys=capsys)
    assert (code, err) == (0, "")
    data: dict[str, Any] = json.loads(out)
    return data


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def weighted(values: list[float], weights: list[float]) -> float:
    return math.fsum(map(operator.mul, values, weights)) / math.fsum(weights)


def dram(launch: dict[str, float]) -> float:
    return 1e6 * (launch["dram__bytes_read.sum"] + launch["dram__bytes_write.sum"])


def row_of(data: dict[str, Any], op_name: str, first: list[int] | None = None) -> dict[str, Any]:
    [found] = [
        row for row in data["rows"] if row["op"] == op_name and (not first or json.loads(row["input_dims"])[0] == first)
    ]
    return dict(found)


def test_a_product_has_what_was_counted_of_its_kernel(tmp_path: Path, capsys: Capsys) -> None:
    row = row_of(data_of(capsys, written(tmp_path, PROGRAM)), "aten::mm", SIZE)
    counted = printed(GEMM)
    bytes_of_one = mean([dram(launch) for launch in counted])

    assert (row["launches"], row["counted_launches"]) == (3, 3)
    assert row["measured_dram_bytes"] == pytest.approx(bytes_of_one)
    assert row["dram_ratio"] == pytest.approx(bytes_of_one / (3 * 4096 * 4096 * 2))
    sectors = [launch["lts__t_sectors.sum"] for launch in counted]
    hits = [launch["lts__t_sector_hit_rate.pct"] / 100 for launch in counted]
    assert row["l2_hit_rate"] == pytest.approx(weighted(hits, sectors))
    alone = [launch["gpu__time_duration.sum"] for launch in counted]
    for column, metric, factor in (
        ("measured_occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", 1e-2),
        ("measured_clock_hz", "gpc__cycles_elapsed.avg.per_second", 1e9),
    ):
        each = [launch[metric] * factor for launch in counted]
        assert row[column] == pytest.approx(weighted(each, alone)), column


def test_the_bound_at_the_clock_is_that_of_4096_flops_a_cycle_and_multiprocessor(
    tmp_path: Path, capsys: Capsys
) -> None:
    data = data_of(capsys, written(tmp_path, PROGRAM))
    row = row_of(data, "aten::mm", SIZE)

    assert row["binding"] == "matrix"
    seconds = 3 * 2 * 4096**3 / (4096 * 132 * row["measured_clock_hz"])
    assert row["clock_bound_ns"] == pytest.approx(seconds * 1e9)
    assert row["bound_ns"] == pytest.approx(3 * 2 * 4096**3 / 989.5e12 * 1e9)
    assert {each["clock_bound_ns"] for each in data["rows"] if each["binding"] != "matrix"} == {None}


def test_a_call_of_two_kernels_has_the_bytes_of_both(tmp_path: Path, capsys: Capsys) -> None:
    row = row_of(data_of(capsys, written(tmp_path, PROGRAM)), "aten::mm", [8, 4096])
    parts = [mean([dram(launch) for launch in printed(part)]) for part in (SPLIT, "splitKreduce")]

    assert (row["calls"], row["counted_launches"]) == (1, 2)
    assert row["measured_dram_bytes"] == pytest.approx(sum(parts) / 2)
    assert row["dram_ratio"] == pytest.approx(sum(parts) / (2 * (8 * 4096 + 4096 * 4096 + 8 * 4096)))


def test_a_call_with_a_kernel_that_was_not_counted_has_no_ratio(tmp_path: Path, capsys: Capsys) -> None:
    other: Launch = ("another", [1, 1, 1], [32, 1, 1])
    row = row_of(data_of(capsys, written(tmp_path, product(1000, 4096, LARGE, other))), "aten::mm")

    assert (row["launches"], row["counted_launches"], row["dram_ratio"]) == (2, 1, None)
    assert row["measured_dram_bytes"] == pytest.approx(mean([dram(launch) for launch in printed(GEMM)]))


def test_times_and_the_model_are_the_same_without_counters(tmp_path: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, PROGRAM)
    with_them = data_of(capsys, trace)
    code, out, _ = run("roofline", trace, "--json", capsys=capsys)
    alone = json.loads(out)

    assert (code, alone["counters"]) == (0, None)
    measured = {"counted_launches", "launches_by_name", "measured_dram_bytes", "dram_ratio", "l2_hit_rate",
                "measured_occupancy", "measured_clock_hz", "clock_bound_ns", "measured_fp32_flops",
                "measured_fp64_flops", "measured_tensor_flops", "reasons"}  # fmt: skip
    for one, other in zip(with_them["rows"], alone["rows"], strict=True):
        assert {name for name in one if one[name] != other[name]} <= measured
        assert {other[name] for name in measured} == {None}
    for name in ("total_ns", "modelled_ns", "bound_ns", "by"):
        assert with_them[name] == alone[name]


def test_what_joined_and_what_did_not_adds_up(tmp_path: Path, capsys: Capsys) -> None:
    data = data_of(capsys, written(tmp_path, PROGRAM))
    found = data["counters"]

    assert (found["launches"], found["joined"], found["counted"], found["used"]) == (7, 6, 15, 8)
    assert found["by_name"] == 0
    assert (found["total_ns"], found["joined_ns"]) == (data["total_ns"], 30_000)
    [left] = found["unjoined"]
    assert (left["kernel"], left["launches"], left["total_ns"]) == ("some other kernel", 1, 5_000)
    assert "no launch of this kernel" in left["reason"]
    assert sum(each["launches"] for each in found["unused"]) == 15 - 8
    assert sum(row["counted_launches"] for row in data["rows"]) == 6
    assert "6 of 7 launches have counters: 30.000 μs of 35.000 μs (85.7 %)." in data["remarks"]


@pytest.mark.parametrize(
    ("rows", "is_joined"),
    [
        ((4096, 2048), True),  # as often as it was counted
        ((4096, 2048, 4096, 2048), True),  # twice as often, in the same order
        ((4096, 2048, 2048, 4096), False),
        ((4096, 2048, 4096), False),
    ],
)
def test_one_kernel_of_two_ops_joins_by_order_alone(
    rows: tuple[int, ...], is_joined: bool, tmp_path: Path, capsys: Capsys
) -> None:
    events = [each for at, count in enumerate(rows, 1) for each in product(1000 * at, count, LARGE)]
    data = data_of(capsys, written(tmp_path, events))
    first, second = (row_of(data, "aten::mm", [count, 4096]) for count in (4096, 2048))

    if is_joined:
        counted = printed(GEMM)
        assert first["measured_dram_bytes"] == pytest.approx(dram(counted[0]))
        assert second["measured_dram_bytes"] == pytest.approx(dram(counted[1]))
    else:
        assert first["counted_launches"] == second["counted_launches"] == 0
        assert {each["reason"] for each in data["counters"]["unjoined"]} == {
            "several ops launch this kernel, and not in an order that repeats as often as it was counted"
        }


def test_the_details_page_tells_nearly_the_same(tmp_path: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, PROGRAM)
    raw, details = (row_of(data_of(capsys, trace, page), "aten::_softmax") for page in (RAW, DETAILS))

    for column in ("measured_dram_bytes", "dram_ratio", "l2_hit_rate", "measured_occupancy", "measured_clock_hz"):
        assert details[column] == pytest.approx(raw[column], rel=5e-3), column
    assert raw["measured_fp32_flops"] > 0
    assert details["measured_fp32_flops"] is None


def test_terminal_markdown_and_csv_show_it(tmp_path: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, PROGRAM)
    for form in ((), ("--markdown",)):
        code, out, _ = run("roofline", trace, "--counters", RAW, *form, capsys=capsys)
        assert code == 0
        assert "Counters, mean of a launch" in out
        assert "Without counters" in out
    code, out, _ = run("roofline", trace, "--counters", RAW, "--csv", capsys=capsys)
    assert "measured_dram_bytes" in out.splitlines()[0]


def test_ranges_that_cupti_profiled_join_by_name(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "ranges.json"
    args = {"dram__bytes_read.sum": 3e7, "dram__bytes_write.sum": 1e7, "lts__t_sector_hit_rate.pct": 25}
    events = [
        {**event("cuda_profiler_range", name, str(at), "1"), "args": args}
        for at, name in enumerate((GEMM, "__missing__"))
    ]
    path.write_bytes(write_file(events))
    data = data_of(capsys, written(tmp_path, PROGRAM), path)

    row = row_of(data, "aten::mm", SIZE)
    assert (row["counted_launches"], row["measured_dram_bytes"], row["l2_hit_rate"]) == (3, 4e7, 0.25)
    assert row["measured_occupancy"] is None
    assert [(each["kernel"], each["launches"]) for each in data["counters"]["unused"]] == [("__missing__", 1)]
    assert data["counters"]["by_name"] == data["counters"]["joined"] == 3


def test_real_names_of_two_tools_join_and_without_grids_that_is_said(capsys: Capsys) -> None:
    """Proton writes mangled names and no grids; both files are of a Triton kernel that adds, and of random numbers."""
    data = data_of(capsys, RAW.with_name("proton_trace.chrome_trace"))
    found = data["counters"]

    assert (found["launches"], found["joined"], found["by_name"]) == (11, 7, 7)
    assert sum(row["launches_by_name"] for row in data["rows"]) == 7
    assert any("7 of them joined by name alone" in remark for remark in data["remarks"])
    [row] = [row for row in data["rows"] if row["kernel"] == "add_kernel"]
    assert row["measured_dram_bytes"] == pytest.approx(mean([dram(launch) for launch in printed("add_kernel")]))
    [mangled] = [row for row in data["rows"] if row["counted_launches"] == 2]
    assert mangled["measured_dram_bytes"] == pytest.approx(
        mean([dram(launch) for launch in printed("normal_and_transform<float, float")])
    )


def test_a_row_joined_by_name_alone_says_that_the_size_is_unknown(tmp_path: Path, capsys: Capsys) -> None:
    """In the real pair an addition of 2.4 μs has the 182 MB of a larger one: no memory is as quick."""
    proton = RAW.with_name("proton_trace.chrome_trace")
    for command in ("roofline", "kernels"):
        code, out, _ = run(command, proton, "--counters", RAW, capsys=capsys)
        table = out.partition("Counters, mean of a launch")[2].partition("Without counters")[0]
        assert code == 0
        rows = [line for line in table.splitlines() if "(triton)" in line or "random" in line]
        assert [row.count("unknown") for row in rows] == [1, 1, 1]
        assert "Of Size: unknown where a file lacks grids or blocks" in " ".join(table.split())
        code, out, _ = run(command, written(tmp_path, PROGRAM), "--counters", RAW, capsys=capsys)
        assert "Of Size" not in out


def test_a_file_without_counters_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, PROGRAM)
    code, _, err = run("roofline", trace, "--counters", trace, capsys=capsys)

    assert code == 3
    assert "trace.json: expected counters of kernels, found none" in err
    assert "ncu --csv --page raw" in err


def test_counters_of_other_metrics_are_refused(tmp_path: Path, capsys: Capsys) -> None:
    path = tmp_path / "ncu.csv"
    head = (
        "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,my__metric.sum"
    )
    row = '"0","7","python3","127.0.0.1","k","1","7","(32, 1, 1)","(66, 1, 1)","0","9.0","5"'
    path.write_text(f"{head}\n{',' * 11}inst\n{row}\n")
    code, _, err = run("roofline", written(tmp_path, PROGRAM), "--counters", path, capsys=capsys)

    assert code == 3
    assert "found other metrics (my__metric.sum)" in err
    assert "ncu --set full" in err


def test_a_file_that_is_cut_or_missing_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    trace, cut = written(tmp_path, PROGRAM), tmp_path / "cut.csv"
    cut.write_text("ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size\n")
    for path, words in ((cut, "found none"), (tmp_path / "no-such.csv", "no-such.csv")):
        code, _, err = run("roofline", trace, "--counters", path, capsys=capsys)
        assert code == 3
        assert words in err


def test_standard_input_is_one_file_only(capsys: Capsys) -> None:
    code, _, err = run("roofline", "-", "--counters", "-", capsys=capsys)

    assert code == 2
    assert "one file only" in err
