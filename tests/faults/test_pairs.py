"""The synthetic pairs: valid tables, the same for the same seed, with the fault that was asked for and no other."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.faults.case import HARDWARE_FAULTS, Case
from tests.faults.pairs import make_pair
from tests.faults.workloads import ACTIVATION, FUSED, GEMM, NEW_GEMM, NORM
from tests.traces import rows

from inferometer import Trace
from inferometer.trace.tables import TABLES

RECORDED = ("function_times", "function_metrics", "counters", "steps")
SEED = 20251121
EXPECTED: list[tuple[str, str, str, float, float]] = [  # at medium severity: fault, metric, how, least, most
    ("cpu_clock", "cpu_frequency", "ratio", 0.51, 0.52),
    ("cpu_contention", "host_cpu_usage", "difference", 38, 50),
    ("gpu_clock", "gpu_frequency", "candidate", 800, 800),
    ("gpu_contention", "gpu_usage", "difference", 40, 60),
    ("gpu_memory", "gpu_mem_used", "candidate", 93.9, 94.1),
    ("nvlink_traffic", "gpu_link_transmit", "candidate", 125e9, 145e9),
    ("pcie_traffic", "gpu_pcie_transmit", "candidate", 14e9, 18e9),
    ("network", "net_rx_rate", "candidate", 1.4e9, 1.7e9),
    ("disk", "disk_write_rate", "candidate", 1.3e9, 1.7e9),
    ("memory_pressure", "host_mem_usage", "candidate", 87.9, 88.1),
    ("thermal", "gpu_temperature", "candidate", 84, 88),
]
SLOWED = {  # class of functions, and how much slower a call gets at medium severity
    "cpu_clock": ("oncpu", 1.86),
    "cpu_contention": ("runq", 4.0),
    "gpu_clock": ("gpu_compute", 1.34),
    "gpu_contention": ("gpu_compute", 1.6),
    "gpu_memory": ("cpu_os_syscall_mem", 3.0),
    "nvlink_traffic": ("gpu_comm", 1.7),
    "pcie_traffic": ("gpu_memcpy_d2h", 2.0),
    "disk": ("disk_read_and_write", 2.2),
    "memory_pressure": ("cpu_os_syscall_mem", 3.0),
    "thermal": ("gpu_compute", 1.12),
}


@cache
def pair(*faults: str, **fields: Any) -> tuple[Trace, Trace]:
    defaults: dict[str, Any] = {"cycles": (30, 30), "ticks": (20, 20), "extended": True}
    processes = 2 if "nvlink_traffic" in faults else 1
    return make_pair(Case("pair", faults, processes=processes, **(defaults | fields)), SEED)


def middle(trace: Trace, metric: str) -> float:
    """The median: of the functions' metric where there is one (device-resolved), else of the largest sample a tick."""
    of_functions = [mu for name, mu in rows(trace, "function_metrics", "metric", "mu") if name == metric]
    samples = trace.counters.filter(pl.col("metric") == metric).group_by("time_ns").agg(pl.col("value").max())
    return float(np.median(of_functions or samples.collect()["value"].to_list()))


def call_ns(trace: Trace, cls: str) -> float:
    """Time of one call, summed over functions of a class: for each the least rank's median over cycles."""
    times = trace.function_times.filter(pl.col("class") == cls).collect()
    call = (pl.col("dur_ns") / pl.col("calls")).median()
    ranks = times.group_by("function", "process").agg(call.alias("call"), pl.col("calls").median())
    return float(ranks.group_by("function").agg((pl.col("call") * pl.col("calls")).min()).sum()["call"].item())


@pytest.mark.parametrize("fields", [{}, {"processes": 2, "layer_anchor": True, "cycles": (8, 2)}, {"tenants": True}])
def test_tables_are_as_declared_and_whole(fields: dict[str, Any]) -> None:
    for trace in make_pair(Case("valid", ("cpu_clock",), **fields), SEED):
        assert not list(trace.losses)
        for name in RECORDED:
            frame = trace.tables[name].collect()
            assert frame.height
            assert frame.schema == TABLES[name].schema
            never_null = [c.name for c in TABLES[name].columns if not c.null]
            assert frame.select(never_null).null_count().sum_horizontal().item() == 0


