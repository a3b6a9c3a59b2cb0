"""`inferometer counters` and `kernels --counters`, against a reader of the real page that shares nothing with ours."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run
from tests.commands.test_roofline_counters import GEMM, PROGRAM, ROWS, op, written
from tests.formats.ncu.test_reader import HEAD, ROW
from tests.ncu_files import DETAILS, RAW, printed

import inferometer

Capsys = pytest.CaptureFixture[str]
STALLED = "smsp__pcsamp_warps_issue_stalled_"


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The raw page as a store, which opens more quickly."""
    return inferometer.open(RAW).save(tmp_path_factory.mktemp("counted") / "raw.ifm")


def data_of(capsys: Capsys, *arguments: str | Path) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json", capsys=capsys)
    assert (code, err) == (0, "")
    data: dict[str, Any] = json.loads(out)
    return data


def reasons_of(launch: dict[str, float]) -> dict[str, float]:
    """Shares of the samples of warps, by reason."""
    samples = {
        name.removeprefix(STALLED): value
        for name, value in launch.items()
        if name.startswith(STALLED) and not name.endswith("_not_issued") and value
    }
    return {name: value / sum(samples.values()) for name, value in samples.items()}


def test_each_launch_has_what_the_page_says_of_it(raw: Path, capsys: Capsys) -> None:
    rows = data_of(capsys, "counters", raw)["rows"]
    assert len(rows) == len(printed()) == 15
    for row, page in zip(rows, printed(), strict=True):
        assert row["alone_ns"] == pytest.approx(1000 * page["gpu__time_duration.sum"])
        assert row["dram_bytes"] == pytest.approx(1e6 * (page["dram__bytes_read.sum"] + page["dram__bytes_write.sum"]))
        assert row["registers"] == page["launch__registers_per_thread"]
        for name, metric in (
            ("compute_share", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
            ("memory_share", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("dram_share", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
            ("l1_hit_rate", "l1tex__t_sector_hit_rate.pct"),
            ("l2_hit_rate", "lts__t_sector_hit_rate.pct"),
            ("occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
            ("theoretical_occupancy", "sm__maximum_warps_per_active_cycle_pct"),
        ):
            assert row[name] == pytest.approx(page[metric] / 100), name
        assert {each["reason"]: each["share"] for each in row["reasons"]} == pytest.approx(reasons_of(page))
        assert sum(each["share"] for each in row["reasons"]) == pytest.approx(1)
        pipes = {each["pipe"]: each["share"] for each in row["pipes"]}
        for pipe in ("alu", "fma", "tensor"):
            metric = f"sm__pipe_{pipe}_cycles_active.avg.pct_of_peak_sustained_active"
            assert pipes.get(pipe, 0) == pytest.approx(page[metric] / 100)
        issued = page["sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"] / 100
        assert pipes.get("lsu", 0) == pytest.approx(issued)


def test_the_details_say_the_same_as_finely_as_they_are_printed(raw: Path, capsys: Capsys) -> None:
    exact, details = (data_of(capsys, "counters", page)["rows"] for page in (raw, DETAILS))
    for one, other in zip(exact, details, strict=True):
        assert (one["kernel"], one["grid"], one["block"]) == (other["kernel"], other["grid"], other["block"])
        assert one["registers"] == other["registers"]
        for name in ("compute_share", "memory_share", "dram_share", "l1_hit_rate", "l2_hit_rate", "occupancy",
                     "theoretical_occupancy"):  # fmt: skip
            assert other[name] == pytest.approx(one[name], abs=5.1e-5), name
        assert other["shared_bytes"] == pytest.approx(one["shared_bytes"], abs=5.1)


def test_the_table_says_what_was_not_counted(raw: Path, capsys: Capsys) -> None:
    code, out, _ = run("counters", DETAILS, capsys=capsys)
    assert code == 0
    assert "No reasons of stalls were counted" in out
    assert "Warps Spend" not in out
    _, out, _ = run("counters", raw, "--match", "add", "--top", "1", capsys=capsys)
    assert "long_scoreboard 71.2 %" in " ".join(out.split())
    assert "1 of 15 launches shown." in out


def test_a_share_above_all_there_is_has_a_remark(raw: Path, tmp_path: Path, capsys: Capsys) -> None:
    most = max(launch["lts__t_sector_hit_rate.pct"] for launch in printed())
    assert 100.05 < most < 101  # so the real page prints it
    _, out, _ = run("counters", raw, capsys=capsys)
    assert f"L2 Hits of up to {most:.1f} %: more than there is." in out
    _, out, _ = run("counters", raw, "--match", "add|softmax", capsys=capsys)
    assert "more than there is" not in out
    path = tmp_path / "ncu.csv"
    metrics = "sm__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_sector_hit_rate.pct"
    path.write_text(f'{HEAD},{metrics}\n{"," * 12}\n{ROW.format(0, "k")},"120.04","100.04"\n')
    _, out, _ = run("counters", path, capsys=capsys)
    assert "Compute of up to 120.0 %: more than there is." in out


@pytest.mark.parametrize(
    ("metrics", "values", "expected"),
    [
        (
            "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio,smsp__pcsamp_warps_issue_stalled_drain",
            '"0.5","7"',
            [("wait", 1.0)],
        ),
        (
            "smsp__average_warp_latency_issue_stalled_wait.ratio,smsp__average_warp_latency_issue_stalled_drain.ratio",
            '"1.5","0.5"',
            [("wait", 0.75), ("drain", 0.25)],
        ),
        ("smsp__pcsamp_warps_issue_stalled_wait,smsp__pcsamp_warps_issue_stalled_wait_not_issued", '"0","0"', None),
    ],
)
def test_cycles_tell_more_than_samples(
    tmp_path: Path, capsys: Capsys, metrics: str, values: str, expected: list[tuple[str, float]] | None
) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(f"{HEAD},{metrics}\n{',' * 12}\n{ROW.format(0, 'k')},{values}\n")
    [row] = data_of(capsys, "counters", path)["rows"]
    found = row["reasons"] and [(each["reason"], each["share"]) for each in row["reasons"]]
    assert found == expected


def test_kernels_have_what_was_counted_of_them(tmp_path: Path, raw: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, PROGRAM)
    data = data_of(capsys, "kernels", trace, "--counters", raw)
    alone = data_of(capsys, "kernels", trace)
    assert {name: data[name] for name in alone if name != "losses"} == {
        name: alone[name] for name in alone if name != "losses"
    }
    rows = {row["kernel"]: row for row in data["counters"]["rows"]}
    counted = printed(GEMM)
    assert (rows[GEMM]["launches"], rows[GEMM]["counted_launches"]) == (3, 3)
    bytes_of_one = [1e6 * (each["dram__bytes_read.sum"] + each["dram__bytes_write.sum"]) for each in counted]
    assert rows[GEMM]["measured_dram_bytes"] == pytest.approx(sum(bytes_of_one) / len(bytes_of_one))
    each = [reasons_of(launch) for launch in counted]
    expected = {name: sum(one.get(name, 0) for one in each) / len(each) for name in set().union(*each)}
    assert {one["reason"]: one["share"] for one in rows[GEMM]["reasons"]} == pytest.approx(expected)
    assert "some other kernel" in {row["kernel"] for row in data["counters"]["unjoined"]}
    assert (
        data["counters"]["joined_ns"] + sum(row["total_ns"] for row in data["counters"]["unjoined"])
        == (data["total_ns"])
    )


def test_the_option_is_called_ncu_too(tmp_path: Path, raw: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, op("aten::_softmax", 1000, [[4096, 4096], [], []], ["", "-1", "False"], ROWS))
    for name in ("kernels", "roofline"):
        code, out, _ = run(name, trace, "--ncu", raw, "--full", capsys=capsys)
        assert code == 0
        assert "not_selected" in out


def test_a_page_has_what_was_counted_next_to_the_kernels(tmp_path: Path, raw: Path, capsys: Capsys) -> None:
    trace = written(tmp_path, PROGRAM)
    code, out, _ = run("report", trace, "--counters", raw, "-o", "-", "--to", "markdown", capsys=capsys)
    assert code == 0
    _, table, _ = run("kernels", trace, "--counters", raw, "--markdown", capsys=capsys)
    counted = [line for line in table.splitlines() if "barrier 33" in line]
    assert len(counted) == 1
    assert "barrier 33" in out
    code, _, err = run("report", trace, trace, "--counters", raw, capsys=capsys)
    assert (code, "about one run" in err) == (2, True)


@pytest.mark.parametrize("more", [["--by", "family"], ["--memory"], ["--roofline"]])
def test_counters_fit_the_table_by_name_alone(tmp_path: Path, raw: Path, capsys: Capsys, more: list[str]) -> None:
    code, _, err = run("kernels", written(tmp_path, PROGRAM), "--counters", raw, *more, capsys=capsys)
    assert code == 2
    assert "mutually exclusive" in err


def test_sums_without_launches_have_no_counters(raw: Path, capsys: Capsys) -> None:
    code, _, err = run("kernels", raw, "--counters", raw, capsys=capsys)
    assert code == 3
    assert "expected single launches for the selection by counters" in err
