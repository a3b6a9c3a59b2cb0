"""What was counted of each launch: a real file recomputed in plain Python, and which metric counts where some lack."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.ncu_files import DETAILS, RAW, printed

import inferometer
from inferometer.analyses.counters.metrics import counted_launches
from inferometer.trace.tables import KERNEL_COUNTERS

THREADS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


def of(page: Path) -> pl.DataFrame:
    return counted_launches(inferometer.open(page).tables["kernel_counters"].collect())


def counters(**values: float) -> pl.DataFrame:
    rows = [{"launch": 0, "kernel": "k", "metric": metric, "value": value} for metric, value in values.items()]
    return pl.DataFrame(rows, schema=KERNEL_COUNTERS.schema)


def test_the_raw_page_recomputed() -> None:
    found = of(RAW).to_dicts()
    expected = printed()
    assert len(found) == len(expected) == 15
    for row, each in zip(found, expected, strict=True):
        moved = 1e6 * (each["dram__bytes_read.sum"] + each["dram__bytes_write.sum"])  # both columns are Mbyte
        assert row["dram_bytes"] == pytest.approx(moved)
        assert row["l2_hit_rate"] == pytest.approx(each["lts__t_sector_hit_rate.pct"] / 100)
        assert row["l2_weight"] == each["lts__t_sectors.sum"]
        assert row["occupancy"] == pytest.approx(each["sm__warps_active.avg.pct_of_peak_sustained_active"] / 100)
        assert row["clock_hz"] == pytest.approx(1e9 * each["gpc__cycles_elapsed.avg.per_second"])
        a_cycle = [each[THREADS.format(op) + ".per_cycle_elapsed"] for op in ("fadd", "fmul", "ffma")]
        cycles = each["smsp__cycles_elapsed.avg"]
        assert row["fp32_flops"] == pytest.approx((a_cycle[0] + a_cycle[1] + 2 * a_cycle[2]) * cycles)
        assert row["fp64_flops"] == 0
        assert row["tensor_flops"] is None  # the file has shares of these alone


def test_an_addition_of_4096_by_4096_numbers_takes_as_many_flops() -> None:
    flops = of(RAW).filter(pl.col("kernel") == "add_kernel")["fp32_flops"]
    assert flops.to_list() == pytest.approx([4096 * 4096] * 2, rel=1e-6)


def test_both_pages_of_one_run_agree_as_far_as_the_details_are_printed() -> None:
    raw, details = of(RAW), of(DETAILS)
    for name, relative in (("l2_hit_rate", 1e-3), ("occupancy", 2e-3), ("clock_hz", 5e-3)):
        assert details[name].to_list() == pytest.approx(raw[name].to_list(), rel=relative), name
    assert details["dram_bytes"].to_list() == pytest.approx(raw["dram_bytes"].to_list(), rel=5e-3)
    assert details["fp32_flops"].null_count() == details.height


def test_counts_are_taken_before_rates() -> None:
    given = counters(
        **{THREADS.format("fadd"): 5, THREADS.format("fmul"): 7, THREADS.format("ffma"): 11},
        **{THREADS.format("fadd") + ".per_cycle_elapsed": 1e9, "smsp__cycles_elapsed.avg": 100},
    )
    assert counted_launches(given)["fp32_flops"].to_list() == [5 + 7 + 2 * 11]


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        ({"dram__bytes.sum": 9.0}, "dram_bytes", 9.0),
        ({"dram__bytes_read.sum": 9.0}, "dram_bytes", None),
        ({"dram__bytes.sum.per_second": 2e9, "gpu__time_duration.sum": 500.0}, "dram_bytes", 1000.0),
        ({"dram__bytes.sum.per_second": 2e9}, "dram_bytes", None),
        ({THREADS.format("fadd"): 5.0, THREADS.format("fmul"): 5.0}, "fp32_flops", None),
        ({"sm__ops_path_tensor_src_bf16_dst_fp32.sum": 64.0}, "tensor_flops", 64.0),
        ({"sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on.sum": 64.0}, "tensor_flops", None),
        ({"sm__inst_executed_pipe_tensor_op_gmma.sum": 64.0}, "tensor_flops", None),
        ({"sm__cycles_elapsed.avg.per_second": 1e9}, "clock_hz", 1e9),
    ],
)
def test_what_cannot_be_counted_is_null(values: dict[str, Any], column: str, expected: float | None) -> None:
    assert counted_launches(counters(**values))[column].to_list() == [expected]


def test_the_first_launch_of_one_rank_is_not_that_of_another() -> None:
    given = counters(**{"dram__bytes.sum": 9.0})
    both = pl.concat([given.with_columns(pl.lit(rank, dtype=given.schema["rank"]).alias("rank")) for rank in (0, 1)])
    assert counted_launches(both)["dram_bytes"].to_list() == [9.0, 9.0]


def test_products_of_two_types_add_up() -> None:
    given = {
        f"sm__ops_path_tensor_src_{kind}_dst_fp32.sum": 10.0**at for at, kind in enumerate(("bf16", "fp8", "tf32"))
    }
    assert counted_launches(counters(**given))["tensor_flops"].to_list() == [111]
