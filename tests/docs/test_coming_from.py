"""The numbers of HolisticTraceAnalysis on the page are those that it gave, and ours next to them are today's."""

import json
from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.analyses.timeline.gaps import CAUSES

ROOT = Path(__file__).resolve().parents[2]
RESULTS = json.loads((ROOT / "benchmarks/results/hta_times-2026-11-26.json").read_text("utf-8"))
PAGE = (ROOT / "docs/guide/coming-from.md").read_text("utf-8")
FILES = ("samples/decode.json.gz", "samples/h200/kineto_eager.json.gz")


def answers(file: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of HTA: with its rounding, and without."""
    rounded, exact = (run for run in RESULTS["runs"] if run["file"] == file)
    assert (rounded["rounded"], exact["rounded"]) == (True, False)
    return rounded, exact


def rows(file: str) -> list[str]:
    """The table's rows of a file, as they should be."""
    with inferometer.open(ROOT / file) as trace:
        (device,) = inferometer.find_timeline(trace).devices.to_dicts()
        causes = dict(inferometer.find_timeline(trace).causes.select("cause", "idle_ns").iter_rows())
        kernels_ns = inferometer.kernel_table(trace).total_ns
    rounded, exact = answers(file)
    late_ns = causes["host_late"] + causes["sync"]
    sums = [run["kernels"][0]["sum"] for run in (rounded, exact)]
    idle = [sum(row["idle_time"] for row in run["idle"]) for run in (rounded, exact)]
    waits = [{row["idle_category"]: row["idle_time"] for row in run["idle"]}["host_wait"] for run in (rounded, exact)]
    (temporal,) = exact["temporal"]
    name = file.rpartition("/")[2]
    return [
        f"| {name} | sum of kernels | {kernels_ns / 1e3:,.3f} | {sums[0]:,} | {sums[1]:,} |",
        f"| {name} | window | {device['window_ns'] / 1e3:,.3f} | fails | {temporal['kernel_time(us)']:,.3f} |",
        f"| {name} | compute | {device['compute_busy_ns'] / 1e3:,.3f} | fails | {temporal['compute_time(us)']:,.3f} |",
        f"| {name} | idle | {device['idle_ns'] / 1e3:,.3f} | fails | {temporal['idle_time(us)']:,.3f} |",
        f"| {name} | idle, by stream | – | {idle[0]:,.0f} | {idle[1]:,.2f} |",
        f"| {name} | host late and sync; host wait | {late_ns / 1e3:,.3f} | {waits[0]:,.0f} | {waits[1]:,.2f} |",
    ]


@pytest.mark.parametrize("file", FILES)
def test_the_table_is_what_both_say(file: str) -> None:
    for row in rows(file):
        assert row in PAGE


@pytest.mark.parametrize("file", FILES)
def test_without_its_rounding_hta_agrees_to_the_nanosecond_and_with_it_a_check_of_its_own_fails(file: str) -> None:
    rounded, exact = answers(file)
    assert rounded["temporal"] is None
    (temporal,) = exact["temporal"]
    with inferometer.open(ROOT / file) as trace:
        (device,) = inferometer.find_timeline(trace).devices.to_dicts()
    assert round(temporal["idle_time(us)"] * 1e3) == device["idle_ns"]
    assert round(temporal["compute_time(us)"] * 1e3) == device["compute_busy_ns"]
    assert round(temporal["kernel_time(us)"] * 1e3) == device["window_ns"]
    assert {row["idle_category"]: row["idle_time"] for row in exact["idle"]}["other"] == 0


@pytest.mark.parametrize("file", FILES)
def test_host_wait_is_of_gaps_whose_call_began_after_the_device_went_idle(file: str) -> None:
    with inferometer.open(ROOT / file) as trace:
        calls = {row["correlation_id"]: row["start_ns"] for row in trace.calls.collect().iter_rows(named=True)}
        launches = trace.launches.sort("start_ns").collect().to_dicts()
    wait_ns, idle_from_ns = 0, launches[0]["start_ns"]
    for launch in launches:
        if calls[launch["correlation_id"]] > idle_from_ns:
            wait_ns += max(0, launch["start_ns"] - idle_from_ns)
        idle_from_ns = max(idle_from_ns, launch["start_ns"] + launch["dur_ns"])
    (host_wait,) = (row["idle_time"] for row in answers(file)[1]["idle"] if row["idle_category"] == "host_wait")
    assert host_wait == pytest.approx(wait_ns / 1e3, abs=0.006)  # it rounds to 10 ns


def test_the_page_that_compares_tools_states_what_was_measured() -> None:
    page = " ".join((ROOT / "docs/guide/compared.md").read_text("utf-8").split())
    with inferometer.open(ROOT / FILES[0]) as trace:
        kernels_ns = inferometer.kernel_table(trace).total_ns
    below = 1 - answers(FILES[0])[0]["kernels"][0]["sum"] * 1e3 / kernels_ns
    assert f"kernels of a decode step is {below:.1%} too low".replace("%", " %") in page
    assert "| 2,576,346,000 | 2,673,392,684 | -3.63 % |" in (ROOT / "benchmarks/results/ingest.md").read_text("utf-8")
    assert "[a larger file](../../benchmarks/results/ingest.md) 3.6 %" in page
    assert "seven causes" in page
    assert len(CAUSES) == 7
