"""counters_data.csv: a sample per row, with the process out of its name, and units."""

from collections.abc import Callable

import pytest
from tests.latencyprism_files import COUNTER_TITLES, sample_row, write_counters
from tests.traces import counted, rows

from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.latencyprism.samples import parse_name

Read = Callable[..., Trace]


@pytest.fixture
def samples(read: Read) -> Callable[..., Trace]:
    def open_rows(*found: dict[str, str], titles: tuple[str, ...] = COUNTER_TITLES) -> Trace:
        return read(write_counters(found, titles), {"counters"}, name="counters_data.csv")

    return open_rows


def test_a_sample_has_its_time_value_and_unit(samples: Read) -> None:
    trace = samples(sample_row("cpu_frequency", value="3500.5", hostname="node7"))
    assert rows(trace, "counters") == [("cpu_frequency", None, "node7", None, None, 1763013925014069500, 3500.5, "MHz")]


@pytest.mark.parametrize(
    ("name", "metric", "process"),
    [
        ("process_cpu_usage_805580", "process_cpu_usage", 805_580),
        ("process_cpu_usage_1.571875e+06", "process_cpu_usage", 1_571_875),
        ("process_mem_rss_1e+06", "process_mem_rss", 1_000_000),
        ("process_cpu_usage", "process_cpu_usage", None),
        ("process_cpu_usage_1.5", "process_cpu_usage_1.5", None),
        ("process_1e+99", "process_1e+99", None),
        ("container_cpu_usage", "container_cpu_usage", None),
        ("gpu_usage_7", "gpu_usage_7", None),
        ("my_process_cpu_7", "my_process_cpu_7", None),
    ],
)
def test_the_process_stands_at_the_end_of_a_name(name: str, metric: str, process: int | None, samples: Read) -> None:
    assert parse_name(name) == (metric, process)
    assert rows(samples(sample_row(name)), "counters", "metric", "process") == [(metric, process)]


def test_samples_of_cores_that_share_a_time_are_all_kept(samples: Read) -> None:
    trace = samples(*[sample_row("cpu_frequency", value="900")] * 64)
    assert len(rows(trace, "counters")) == 64
    assert counted(trace) == {}


def test_pooled_gpus_have_no_device(samples: Read) -> None:
    assert rows(samples(sample_row("gpu_usage")), "counters", "device") == [None]


@pytest.mark.parametrize(
    ("metric", "value", "unit"),
    [
        ("host_cpu_usage", "7", "%"),
        ("process_cpu_usage_7", "105", "% of one core"),
        ("container_cpu_usage", "250", "% of one core"),
        ("gpu_sm_util", "0.5", "fraction"),
        ("gpu_pcie_transmit", "5e8", "B/s"),
        ("net_rx_rate", "20148", "B/s"),
        ("gpu_mem_used", "7e10", "bytes"),
        ("process_gpu_mem_usage_7", "7e10", "bytes"),
        ("container_gpu_mem_usage", "85.7", "%"),
        ("host_mem_available", "1003600000", "KiB"),
        ("tea_consumption", "3", None),
    ],
)
def test_units_are_as_documented(metric: str, value: str, unit: str | None, samples: Read) -> None:
    assert rows(samples(sample_row(metric, value=value)), "counters", "unit") == [unit]


def test_a_metric_without_a_known_unit_is_said_once(samples: Read) -> None:
    trace = samples(*[sample_row("tea_consumption")] * 3, sample_row("rain"), sample_row("gpu_usage"))
    assert [(loss.name, loss.count, loss.example) for loss in trace.losses] == [("unknown_unit", 2, "tea_consumption")]


@pytest.mark.parametrize(
    ("title", "text", "loss"),
    [
        ("value", "much", "counter_without_value"),
        ("value", "", "counter_without_value"),
        ("timestamp", "", "without_timestamp"),
        ("timestamp", "now", "without_timestamp"),
        ("timestamp", "1e40", "time_out_of_range"),
        ("counter_name", "", "without_name"),
    ],
)
def test_a_sample_that_lacks_something_is_dropped(title: str, text: str, loss: str, samples: Read) -> None:
    trace = samples(sample_row("gpu_usage"), {**sample_row("gpu_usage"), title: text})
    assert len(rows(trace, "counters")) == 1
    assert counted(trace) == {loss: 1}
    assert trace.losses.seen["counters"] == 2


def test_infinity_is_a_sample_without_a_number(samples: Read) -> None:
    trace = samples(sample_row("gpu_usage", value="inf"), sample_row("gpu_usage", value="NaN"))
    assert rows(trace, "counters", "value") == [None, None]
    assert counted(trace) == {"not_finite": 2}


def test_a_missing_column_is_an_error_where_it_is_needed(samples: Read) -> None:
    with pytest.raises(FormatError, match="found no value"):
        samples(sample_row("gpu_usage"), titles=("counter_name", "timestamp"))
    trace = samples(sample_row("gpu_usage"), titles=("counter_name", "timestamp", "value"))
    assert len(rows(trace, "counters")) == 1
    assert counted(trace) == {"missing_column": 1}
