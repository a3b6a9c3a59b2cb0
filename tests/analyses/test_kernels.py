"""The kernel table: exact statistics, shares of what was selected, and rows picked without changing them."""

import statistics
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

from inferometer.analyses.kernels import SORT_KEYS, SortKey, kernel_table
from inferometer.errors import InputError

LAUNCHES = [
    {"kernel": "gemm", "dur_ns": 300, "start_ns": 0},
    {"kernel": "gemm", "dur_ns": 500, "start_ns": 400},
    {"kernel": "norm", "dur_ns": 100, "start_ns": 1000},
    {"kernel": "norm", "dur_ns": 50, "start_ns": 1200},
    {"kernel": "norm", "dur_ns": 50, "start_ns": 1300},
    {"kernel": "Memcpy HtoD", "kind": "memcpy", "dur_ns": 1000, "start_ns": 2000},
    {"kernel": "Memset", "kind": "memset", "dur_ns": 10, "start_ns": 4000},
]
ROW = st.fixed_dictionaries(
    {
        "kernel": st.sampled_from(["a", "b", "_Z1cv", "c()"]),
        "kind": st.sampled_from(["kernel", "memcpy"]),
        "dur_ns": st.integers(0, 2**50),
        "start_ns": st.integers(0, 2**60),
    }
)


def names(**options: Any) -> list[str]:
    return kernel_table(trace_of(LAUNCHES), **options).frame["kernel"].to_list()


def test_statistics_are_those_of_the_launches() -> None:
    table = kernel_table(trace_of(LAUNCHES))
    assert table.frame.to_dicts() == [
        {
            "share": 0.8,
            "total_ns": 800,
            "count": 2,
            "mean_ns": 400.0,
            "median_ns": 400.0,
            "min_ns": 300,
            "max_ns": 500,
            "stddev_ns": pytest.approx(statistics.stdev([300, 500])),
            "kernel": "gemm",
        },
        {
            "share": 0.2,
            "total_ns": 200,
            "count": 3,
            "mean_ns": pytest.approx(200 / 3),
            "median_ns": 50.0,
            "min_ns": 50,
            "max_ns": 100,
            "stddev_ns": pytest.approx(statistics.stdev([100, 50, 50])),
            "kernel": "norm",
        },
    ]
    assert (table.total_ns, table.shown_ns, table.kernels) == (1000, 1000, 2)


def test_one_launch_deviates_by_nothing() -> None:
    assert kernel_table(trace_of([{"dur_ns": 7}])).frame["stddev_ns"].to_list() == [0.0]


def test_copies_and_sets_are_rows_on_request() -> None:
    table = kernel_table(trace_of(LAUNCHES), copies=True)
    assert table.frame.select("kind", "kernel", "total_ns").rows() == [
        ("memcpy", "Memcpy HtoD", 1000),
        ("kernel", "gemm", 800),
        ("kernel", "norm", 200),
        ("memset", "Memset", 10),
    ]
    assert table.total_ns == 2010


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("total", ["gemm", "norm"]),
        ("count", ["norm", "gemm"]),
        ("mean", ["gemm", "norm"]),
        ("median", ["gemm", "norm"]),
        ("min", ["gemm", "norm"]),
        ("max", ["gemm", "norm"]),
        ("stddev", ["gemm", "norm"]),
        ("name", ["gemm", "norm"]),
    ],
)
def test_rows_stand_as_asked(sort: SortKey, order: list[str]) -> None:
    assert names(sort=sort) == order
    assert sort in SORT_KEYS


