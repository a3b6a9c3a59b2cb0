"""Two runs compared as a whole: real pairs, synthetic faults, and what must never be claimed."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.faults.grid import CASES
from tests.faults.pairs import make_pair
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.errors import InputError
from inferometer.hardware.known import require_device

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
KEYS = {
    *("verdict", "comparable", "domain", "causes", "contributions", "unexplained_ns", "calibration", "not_measured"),
    "losses",
}


def pair(shared_data: Path, name: str) -> tuple[Trace, Trace]:
    folder = shared_data / "latencyprism" / name
    return inferometer.open(folder / "normal"), inferometer.open(folder / "abnormal")


def made(name: str) -> tuple[Trace, Trace]:
    case = next(case for case in CASES if case.name == name)
    return make_pair(case, case.seed)


def part(trace: Trace, first: int, last: int) -> Trace:
    """The cycles from `first` to before `last`, and the counters of their time."""
    steps = trace.steps.filter(pl.col("step").is_between(first, last, closed="left")).collect()
    begin, end = steps["start_ns"].min(), steps.select(pl.col("start_ns") + pl.col("dur_ns")).max().item()
    tables = dict(trace.tables)
    tables["steps"] = steps.lazy()
    for table in ("function_times", "function_metrics"):
        tables[table] = trace.tables[table].filter(pl.col("cycle").is_between(first, last, closed="left"))
    tables["counters"] = trace.counters.filter(pl.col("time_ns").is_between(begin, end))
    return Trace(trace.facts, tables, trace.losses)


def whole(found: Comparison) -> int:
    return sum(line.delta_ns for line in found.changes.contributions if line.added) + found.changes.unexplained_ns


def test_a_layer_against_a_step_is_repaired_and_the_cpus_clock_is_named(shared_data: Path) -> None:
    found = compare(*pair(shared_data, "SGLang/cpu_frequency_reduction"))
    assert found.verdict == "cause named"
    assert (found.comparable.ok, found.comparable.repair is not None) == (False, True)
    assert found.comparable.step_ratio is not None
    assert 3.3 <= found.comparable.step_ratio <= 3.9
    assert found.domain == "host"
    first = found.causes[0]
    assert (first.metric, first.device, first.cause_class) == ("cpu_frequency", "host", "cpu_clock")
    assert whole(found) == found.changes.step_delta_ns


def test_the_clock_of_the_own_gpu_is_found_though_the_pool_hides_it(shared_data: Path) -> None:
    found = compare(*pair(shared_data, "vLLM/gpu_instability"))
    assert (found.verdict, found.domain) == ("cause named", "compute")
    assert (found.causes[0].device, found.causes[0].cause_class) == ("gpu:3", "gpu_clock")


@pytest.mark.parametrize("name", ["SGLang/cpu_frequency_reduction", "vLLM/gpu_instability"])
def test_the_same_pair_the_other_way_round_names_no_cause(shared_data: Path, name: str) -> None:
    base, candidate = pair(shared_data, name)
    assert compare(candidate, base).verdict in ("improvement", "no difference", "software change")


@pytest.mark.parametrize("name", ["SGLang/cpu_frequency_reduction", "vLLM/gpu_instability"])
@pytest.mark.parametrize("run", [0, 1])
def test_a_run_against_itself_and_its_halves_against_each_other_name_no_cause(
    shared_data: Path, name: str, run: int
) -> None:
    trace = pair(shared_data, name)[run]
    same = compare(trace, trace)
    assert (same.verdict, same.changes.step_delta_ns) == ("no difference", 0)
    cycles = trace.steps.select(pl.len()).collect().item()
    halves = [part(trace, 1, cycles // 2 + 1), part(trace, cycles // 2 + 1, cycles + 1)]
    for one, other in (halves, halves[::-1]):
        assert compare(one, other).verdict != "cause named"


def test_different_hardware_is_not_comparable_and_has_families_side_by_side(shared_data: Path) -> None:
    traces = [shared_data / "traces" / "kineto" / f"{device}_qwen1.5-0.5b.json.gz" for device in ("h100", "mi300")]
    found = compare(*map(inferometer.open, traces))
    assert (found.verdict, found.comparable.ok, found.comparable.repair) == ("not comparable", False, None)
    assert "H100 SXM against MI300X" in found.comparable.why
    data = found.as_json()
    assert data["causes"] == []
    families = {line["name"]: line for line in data["contributions"]}
    assert families["gemm"]["base_ns"] > 0
    assert families["gemm"]["candidate_ns"] > 0


def test_json_has_the_promised_shape() -> None:
    data = compare(
        inferometer.open(SAMPLES / "slow" / "normal"), inferometer.open(SAMPLES / "slow" / "abnormal")
    ).as_json()
    assert set(data) >= KEYS
    assert set(data["comparable"]) == {"ok", "why", "repair", "step_ratio", "step_ratio_interval"}
    wanted = {"metric", "device", "class", "role", "score", "base", "candidate", "unit", "p", "q"}
    assert set(data["causes"][0]) >= wanted
    line = {"name", "base_ns", "candidate_ns", "delta_ns", "share", "interval_ns", "kind"}
    assert set(data["contributions"][0]) >= line
    assert set(data["calibration"]) == {"false_alarm_rate", "halves"}
    assert [cause["score"] for cause in data["causes"]] == sorted((c["score"] for c in data["causes"]), reverse=True)


def test_the_bundled_pair_names_the_cpus_clock() -> None:
    found = compare(inferometer.open(SAMPLES / "slow" / "normal"), inferometer.open(SAMPLES / "slow" / "abnormal"))
    assert (found.verdict, found.causes[0].cause_class) == ("cause named", "cpu_clock")
    assert found.not_measured == ("cpu_quota", "thermal")


@pytest.mark.parametrize(
    "name",
    [
        "fault/cpu_contention/medium/as_published",
        "fault/gpu_contention/medium/small_tenants",
        "fault/gpu_memory/high/long_tenants",
        "fault/nvlink_traffic/medium/two_ranks",
        "fault/network/medium/as_published",
        "fault/thermal/medium/published_tenants",
        "resolved/gpu_clock",
        "counters_only/cpu_clock",
    ],
)
def test_a_fault_of_each_kind_is_named(name: str) -> None:
    known = [case.name for case in CASES]
    name = name if name in known else next(case for case in known if case.startswith(name.rsplit("/", 1)[0]))
    found = compare(*made(name))
    assert found.verdict == "cause named"
    assert found.causes[0].cause_class == name.split("/")[1]


@pytest.mark.parametrize(
    "name", ["software/replaced_kernel/high", "software/fused_kernel/high", "software/slower_kernel/high"]
)
def test_a_change_of_kernels_is_a_software_change(name: str) -> None:
    found = compare(*made(next(case.name for case in CASES if case.name.startswith(name))))
    assert found.verdict == "software change"
    assert whole(found) == found.changes.step_delta_ns


def test_a_named_device_gives_capacities() -> None:
    base, candidate = made(next(case.name for case in CASES if case.name.startswith("fault/pcie_traffic/high")))
    guessed, told = compare(base, candidate), compare(base, candidate, device=require_device("A100 SXM 80GB"))
    first = [next(c for c in found.causes if c.cause_class == "pcie_traffic") for found in (guessed, told)]
    assert (first[0].assumed is not None, first[1].assumed) == (True, None)


def test_further_normal_runs_calibrate() -> None:
    base, candidate = made(next(case.name for case in CASES if case.name.startswith("null/as_published")))
    assert len(compare(base, candidate, more=[candidate]).calibration.halves) == 6


def launches(*kernels: tuple[str, int]) -> Trace:
    """One launch after the other, of these names and times."""
    rows: list[dict[str, Any]] = []
    now = 0
    for kernel, dur_ns in kernels:
        rows.append({"kernel": kernel, "start_ns": now, "dur_ns": dur_ns})
        now += dur_ns + 10
    return trace_of(rows)


def test_a_run_with_nothing_to_compare_is_refused() -> None:
    with pytest.raises(InputError, match="expected function times, launches, sums by kernel or counters"):
        compare(launches(("a", 5)), trace_of())


def test_runs_with_one_kind_of_data_each_share_nothing() -> None:
    counters = [{"metric": "cpu_frequency", "time_ns": i * 10**9, "value": 3_000.0} for i in range(9)]
    found = compare(launches(("a", 5)), trace_of(counters=counters))
    assert found.verdict == "cause not measured"
    assert "Function times were not recorded in both runs" in found.judged.why


def test_different_programs_are_not_comparable() -> None:
    one = launches(*[(f"kernel_{i}", 1_000) for i in range(30)] * 5)
    other = launches(*[(f"something_{i * 7}_else", 3_000) for i in range(20)] * 9)
    assert compare(one, other).verdict in ("not comparable", "software change")


@pytest.mark.parametrize("dur_ns", [0, 1])
def test_a_single_launch_is_too_little(dur_ns: int) -> None:
    assert compare(launches(("a", dur_ns)), launches(("a", dur_ns))).verdict in ("too few samples", "no difference")
