"""Series of a run from counters and from metrics by function: one value a tick, devices apart, others' load."""

from typing import Any

import numpy as np
import pytest
from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.compare.causes.counters import Entity, find_entities

SECOND = 10**9


def counter(metric: str, time_ns: int, value: float, **more: Any) -> dict[str, Any]:
    return {"metric": metric, "time_ns": time_ns, "value": value, "unit": "%", **more}


def found(trace: Trace) -> dict[tuple[str, str], Entity]:
    return {entity.key: entity for entity in find_entities(trace)}


def test_samples_of_cores_at_one_time_are_one_tick_with_their_median() -> None:
    rows = [
        counter("cpu_frequency", tick * SECOND + core, 3000.0 + 10 * core + tick)
        for tick in range(5)
        for core in range(3)
    ]
    entity = found(trace_of(counters=rows))["cpu_frequency", "host"]
    assert entity.values.tolist() == [3010, 3011, 3012, 3013, 3014]
    assert entity.times_ns is not None
    assert entity.times_ns.tolist() == [tick * SECOND for tick in range(5)]


def test_of_pooled_devices_the_most_harmful_value_counts() -> None:
    rows = [
        counter(metric, tick * SECOND + gpu * 1_000, [1400.0, 900.0][gpu] + tick)
        for metric in ("gpu_frequency", "gpu_pcie_receive")
        for tick in range(4)
        for gpu in range(2)
    ]
    entities = found(trace_of(counters=rows))
    assert entities["gpu_frequency", "gpus"].values.tolist() == [900, 901, 902, 903]
    assert entities["gpu_pcie_receive", "gpus"].values.tolist() == [1400, 1401, 1402, 1403]


def test_a_device_of_its_own_and_the_pool_are_both_kept() -> None:
    pooled = [counter("gpu_frequency", tick * SECOND + gpu, 210.0) for tick in range(4) for gpu in range(8)]
    own = [
        {"cycle": cycle, "function": function, "metric": "gpu_frequency", "device": "gpu:3", "mu": 1400.0 + cycle}
        for cycle in (1, 2, 3)
        for function in ("a", "b")
    ]
    entities = found(trace_of(counters=pooled, function_metrics=own))
    assert list(entities) == [("gpu_frequency", "gpu:3"), ("gpu_frequency", "gpus")]
    assert entities["gpu_frequency", "gpu:3"].values.tolist() == [1401, 1402, 1403]


def test_network_cards_add_up_and_ticks_that_lack_one_are_left_out() -> None:
    rows = [counter("net_rx_rate", tick * SECOND + card, 100.0 * (card + 1)) for tick in range(5) for card in range(2)]
    assert found(trace_of(counters=rows[:-1]))["net_rx_rate", "host"].values.tolist() == [300.0] * 4


def test_regular_samples_without_bursts_stay_single() -> None:
    rows = [counter("host_mem_usage", tick * 1_000, float(tick)) for tick in range(50)]
    assert found(trace_of(counters=rows))["host_mem_usage", "host"].values.tolist() == list(range(50))


def test_load_by_others_is_the_whole_less_the_processes_own() -> None:
    rows = [counter("host_cpu_usage", tick * SECOND, 50.0 + tick) for tick in range(4)]
    rows += [counter("process_cpu_usage", tick * SECOND, own, process=own) for tick in range(4) for own in (10, 15)]
    entities = found(trace_of(counters=rows))
    assert entities["others_cpu_usage", "host"].values.tolist() == [25, 26, 27, 28]


def test_percent_of_one_core_needs_the_number_of_cores() -> None:
    rows = [counter("host_cpu_usage", tick * SECOND, 50.0) for tick in range(4)]
    rows += [counter("process_cpu_usage", tick * SECOND, 400.0) | {"unit": "% of one core"} for tick in range(4)]
    assert ("others_cpu_usage", "host") not in found(trace_of(counters=rows))
    clocks = [counter("cpu_frequency", tick * SECOND, 3000.0) for tick in range(4) for _ in range(16)]
    assert found(trace_of(counters=rows + clocks))["others_cpu_usage", "host"].values.tolist() == [25] * 4


def test_disks_that_fill_up_show_what_is_written() -> None:
    rows = [
        counter("disk_used", tick * SECOND + disk, 1e9 * (disk + 1) + (5e6 * tick if disk else 0.0))
        for tick in range(5)
        for disk in range(3)
    ]
    growth = found(trace_of(counters=rows))["disk_growth", "host"]
    assert growth.values.tolist() == [10e6] * 4
    assert growth.times_ns is not None
    assert growth.times_ns.tolist() == [tick * SECOND for tick in range(1, 5)]
    assert growth.role.cause_class == "disk"


def test_the_run_queues_share_is_of_the_time_that_threads_could_run() -> None:
    rows = [
        {"cycle": cycle, "function": name, "class": name, "device": "host", "dur_ns": dur_ns}
        for cycle in (1, 2)
        for name, dur_ns in (("oncpu", 300), ("runq", 100))
    ]
    assert found(trace_of(function_times=rows))["runq_share", "host"].values.tolist() == [0.25, 0.25]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_samples_without_a_number_are_none(value: float | None) -> None:
    assert find_entities(trace_of(counters=[counter("gpu_frequency", 1, 1.0) | {"value": value}])) == []


def test_a_trace_without_counters_has_no_series() -> None:
    assert find_entities(trace_of()) == []


def test_values_are_floats() -> None:
    (entity,) = find_entities(trace_of(counters=[counter("disk_usage", 1, 5.0)]))
    assert entity.values.dtype == np.float64