def test_every_sort_key_orders_by_its_column() -> None:
    trace = trace_of([{"kernel": f"k{i % 5}", "dur_ns": (i * 7919) % 101} for i in range(60)])
    columns = dict(
        zip(SORT_KEYS, ("total_ns", "count", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"), strict=False)
    )
    for key, column in columns.items():
        values = kernel_table(trace, sort=key).frame[column].to_list()
        assert values == sorted(values, reverse=True)
    assert kernel_table(trace, sort="name").frame["kernel"].to_list() == [f"k{i}" for i in range(5)]


def test_equal_rows_stand_by_name() -> None:
    trace = trace_of([{"kernel": name, "dur_ns": 5} for name in "cab"])
    for sort in SORT_KEYS:
        assert kernel_table(trace, sort=sort).frame["kernel"].to_list() == ["a", "b", "c"]


def test_matching_and_the_top_pick_rows_and_change_none() -> None:
    trace = trace_of(LAUNCHES)
    whole = kernel_table(trace)
    for some in (
        kernel_table(trace, match="^nor"),
        kernel_table(trace, match="NORM|norm"),
        kernel_table(trace, sort="count", top=1),
    ):
        assert some.frame.equals(whole.frame.filter(pl.col("kernel") == "norm"))
        assert (some.total_ns, some.shown_ns, some.kernels) == (1000, 200, 2)
    assert whole.remarks() == []
    assert "1 of 2" in kernel_table(trace, top=1).remarks()[0]
    assert "80.0 %" in kernel_table(trace, top=1).remarks()[0]


def test_upper_and_lower_case_count_in_a_match() -> None:
    assert names(match="GEMM") == []
    assert names(match="(?i)GEMM") == ["gemm"]


@pytest.mark.parametrize("match", ["(", "*", "[a", "(?P<a>x)(?P<a>y)", "a{2,1}"])
def test_what_is_no_regular_expression_is_refused(match: str) -> None:
    with pytest.raises(InputError, match="match: want a regular expression, found"):
        kernel_table(trace_of(LAUNCHES), match=match)


def test_demangled_names_join_rows_and_raw_ones_do_not() -> None:
    trace = trace_of([{"kernel": "_Z1cv", "dur_ns": 1}, {"kernel": "c()", "dur_ns": 2}])
    assert kernel_table(trace).frame.select("kernel", "total_ns").rows() == [("c()", 3)]
    assert kernel_table(trace, raw=True).frame.select("kernel", "total_ns").rows() == [("c()", 2), ("_Z1cv", 1)]


def test_no_launches_are_an_empty_table_that_says_so() -> None:
    table = kernel_table(trace_of())
    assert (table.frame.height, table.total_ns, table.remarks()) == (0, 0, ["No device work in the selection."])
    assert table.as_json()["rows"] == []


def test_launches_of_no_time_have_no_share() -> None:
    table = kernel_table(trace_of([{"dur_ns": 0}]))
    assert table.frame.select("share", "total_ns", "count").rows() == [(0.0, 0, 1)]


def test_json_is_complete_and_named_as_promised() -> None:
    data = kernel_table(trace_of(LAUNCHES), top=1).as_json()
    assert list(data) == ["source", "total_ns", "shown_ns", "kernels", "rows", "losses"]
    assert data["rows"] == [
        {
            "kernel": "gemm",
            "share": 0.8,
            "total_ns": 800,
            "count": 2,
            "mean_ns": 400.0,
            "median_ns": 400.0,
            "min_ns": 300,
            "max_ns": 500,
            "stddev_ns": pytest.approx(141.4213562373095),
        }
    ]
    assert data["losses"] == {"scope": sorted(trace_of().scope), "events": {}, "entries": []}


def test_a_table_needs_only_the_launches() -> None:
    assert kernel_table(trace_of(LAUNCHES, tables={"launches"})).kernels == 2
    with pytest.raises(InputError, match="'launches' was not read"):
        kernel_table(trace_of(tables={"ops"}))


@given(st.lists(ROW, max_size=40), st.booleans(), st.booleans())
@examples(60)
def test_time_is_conserved_and_statistics_are_exact(launches: list[dict[str, Any]], copies: bool, raw: bool) -> None:
    table = kernel_table(trace_of(launches), copies=copies, raw=raw)
    selected = [each for each in launches if copies or each["kind"] == "kernel"]
    assert table.frame["total_ns"].sum() == table.total_ns == table.shown_ns == sum(each["dur_ns"] for each in selected)
    assert table.frame["count"].sum() == len(selected)
    if table.total_ns:
        assert table.frame["share"].sum() == pytest.approx(1)
    for row in table.frame.iter_rows(named=True):
        durations = [
            each["dur_ns"]
            for each in selected
            if row["kernel"] in ((each["kernel"],) if raw else (each["kernel"], each["kernel"].replace("_Z1cv", "c()")))
            and row.get("kind", "kernel") == each["kind"]
        ]
        assert row["total_ns"] == sum(durations)
        assert (row["min_ns"], row["max_ns"], row["count"]) == (min(durations), max(durations), len(durations))
        assert row["median_ns"] == pytest.approx(statistics.median(durations), rel=1e-15)
        assert row["mean_ns"] == pytest.approx(statistics.fmean(durations), rel=1e-15)
        deviation = statistics.stdev(durations) if len(durations) > 1 else 0.0
        assert row["stddev_ns"] == pytest.approx(deviation, rel=1e-9, abs=1e-3)