def test_the_same_seed_gives_the_same_pair_and_another_does_not() -> None:
    case = Case("same", ("disk",), tenants=True, processes=2)
    for table in RECORDED:
        first, again, other = (
            [trace.tables[table].collect() for trace in make_pair(case, seed)] for seed in (SEED, SEED, SEED + 1)
        )
        assert all(a.equals(b) for a, b in zip(first, again, strict=True))
        assert not any(a.equals(b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(("fault", "metric", "how", "least", "most"), EXPECTED)
def test_the_counter_of_a_fault_moves_as_designed(fault: str, metric: str, how: str, least: float, most: float) -> None:
    base, candidate = (middle(trace, metric) for trace in pair(fault))
    found = {"ratio": candidate / base if base else 0, "difference": candidate - base, "candidate": candidate}[how]
    assert least <= found <= most
    same = [middle(trace, metric) for trace in pair()]
    assert abs(same[1] - same[0]) < 0.5 * abs(candidate - base)


@pytest.mark.parametrize("fault", SLOWED)
def test_the_calls_of_a_fault_slow_down_as_designed(fault: str) -> None:
    cls, factor = SLOWED[fault]
    base, candidate = (call_ns(trace, cls) for trace in pair(fault, workload="gpu_bound", cycles=(80, 80)))
    assert candidate / base == pytest.approx(factor, rel=0.1)


def test_a_null_changes_no_class_of_functions() -> None:
    base, candidate = pair(tenants=True, workload="gpu_bound", cycles=(80, 80))
    for cls in ("oncpu", "gpu_compute", "gpu_memcpy_d2h"):
        assert call_ns(candidate, cls) / call_ns(base, cls) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("fault", HARDWARE_FAULTS)
def test_a_missing_cause_is_missing_in_both_runs(fault: str) -> None:
    metrics = {metric for name, metric, *_ in EXPECTED if name == fault}
    for trace in pair(fault, cause_recorded=False):
        assert not metrics.intersection(rows(trace, "counters", "metric"))
        assert not metrics.intersection(rows(trace, "function_metrics", "metric"))


def test_a_lower_cpu_clock_makes_the_step_longer_and_the_gpu_idle() -> None:
    base, candidate = pair("cpu_clock", severity="high")
    step = [np.median(rows(trace, "steps", "dur_ns")) for trace in (base, candidate)]
    assert 3.3 < step[1] / step[0] < 3.9
    assert middle(candidate, "process_gpu_usage") < 0.5 * middle(base, "process_gpu_usage")


def test_a_lower_gpu_clock_leaves_a_launch_bound_step_alone() -> None:
    base, candidate = pair("gpu_clock", severity="high")
    step = [np.median(rows(trace, "steps", "dur_ns")) for trace in (base, candidate)]
    assert step[1] / step[0] == pytest.approx(1, abs=0.06)
    assert middle(candidate, "process_gpu_usage") > 2 * middle(base, "process_gpu_usage")


def test_heat_throttles_the_clock_and_a_locked_clock_cools() -> None:
    warm = pair("thermal", severity="high", workload="gpu_bound")
    assert middle(warm[1], "gpu_frequency") < 0.7 * middle(warm[0], "gpu_frequency")
    cool = pair("gpu_clock", severity="high", workload="gpu_bound")
    assert middle(cool[1], "gpu_temperature") < middle(cool[0], "gpu_temperature")


def test_which_rank_waits_in_the_collective_flips_between_pairs() -> None:
    leaders = set()
    for seed in range(8):
        base, _ = make_pair(Case("wait", processes=2, cycles=(12, 3)), seed)
        times = base.function_times.filter(pl.col("class") == "gpu_comm").collect()
        waits = times.group_by("process").agg(pl.col("dur_ns").median()).sort("process")["dur_ns"].to_list()
        assert max(waits) > 3 * min(waits)
        leaders.add(waits.index(max(waits)))
    assert leaders == {0, 1}


def test_pooled_samples_hide_their_gpu_and_resolved_ones_name_it() -> None:
    pooled, resolved = (
        pair(pooled=flag)[0].counters.filter(metric="gpu_frequency").collect() for flag in (True, False)
    )
    assert pooled["device"].null_count() == pooled.height == resolved.height == 8 * 20
    assert set(resolved["device"]) == {f"gpu:{i}" for i in range(8)}
    assert pooled["time_ns"].n_unique() == 8 * 20, "each GPU is read at a moment of its own"


def test_layer_cycles_hold_the_same_work_as_steps() -> None:
    base, candidate = make_pair(Case("layers", layer_anchor=True, cycles=(10, 4)), SEED)
    assert candidate.steps.collect().height == 4 * 64
    for name in ("oncpu", GEMM):
        whole = base.function_times.filter(pl.col("function") == name, pl.col("cycle") == 5).collect()["calls"].item()
        steps = (pl.col("cycle") > 64) & (pl.col("cycle") <= 128)
        layers = candidate.function_times.filter(pl.col("function") == name, steps).collect()["calls"].sum()
        assert layers == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize(
    ("recorded", "empty"),
    [
        ("counters", {"function_times", "function_metrics", "steps"}),
        ("functions", {"function_metrics", "counters"}),
        ("no_counters", {"counters"}),
    ],
)
def test_less_may_be_recorded(recorded: str, empty: set[str]) -> None:
    for trace in pair("cpu_clock", recorded=recorded):
        assert {name for name, count in trace.count_rows().items() if not count} == empty


def test_software_faults_change_kernels_only() -> None:
    names = {fault: [set(rows(t, "function_times", "function")) for t in pair(fault)] for fault in ("replaced_kernel", "fused_kernel", "slower_kernel")}  # noqa: E501 # fmt: skip
    assert names["replaced_kernel"][0] ^ names["replaced_kernel"][1] == {GEMM, NEW_GEMM}
    assert names["fused_kernel"][0] ^ names["fused_kernel"][1] == {NORM, ACTIVATION, FUSED}
    assert names["slower_kernel"][0] == names["slower_kernel"][1]


def test_a_fault_of_one_gpu_leaves_the_other_alone() -> None:
    _, candidate = make_pair(Case("one", ("gpu_clock",), processes=2, one_gpu=True, workload="gpu_bound"), SEED)
    clocks = candidate.function_metrics.filter(pl.col("metric") == "gpu_frequency").collect()
    assert sorted(clocks.group_by("device").agg(pl.col("mu").median())["mu"].to_list()) == [800.0, 1410.0]


def test_a_swapped_pair_is_the_same_pair_backwards() -> None:
    case = Case("swap", ("disk",))
    forwards, backwards = make_pair(case, SEED), make_pair(case.but(swapped=True), SEED)
    assert forwards[0].counters.collect().equals(backwards[1].counters.collect())
