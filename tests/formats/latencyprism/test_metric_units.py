"""Means in the unit of their metric, and back to the digit."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.formats.latencyprism.metric_units import Scale, recorded_means, scale_of_mean, to_percent


@pytest.mark.parametrize(
    ("metric", "largest", "scale"),
    [
        ("host_cpu_usage", 7.5, Scale("%")),
        ("process_cpu_usage", 1.6, Scale("% of all cores")),
        ("cpu_frequency", 87.5, Scale("% of maximum")),
        ("cpu_frequency", 350_000.0, Scale("MHz", 100.0)),
        ("gpu_mem_used", 85.7, Scale("%")),
        ("gpu_mem_used", 7e12, Scale("bytes", 100.0)),
        ("gpu_frequency", 141_000.0, Scale("MHz", 100.0)),
        ("gpu_pcie_transmit", 4.8e8, Scale("B/s", 100.0)),
        ("gpu_link_receive", 0.0, Scale("B/s", 100.0)),
        ("gpu_sm_util", 0.8, Scale("fraction")),
        ("gpu_sm_util", 80.0, Scale("%")),
        ("net_rx_rate", 20_000.0, Scale("B/s")),
        ("process_gpu_mem_usage", 7e10, Scale("bytes")),
        ("tea_consumption", 3.0, Scale(None)),
    ],
)
def test_the_unit_is_told_by_the_name_and_where_it_is_not_by_the_size(
    metric: str, largest: float, scale: Scale
) -> None:
    assert scale_of_mean(metric, largest) == scale


def test_what_was_divided_comes_back_as_it_was_recorded() -> None:
    rows = pl.DataFrame(
        {
            "metric": ["gpu_frequency", "cpu_frequency", "cpu_frequency", "net_rx_rate", "tea", "gpu_mem_used"],
            "unit": ["MHz", "% of maximum", "MHz", "B/s", None, "bytes"],
            "mu": [1410.0, 87.5, 3500.0, 20.0, 3.0, None],
        }
    )
    found = recorded_means(rows)
    assert found[:5].tolist() == [141_000.0, 87.5, 350_000.0, 20.0, 3.0]
    assert np.isnan(found[5])


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1), st.integers(0, 12))
@examples(200)
def test_a_decimal_of_15_digits_survives_the_division(digits: list[int], decimals: int) -> None:
    recorded = np.array([float(f"{each}e-{decimals}") for each in digits])
    assert to_percent(recorded / 100).tolist() == recorded.tolist()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1))
@examples(200)
def test_any_other_number_comes_back_within_its_rounding(numbers: list[float]) -> None:
    recorded = np.array([each for each in numbers if 1e-300 < abs(each) < 1e300] or [0.0])
    assert np.allclose(to_percent(recorded / 100), recorded, rtol=1e-15, atol=0)
