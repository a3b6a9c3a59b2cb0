"""Counters of our own recordings have the roles that they should in a comparison."""

import pytest

from inferometer.analyses.compare.causes.metric_roles import role_of_metric


@pytest.mark.parametrize(
    ("metric", "cause_class"),
    [
        ("cpu_limited_share", "cpu_quota"),
        ("cpu_stopped", "cpu_quota"),
        ("others_disk_write", "disk"),
        ("disk_read", "disk"),
        ("io_pressure", "disk"),
        ("io_pressure_full", "disk"),
        ("memory_pressure", "memory_pressure"),
        ("gpu_throttle_hw_thermal", "thermal"),
        ("gpu_throttle_sw_power_cap", None),
        ("cpu_pressure", None),
        ("process_cpu_usage", None),
    ],
)
def test_a_recorded_metric_is_a_cause_of_its_class_or_none(metric: str, cause_class: str | None) -> None:
    role = role_of_metric(metric)
    assert role.cause_class == cause_class
    assert (role.kind == "cause") == (cause_class is not None)
