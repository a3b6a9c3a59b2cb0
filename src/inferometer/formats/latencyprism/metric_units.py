"""What each metric is in, and how `mu_pct` of perf_data.csv gives it.

`mu_pct` is 100 times the mean divided by a norm, which the file doesn't hold: 100 for metrics that are percentages or
shares by their names (so the mean itself), the number of cores times 100 for `process_cpu_usage` (so percent of all
cores; percent of one can't be had without their number), else 1. Two metrics have a norm only where the recording
machine knew the maximum: `cpu_frequency` and `gpu_mem_used` are percent of it, or 100 times the clock or the bytes
under the same name. Their size decides: no percentage reaches 1000, no clock or memory in use is below 10 MHz or 10
bytes.
Units of host memory are known from the size of published values alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

_IS_SHARE = re.compile("usage|rate|util|occupancy")
_MOST_PERCENT = 1000.0
_MOST_FRACTION = 1.5
_MOST_DECIMALS = 12
_EXACT_INTEGERS = 2.0**53

_UNITS: Mapping[str, str] = {
    metric: unit
    for unit, metrics in {
        "%": (
            "host_cpu_usage gpu_usage process_gpu_usage container_gpu_usage host_mem_usage process_mem_usage "
            "container_mem_usage container_gpu_mem_usage process_gpu_mem_usage gpu_mem_usage disk_usage"
        ),
        "% of one core": "process_cpu_usage container_cpu_usage",
        "fraction": "gpu_sm_util gpu_sm_occupancy",
        "MHz": "cpu_frequency gpu_frequency gpu_sm_frequency gpu_mem_frequency",
        "B/s": "gpu_pcie_transmit gpu_pcie_receive gpu_link_transmit gpu_link_receive net_rx_rate net_tx_rate",
        "bytes": (
            "gpu_mem_used container_mem_used process_mem_rss process_mem_vms process_mem_swap disk_used disk_free"
        ),
        "KiB": "host_mem_available host_mem_free host_mem_cache host_mem_buffer",
    }.items()
    for metric in metrics.split()
}
_OF_A_MAXIMUM = {"cpu_frequency": "% of maximum", "gpu_mem_used": "%"}


@dataclass(frozen=True)
class Scale:
    """`recorded / divisor` is in `unit`; None where the metric is unknown."""

    unit: str | None
    divisor: float = 1.0


def unit_of_sample(metric: str, largest: float) -> str | None:
    """Unit of a raw sample; `largest` is the metric's largest magnitude in the file."""
    unit = _UNITS.get(metric)
    if unit == "%" and largest > _MOST_PERCENT:
        return "bytes"  # process_gpu_mem_usage is one, though its name says otherwise
    return "%" if unit == "fraction" and largest > _MOST_FRACTION else unit


def scale_of_mean(metric: str, largest: float) -> Scale:
    """What `mu_pct` and `sigma_pct` of the metric are in; `largest` as above, of `mu_pct`."""
    if metric in _OF_A_MAXIMUM and largest <= _MOST_PERCENT:
        return Scale(_OF_A_MAXIMUM[metric])
    if metric == "process_cpu_usage":
        return Scale("% of all cores")
    unit = unit_of_sample(metric, largest)
    return Scale(unit, _divisor(metric, unit))


def recorded_means(rows: pl.DataFrame) -> NDArray[np.float64]:
    """`mu_pct` as it stood in the file, of rows of function_metrics: the inverse of `scale_of_mean`. NaN for null."""
    kinds = rows.select("metric", "unit").unique(maintain_order=True)
    divided = [_divisor(metric, unit) != 1.0 for metric, unit in kinds.iter_rows()]
    is_divided = rows.select("metric", "unit").join(
        kinds.with_columns(pl.Series("divided", divided, dtype=pl.Boolean)),
        on=["metric", "unit"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["divided"]
    means = rows["mu"].to_numpy().copy()
    mask = is_divided.to_numpy()
    means[mask] = to_percent(means[mask])
    return means


def to_percent(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """A hundred times each, as it was before it was divided by 100: exactly, up to 12 decimals and 15 digits.

    Dividing and multiplying both round. The decimal with the fewest digits within their error is what was recorded.
    """
    near = shares * 100.0
    percent = near.copy()
    unsettled = np.isfinite(near) & (near != 0)
    for decimals in range(_MOST_DECIMALS + 1):
        power = 10.0**decimals
        with np.errstate(over="ignore"):
            digits = np.rint(near * power)
        fits = unsettled & (np.abs(digits) < _EXACT_INTEGERS)
        fits &= np.abs(digits / power - near) <= 2 * np.spacing(np.abs(near))
        percent[fits] = digits[fits] / power
        unsettled &= ~fits
        if not unsettled.any():
            break
    return percent


def _divisor(metric: str, unit: str | None) -> float:
    is_plain = unit is None or unit.startswith("%") or unit == "fraction" or _IS_SHARE.search(metric)
    return 1.0 if is_plain else 100.0
