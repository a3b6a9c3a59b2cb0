"""Whose a sample of pooled GPUs is: by the memory that the program holds, or as the only GPU that works."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.traces import trace_of

import inferometer
from inferometer.analyses.compare.causes.counters import OWN, find_entities
from inferometer.analyses.compare.causes.own_gpu import own_sample_times

SECOND, GIB = 10**9, 1 << 30


def samples(
    metric: str, ticks: Sequence[Sequence[float]], *, unit: str = "%", late_ns: int = 0
) -> list[dict[str, Any]]:
    """One row per tick and GPU; a GPU is read 1 ms after the one before, by `late_ns` later in this metric."""
    return [
        {"metric": metric, "unit": unit, "time_ns": tick * SECOND + place * 1_000_000 + late_ns, "value": float(value)}
        for tick, values in enumerate(ticks)
        for place, value in enumerate(values)
    ]


def memory(ticks: Sequence[Sequence[float]], held_gib: Sequence[float]) -> list[dict[str, Any]]:
    """What GPUs have in use, and what each process of the program holds, in GiB."""
    used = samples("gpu_mem_used", [[value * GIB for value in tick] for tick in ticks], unit="bytes")
    held = [
        {"metric": "process_gpu_mem_usage", "unit": "bytes", "process": process, "time_ns": 5, "value": value * GIB}
        for process, value in enumerate(held_gib)
    ]
    return [*used, *held]


def times(rows: Sequence[dict[str, Any]]) -> list[int]:
    return sorted(own_sample_times(trace_of(counters=rows)))


def at(tick: int, place: int) -> int:
    return tick * SECOND + place * 1_000_000


def test_the_gpu_with_as_much_memory_as_the_program_holds_is_its_own() -> None:
    """The order of GPUs changes from tick to tick, as in published recordings."""
    rows = memory([[1, 70.5, 40], [70.5, 40, 1], [40, 1, 70.5]], [70])
    assert times(rows) == [at(0, 1), at(1, 0), at(2, 2)]


def test_of_two_processes_both_gpus_are_the_programs() -> None:
    assert times(memory([[30.5, 1, 20.5]] * 3, [20, 30])) == [at(tick, place) for tick in range(3) for place in (0, 2)]


def test_the_next_gpu_may_be_258_mib_off() -> None:
    """What an idle GPU has in use comes on top: 71 GiB and little more is meant, not 70.75."""
    assert times(memory([[70.75, 71.01, 1]] * 3, [70])) == [at(tick, 1) for tick in range(3)]


def test_two_gpus_that_fit_one_process_say_nothing() -> None:
    assert times(memory([[70.5, 70.7, 1]] * 3, [70])) == []


def test_a_gpu_with_another_tenants_memory_on_top_is_not_recognised() -> None:
    assert times(memory([[75, 1]] * 3, [70])) == []


@pytest.mark.parametrize(
    ("uses", "busy", "expected"),
    [
        (30.0, [[0, 40], [40, 0], [0, 40]], [at(0, 1), at(1, 0), at(2, 1)]),
        (0.0, [[0, 40], [40, 0], [0, 40]], []),  # the program uses no GPU: it is another's
        (30.0, [[10, 40], [40, 0], [0, 40]], []),  # two work
        (30.0, [[0, 0], [0, 0], [0, 40]], []),  # none works most of the time
    ],
)
def test_the_only_gpu_that_works_is_the_programs(uses: float, busy: Any, expected: list[int]) -> None:
    used = {"metric": "process_gpu_usage", "unit": "%", "time_ns": 7, "value": uses}
    assert times([*samples("gpu_usage", busy), used]) == expected


def test_samples_of_one_moment_cannot_be_held_apart() -> None:
    rows = memory([[1, 70.5]] * 3, [70])
    assert times([row | {"time_ns": row["time_ns"] // SECOND * SECOND} for row in rows]) == []


def test_other_metrics_of_that_moment_are_of_that_gpu_and_of_other_moments_unknown() -> None:
    clocks = [[210, 1410], [1410, 210], [210, 1410]]
    rows = memory([[1, 70.5], [70.5, 1], [1, 70.5]], [70])
    rows += samples("gpu_frequency", clocks, unit="MHz")
    rows += samples("gpu_pcie_transmit", clocks, unit="B/s", late_ns=100)
    own = {
        entity.metric: entity.values.tolist()
        for entity in find_entities(trace_of(counters=rows))
        if entity.device == OWN
    }
    assert own["gpu_frequency"] == [1410, 1410, 1410]
    assert "gpu_pcie_transmit" not in own


@pytest.mark.parametrize(
    ("run", "clock", "usage"),
    [
        ("vLLM/gpu_instability/normal", 1155.0, 12.0),
        ("vLLM/gpu_instability/abnormal", 210.0, 38.0),
        ("SGLang/cpu_frequency_reduction/normal", 1155.0, 6.0),
    ],
)
def test_the_own_gpu_of_a_published_recording_is_that_of_its_functions(
    shared_data: Path, run: str, clock: float, usage: float
) -> None:
    with inferometer.open(shared_data / "latencyprism" / run) as trace:
        entities = {entity.key: entity for entity in find_entities(trace)}
    own = entities["gpu_frequency", OWN].values
    (functions,) = (
        entity for key, entity in entities.items() if key[0] == "gpu_frequency" and key[1].startswith("gpu:")
    )
    assert np.median(own) == np.median(functions.values) == clock
    assert np.median(entities["gpu_usage", OWN].values) == pytest.approx(usage, abs=1)
