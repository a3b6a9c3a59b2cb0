"""perf_data.csv: rows that repeat for each metric become functions, metrics and steps, once each."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.latencyprism_files import PERF_TITLES, perf_row, write_perf, write_run
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.latencyprism.metric_units import recorded_means, to_percent

Read = Callable[..., Trace]
TABLES = ("function_times", "function_metrics", "steps")


@pytest.fixture
def perf(read: Read) -> Callable[..., Trace]:
    """The trace of these rows, without the loss that the other file is missing."""

    def open_rows(*found: dict[str, str], titles: tuple[str, ...] = PERF_TITLES) -> Trace:
        return read(write_perf(found, titles), set(TABLES), name="perf_data.csv")

    return open_rows


def test_a_function_is_one_row_however_many_metrics_it_has(perf: Read) -> None:
    trace = perf(perf_row(metric_name="cpu_frequency", mu_pct="87.5"), perf_row(metric_name="host_cpu_usage"))
    assert rows(trace, "function_times") == [
        (1, 7, "oncpu", "oncpu", "host", 250_000, 3, 0.25, "Engine.step", 1_000_000, None)
    ]
    assert rows(trace, "function_metrics", "metric", "mu", "unit", "interpolation") == [
        ("cpu_frequency", 87.5, "% of maximum", "all"),
        ("host_cpu_usage", 5.25, "%", "all"),
    ]
    assert rows(trace, "steps", "step", "process", "start_ns", "dur_ns", "anchor", "source") == [
        (1, 7, 1763013921174589500, 1_000_000, "Engine.step", "recorded")
    ]
    assert counted(trace) == {"repeated_row": 2}


def test_rows_in_the_file_are_rows_and_dropped_rows_in_each_table(perf: Read) -> None:
    trace = perf(
        perf_row(),
        perf_row(metric_name="disk_usage"),
        perf_row(cycle=2, metric_name="N/A", mu_pct="", sigma_pct=""),
        perf_row(cycle=3, duration="much"),
        perf_row(cycle="three"),
    )
    for table in TABLES:
        n = trace.tables[table].select(pl.len()).collect().item()
        assert trace.losses.seen[table] == 5 == n + trace.losses.dropped(table)
    assert rows(trace, "function_times", "cycle") == [1, 2]
    assert rows(trace, "function_metrics", "cycle") == [1, 1, 3]


@pytest.mark.parametrize(
    ("written", "device"), [("Host", "host"), ("GPU 7", "gpu:7"), ("gpu:3", "gpu:3"), ("NIC12", "nic:12")]
)
def test_a_device_is_spelled_as_in_every_trace(written: str, device: str, perf: Read) -> None:
    assert rows(perf(perf_row(device=written)), "function_times", "device") == [device]


def test_a_row_without_a_metric_is_a_function_all_the_same(perf: Read) -> None:
    for metric in ("N/A", "", " "):
        trace = perf(perf_row(metric_name=metric, mu_pct="", sigma_pct=""))
        assert len(rows(trace, "function_times")) == 1
        assert rows(trace, "function_metrics") == []
        assert counted(trace) == {"without_metric": 1}


def test_a_metric_without_a_sample_is_null(perf: Read) -> None:
    trace = perf(perf_row(mu_pct="", sigma_pct=""))
    assert rows(trace, "function_metrics", "mu", "sigma") == [(None, None)]


def test_marks_of_interpolation_become_words(perf: Read) -> None:
    trace = perf(*(perf_row(cycle=i, interpolation_status=mark) for i, mark in enumerate((" ", "*", "**", "?", ""))))
    assert rows(trace, "function_metrics", "interpolation") == ["none", "some", "all", "?", None]


def test_rows_that_contradict_each_other_are_kept_and_counted(perf: Read) -> None:
    trace = perf(perf_row(duration="250"), perf_row(duration="251", metric_name="disk_usage"), perf_row(mu_pct="6"))
    assert rows(trace, "function_times", "dur_ns") == [250_000, 251_000]
    assert rows(trace, "function_metrics", "metric", "mu") == [
        ("host_cpu_usage", 5.25),
        ("disk_usage", 5.25),
        ("host_cpu_usage", 6.0),
    ]
    found = {loss.category: loss.count for loss in trace.losses if loss.name == "contradicting_rows"}
    assert found == {"function_times": 2, "function_metrics": 2}


def test_one_value_written_in_two_ways_is_one_row(perf: Read) -> None:
    trace = perf(perf_row(duration="250"), perf_row(duration="250.000", metric_name="disk_usage"))
    assert len(rows(trace, "function_times")) == 1
    assert trace.losses.dropped("function_times") == 1


def test_one_name_of_two_classes_is_two_functions(perf: Read) -> None:
    trace = perf(perf_row(func_type="gpu_memcpy_h2d"), perf_row(func_type="gpu_memcpy_d2h", duration="9"))
    assert len(rows(trace, "function_times")) == 2
    assert "contradicting_rows" not in counted(trace)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1763013921174589.5000", 1763013921174589500),
        ("0", 0),
        ("7.", 7_000),
        ("0.0005", 0),  # ties go to the even nanosecond
        ("0.0015", 2),
        ("0.00251", 3),
        ("1e3", 1_000_000),
        ("+2.5", 2_500),
        (" 3 ", 3_000),
    ],
)
def test_times_are_exact_decimals(text: str, ns: int, perf: Read) -> None:
    trace = perf(perf_row(duration=text, cycle_start_ts=text))
    assert rows(trace, "function_times", "dur_ns") == rows(trace, "steps", "start_ns") == [ns]


@pytest.mark.parametrize(
    ("title", "text", "table", "loss"),
    [
        ("duration", "", "function_times", "without_duration"),
        ("duration", "much", "function_times", "without_duration"),
        ("duration", "NaN", "function_times", "without_duration"),
        ("duration", "inf", "function_times", "without_duration"),
        ("duration", "-1", "function_times", "negative_duration"),
        ("duration", "1e30", "function_times", "time_out_of_range"),
        ("duration", "9999999999999999", "function_times", "time_out_of_range"),
        ("cycle", "first", "function_times", "unreadable_row"),
        ("cycle", "1.5", "function_metrics", "unreadable_row"),
        ("cycle", "99999999999999999999", "steps", "unreadable_row"),
        ("device", "", "function_times", "unreadable_row"),
        ("function_name", "", "function_metrics", "without_name"),
        ("cycle_start_ts", "", "steps", "without_timestamp"),
        ("anchor_dur_us", "", "steps", "without_duration"),
        ("anchor_dur_us", "-5", "steps", "negative_duration"),
    ],
)
def test_a_row_that_lacks_what_a_table_needs_is_dropped_from_it(
    title: str, text: str, table: str, loss: str, perf: Read
) -> None:
    trace = perf(perf_row(cycle=1), perf_row(**{"cycle": 2, title: text}))
    assert len(rows(trace, table)) == 1
    assert [each.name for each in trace.losses if each.category == table and each.dropped] == [loss]


@pytest.mark.parametrize(
    ("title", "text", "table", "column", "loss"),
    [
        ("pid", "main", "function_times", "process", "wrong_type"),
        ("pid", "7.5", "steps", "process", "wrong_type"),
        ("instances_count", "many", "function_times", "calls", "wrong_type"),
        ("beta_pct", "inf", "function_times", "beta", "not_finite"),
        ("beta_pct", "half", "function_times", "beta", "wrong_type"),
        ("mu_pct", "NaN", "function_metrics", "mu", "not_finite"),
        ("mu_pct", "-inf", "function_metrics", "mu", "not_finite"),
        ("sigma_pct", "x", "function_metrics", "sigma", "wrong_type"),
    ],
)
def test_what_is_no_number_is_null_and_counted(
    title: str, text: str, table: str, column: str, loss: str, perf: Read
) -> None:
    trace = perf(perf_row(**{title: text}))
    assert rows(trace, table, column) == [None]
    assert (loss, f"{table}.{column}") in {(each.name, each.category) for each in trace.losses}


def test_ids_written_as_decimals_are_whole(perf: Read) -> None:
    trace = perf(perf_row(pid="7.0", cycle="2.0", instances_count="+3"))
    assert rows(trace, "function_times", "cycle", "process", "calls") == [(2, 7, 3)]


def test_a_cycle_of_no_length_is_a_remark(perf: Read) -> None:
    trace = perf(perf_row(anchor_dur_us="0.0", beta_pct="inf"))
    assert rows(trace, "steps", "dur_ns") == [0]
    assert rows(trace, "function_times", "beta", "cycle_dur_ns") == [(None, 0)]
    assert counted(trace) == {"zero_length_cycle": 1, "not_finite": 1}


def test_a_hundred_processes_keep_their_own_cycles(perf: Read) -> None:
    trace = perf(*(perf_row(pid=pid, cycle=cycle) for pid in range(1000, 1100) for cycle in (1, 2)))
    assert len(rows(trace, "steps")) == len(rows(trace, "function_times")) == 200
    assert sorted(set(rows(trace, "steps", "process"))) == list(range(1000, 1100))
    assert counted(trace) == {}


def test_a_column_without_which_no_row_can_be_read_is_an_error(perf: Read) -> None:
    for title in ("cycle", "device", "duration"):
        with pytest.raises(FormatError, match=rf"perf_data\.csv: expected the columns .* found no {title}"):
            perf(perf_row(), titles=tuple(each for each in PERF_TITLES if each != title))


def test_any_other_column_that_is_missing_is_null_and_counted(perf: Read) -> None:
    for title in (
        "pid",
        "beta_pct",
        "func_type",
        "sigma_pct",
        "instances_count",
        "anchor_name",
        "interpolation_status",
    ):
        trace = perf(perf_row(), titles=tuple(each for each in PERF_TITLES if each != title))
        assert [len(rows(trace, table)) for table in TABLES] == [1, 1, 1]
        assert [loss.example for loss in trace.losses] == [f"{trace.facts.source}: {title}"]
    trace = perf(perf_row(), titles=("cycle", "function_name", "device", "duration", "beta_pct"))
    assert [len(rows(trace, table)) for table in TABLES] == [1, 0, 0]


def test_columns_in_another_order_and_unknown_ones_are_read_by_name(perf: Read) -> None:
    trace = perf(perf_row(node="a"), titles=("node", *reversed(PERF_TITLES)))
    assert rows(trace, "function_times", "function", "dur_ns") == [("oncpu", 250_000)]
    assert [(loss.name, loss.example) for loss in trace.losses] == [("unknown_column", f"{trace.facts.source}: node")]


def test_only_the_tables_asked_for_are_counted(read: Read) -> None:
    trace = read(write_perf([perf_row(beta_pct="x")]), {"steps"}, name="perf_data.csv")
    assert dict(trace.losses.seen) == {"steps": 1}
    assert counted(trace) == {}


def test_the_host_is_a_fact_where_the_file_names_it(perf: Read) -> None:
    assert perf(perf_row()).facts.hosts == ()
    assert perf(perf_row(hostname="node7")).facts.hosts == ("node7",)


def test_published_runs_lose_nothing_but_repetition(shared_data: Path) -> None:
    for folder in sorted((shared_data / "latencyprism").glob("*/*/*")):
        trace = inferometer.open(folder)
        assert set(counted(trace)) == {"repeated_row", "without_metric"}
        for table in (*TABLES, "counters"):
            n = trace.tables[table].select(pl.len()).collect().item()
            assert trace.losses.seen[table] == n + trace.losses.dropped(table)
        units = dict(rows(trace, "function_metrics", "metric", "unit"))
        assert units["gpu_frequency"] == "MHz"
        assert None not in units.values()
        assert None not in set(rows(trace, "counters", "unit"))


@given(st.lists(st.integers(-(10**9), 10**13), min_size=1, max_size=40))
@examples(60)
def test_shares_and_means_come_back_as_they_stood_in_the_file(digits: list[int]) -> None:
    recorded = [f"{each / 10**4:.4f}" for each in digits]
    written = [
        perf_row(cycle=i, beta_pct=text, mu_pct=text, metric_name="gpu_frequency") for i, text in enumerate(recorded)
    ]
    with tempfile.TemporaryDirectory() as folder:
        trace = inferometer.open(write_run(Path(folder), written))
        shares = trace.function_times.select("beta").collect()["beta"]
        assert [float(text) / 100 for text in recorded] == shares.to_list()
        assert to_percent(shares.to_numpy()).tolist() == [float(text) for text in recorded]
        assert recorded_means(trace.function_metrics.collect()).tolist() == [float(text) for text in recorded]


def test_a_folder_says_which_other_files_it_left(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [perf_row()])
    (folder / "rank0.json").write_text("{}")
    assert inferometer.open(folder).facts.notes == ("Other files in the folder were not read: rank0.json.",)
