"""The kernel table: exact statistics, shares of what was selected, and rows picked without changing them."""

import statistics
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer.analyses.labels import By
from inferometer.analyses.rows import SortKey
from inferometer.analyses.selection import Selection
from inferometer.analyses.tables.kernels import kernel_table
from inferometer.errors import InputError, UnknownName
from inferometer.reports.views.view import remarks_of, sections_of

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


def test_every_sort_key_orders_by_its_column() -> None:
    trace = trace_of([{"kernel": f"k{i % 5}", "dur_ns": (i * 7919) % 101} for i in range(60)])
    figures = ("total_ns", "count", "mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns")
    columns = dict(zip(get_args(SortKey), figures, strict=False))
    for key, column in columns.items():
        values = kernel_table(trace, sort=key).frame[column].to_list()
        assert values == sorted(values, reverse=True)
    assert kernel_table(trace, sort="name").frame["kernel"].to_list() == [f"k{i}" for i in range(5)]


def test_equal_rows_stand_by_name() -> None:
    trace = trace_of([{"kernel": name, "dur_ns": 5} for name in "cab"])
    for sort in get_args(SortKey):
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
    assert list(remarks_of(whole)) == []
    assert "1 of 2" in remarks_of(kernel_table(trace, top=1))[0]
    assert "80.0 %" in remarks_of(kernel_table(trace, top=1))[0]


def test_a_match_is_searched_in_the_whole_name_and_in_the_short_one() -> None:
    gemm, norm = "nvjet_tst_192x32_64x8_2x1_v_bz_TNT", "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdIiEEEEvT1_"
    rows = [{"start_ns": 0, "dur_ns": 5, "kind": "kernel", "kernel": name} for name in (gemm, norm)]
    for match, found in (
        ("gemm bf16", [gemm]),
        ("^nvjet_tst", [gemm]),
        ("ck rmsnorm2d", [norm]),
        ("Rmsnorm2d", [norm]),
    ):
        table = kernel_table(trace_of(rows), match=match, raw=True)
        assert table.frame["kernel"].to_list() == found
        assert table.as_json()["match"] == {"regex": match, "names": ["kernel", "short"]}
    by_library = kernel_table(trace_of(rows), match="gemm bf16", by="library")
    assert (by_library.frame.height, by_library.as_json()["match"]["names"]) == (0, ["library"])
    assert kernel_table(trace_of(rows)).as_json()["match"] is None


def test_upper_and_lower_case_count_in_a_match() -> None:
    assert names(match="GEMM") == []
    assert names(match="(?i)GEMM") == ["gemm"]


@pytest.mark.parametrize("match", ["(", "*", "[a", "(?P<a>x)(?P<a>y)", "a{2,1}"])
def test_what_is_no_regular_expression_is_refused(match: str) -> None:
    with pytest.raises(InputError, match="match: expected a regular expression, found"):
        kernel_table(trace_of(LAUNCHES), match=match)


def test_demangled_names_join_rows_and_raw_ones_do_not() -> None:
    trace = trace_of([{"kernel": "_Z1cv", "dur_ns": 1}, {"kernel": "c()", "dur_ns": 2}])
    assert kernel_table(trace).frame.select("kernel", "total_ns").rows() == [("c()", 3)]
    assert kernel_table(trace, raw=True).frame.select("kernel", "total_ns").rows() == [("c()", 2), ("_Z1cv", 1)]


def test_no_launches_are_an_empty_table_that_says_so() -> None:
    table = kernel_table(trace_of())
    assert (table.frame.height, table.total_ns, remarks_of(table)) == (0, 0, ("No kernels in the file.",))
    assert table.as_json()["rows"] == []


def test_launches_of_no_time_have_no_share() -> None:
    table = kernel_table(trace_of([{"dur_ns": 0}]))
    assert table.frame.select("share", "total_ns", "count").rows() == [(0.0, 0, 1)]


def test_json_is_complete_and_named_as_promised() -> None:
    data = kernel_table(trace_of(LAUNCHES), top=1).as_json()
    assert list(data) == [
        *("source", "basis", "by", "match", "whole_graphs", "section", "total_ns", "shown_ns", "kernels", "rows"),
        *("other_sections", "losses"),
    ]
    assert (data["basis"], data["section"], data["other_sections"]) == ("launches", None, [])
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
            "short": "gemm",
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


TOTALS = [
    {"section": 0, "kernel": "gemm", "count": 192, "total_ns": 3_000_000, "mean_ns": 15_625.0, "resolution_ns": 500.0},
    {"section": 0, "kernel": "norm", "count": 3, "total_ns": 1_000_000, "max_ns": 500_000, "resolution_ns": 500.0},
    {"section": 0, "kernel": "gemm", "count": 1, "total_ns": 1_000_000, "resolution_ns": 0.5},
    {"section": 2, "kernel": "_Z1cv", "count": 30, "total_ns": 42_368},
]


def test_sums_that_a_source_printed_are_taken_where_there_are_no_launches() -> None:
    table = kernel_table(trace_of(totals=TOTALS))
    assert (table.basis, table.section, table.kernels) == ("totals", 0, 3)
    assert (table.total_ns, table.shown_ns) == (5_000_000, 5_000_000)
    assert table.frame.select("kernel", "share", "count", "total_ns", "mean_ns", "max_ns", "resolution_ns").rows() == [
        ("gemm", pytest.approx(0.6), 192, 3_000_000, 15_625.0, None, 500.0),
        ("gemm", pytest.approx(0.2), 1, 1_000_000, None, None, 0.5),
        ("norm", pytest.approx(0.2), 3, 1_000_000, None, 500_000, 500.0),
    ]
    assert (
        remarks_of(table)[0]
        == "These are sums as the source printed them, to within 500 ns: it holds no single launches."
    )


def test_launches_are_taken_where_there_are_any() -> None:
    table = kernel_table(trace_of(LAUNCHES, totals=TOTALS))
    assert (table.basis, table.section, table.others, table.total_ns) == ("launches", None, (), 1000)


def test_sections_are_tables_of_their_own_and_never_added_up() -> None:
    table = kernel_table(trace_of(totals=TOTALS))
    (other,) = table.others
    assert [section.title for section in sections_of(table)] == ["Kernels, section 0", "Kernels, section 2"]
    assert (other.section, other.total_ns, other.frame["share"].to_list()) == (2, 42_368, [1.0])
    assert other.frame["kernel"].to_list() == ["c()"]
    assert kernel_table(trace_of(totals=TOTALS), raw=True).others[0].frame["kernel"].to_list() == ["_Z1cv"]
    assert "2 tables" in remarks_of(table)[1]
    data = table.as_json()
    assert [(each["section"], each["total_ns"], len(each["rows"])) for each in (data, *data["other_sections"])] == [
        (0, 5_000_000, 3),
        (2, 42_368, 1),
    ]


def test_one_section_alone_is_shown_on_request() -> None:
    table = kernel_table(trace_of(totals=TOTALS), section=2)
    assert (table.section, table.total_ns, table.others) == (2, 42_368, ())
    assert [section.title for section in sections_of(table)] == ["Kernels, section 2"]
    with pytest.raises(UnknownName, match='unknown section "1"\n  Known, nearest first: 0, 2'):
        kernel_table(trace_of(totals=TOTALS), section=1)
    with pytest.raises(UnknownName, match='unknown section "0"\n  No section is known here'):
        kernel_table(trace_of(LAUNCHES), section=0)


def test_matching_sorting_and_the_top_work_on_each_section() -> None:
    table = kernel_table(trace_of(totals=TOTALS), match="gemm|_Z|^c", sort="count", top=1)
    assert table.frame["count"].to_list() == [192]
    assert table.others[0].frame["kernel"].to_list() == ["c()"]
    assert remarks_of(table)[0] == "1 of 3 rows shown, 60.0 % of the kernel time."
    for key in get_args(SortKey):
        assert kernel_table(trace_of(totals=TOTALS), sort=key).kernels == 3


@pytest.mark.parametrize("missing", ["count", "total_ns", "kernel_only"])
def test_what_was_not_printed_is_null_and_breaks_nothing(missing: str) -> None:
    row = {"section": 0, "kernel": "k", "count": 3, "total_ns": 10}
    row = {"section": 0, "kernel": "k"} if missing == "kernel_only" else row | {missing: None}
    table = kernel_table(trace_of(totals=[row, row]))
    assert table.kernels == 2
    assert table.frame["share"].to_list() == ([0.5, 0.5] if missing == "count" else [None, None])
    assert remarks_of(table)
    assert table.as_json()["rows"][0]["kernel"] == "k"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"selection": Selection(device="0")}, "device"),
        ({"selection": Selection(stream=7)}, "stream"),
        ({"selection": Selection(between_ns=(0, 9))}, "between"),
        ({"copies": True}, "memory"),
    ],
)
def test_sums_cannot_be_selected_from(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"selection by {said}, found only sums by kernel"):
        kernel_table(trace_of(totals=TOTALS), **options)


def test_the_sections_of_one_rank_are_shown_on_request() -> None:
    trace = trace_of(totals=[row | {"rank": row["section"]} for row in TOTALS])
    table = kernel_table(trace, Selection(rank=2))
    assert (table.section, table.total_ns, table.others) == (2, 42_368, ())
    with pytest.raises(UnknownName, match='unknown rank "1"\n  Known, nearest first: 0, 2'):
        kernel_table(trace, Selection(rank=1))


def test_a_table_of_totals_needs_only_the_totals() -> None:
    assert kernel_table(trace_of(totals=TOTALS, tables={"totals"})).kernels == 3
    empty = kernel_table(trace_of(tables={"totals"}))
    assert (empty.basis, empty.kernels, empty.total_ns) == ("totals", 0, 0)
    assert empty.as_json()["rows"] == []


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "section": st.integers(0, 3),
                "kernel": st.sampled_from(["a", "b", "_Z1cv", "c()"]),
                "total_ns": st.none() | st.integers(0, 2**50),
                "count": st.none() | st.integers(0, 2**40),
            }
        ),
        min_size=1,
        max_size=30,
    )
)
@examples(60)
def test_every_section_keeps_its_rows_and_its_time(totals: list[dict[str, Any]]) -> None:
    table = kernel_table(trace_of(totals=totals))
    for part in (table, *table.others):
        mine = [row for row in totals if row["section"] == part.section]
        printed = [row["total_ns"] for row in mine if row["total_ns"] is not None]
        assert part.frame.height == part.kernels == len(mine)
        assert part.total_ns == part.shown_ns == sum(printed)
        assert sorted(part.frame["total_ns"].drop_nulls()) == sorted(printed)
        if part.total_ns:
            assert part.frame["share"].sum() == pytest.approx(1)
    assert sum(part.kernels for part in (table, *table.others)) == len(totals)


NVJET = "nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT"
SMALLER = "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT"


def test_rows_may_be_what_names_tell_with_exact_statistics_of_the_launches_joined() -> None:
    durations = {
        NVJET: (10, 30),
        SMALLER: (5,),
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)": (7,),
    }
    trace = trace_of([{"kernel": name, "dur_ns": dur} for name, durs in durations.items() for dur in durs])
    table = kernel_table(trace, by="family")
    assert table.frame.select("kernel", "count", "total_ns", "median_ns", "min_ns", "max_ns").rows() == [
        ("gemm", 3, 45, 10.0, 5, 30),
        ("collective", 1, 7, 7.0, 7, 7),
    ]
    assert table.frame["stddev_ns"].to_list() == [pytest.approx(13.228756555322953), 0.0]
    assert [row["family"] for row in table.as_json()["rows"]] == ["gemm", "collective"]
    assert kernel_table(trace, by="tile").frame["kernel"].to_list() == ["128x112x64", None, "64x8x64"]


@pytest.mark.parametrize("by", get_args(By))
def test_time_is_conserved_under_every_grouping(by: By) -> None:
    trace = inferometer.open(Path(__file__).parents[3] / "samples" / "decode.json.gz")
    table, names = kernel_table(trace, by=by), kernel_table(trace)
    assert table.total_ns == table.frame["total_ns"].sum() == names.total_ns
    assert table.frame["count"].sum() == names.frame["count"].sum()
    assert table.frame["share"].sum() == pytest.approx(1)


def test_sums_are_joined_within_their_section_and_tell_no_median() -> None:
    printed = {"total_ns": 100, "count": 2, "mean_ns": 50.0, "median_ns": 50.0, "min_ns": 40, "max_ns": 60}
    rows = [
        {"section": 0, "kernel": NVJET, **printed},
        {"section": 0, "kernel": SMALLER, **printed, "min_ns": 10},
        {"section": 1, "kernel": NVJET, **printed, "role": "qkv"},
    ]
    table = kernel_table(trace_of(totals=rows), by="library")
    assert table.frame.select("kernel", "total_ns", "count", "mean_ns", "median_ns", "min_ns").rows() == [
        ("cublas", 200, 4, 50.0, None, 10)
    ]
    assert [other.frame["total_ns"].sum() for other in table.others] == [100]
    assert kernel_table(trace_of(totals=rows), section=1, by="role").frame["kernel"].to_list() == ["qkv"]


def test_graphs_that_were_recorded_whole_are_said_and_not_taken_for_kernels() -> None:
    trace = trace_of([*LAUNCHES, {"kind": "graph", "kernel": "[CUDA graph 5]", "start_ns": 9_000, "dur_ns": 700}])
    table = kernel_table(trace)
    assert "[CUDA graph 5]" not in table.frame["kernel"]
    assert table.as_json()["whole_graphs"] == {"count": 1, "total_ns": 700}
    assert "1 graph launches (700 ns) were recorded whole" in " ".join(remarks_of(table))
    assert "[CUDA graph 5]" in kernel_table(trace, copies=True).frame["kernel"]


def test_names_that_become_equal_when_they_are_made_readable_are_one_row_with_an_exact_median() -> None:
    trace = trace_of([{"kernel": name, "dur_ns": dur} for name, dur in (("_Z4gemmv", 1), ("gemm()", 7), ("gemm()", 9))])
    [row] = kernel_table(trace).frame.to_dicts()
    assert (row["kernel"], row["count"], row["median_ns"], row["min_ns"]) == ("gemm()", 3, 7.0, 1)
    assert kernel_table(trace, raw=True).kernels == 2


def test_what_was_printed_step_by_step_is_added_up_and_stays_whole() -> None:
    printed = {"section": 0, "resolution_ns": 5.0, "layer": None, "role": None}
    rows = [
        {"step": 0, "kernel": "attention", "total_ns": 30},
        {"step": 0, "kernel": "matmul:o_proj:L1", "total_ns": 5, "role": "o_proj", "layer": "1"},
        {"step": 1, "kernel": "attention", "total_ns": 40},
        {"step": 1, "kernel": "matmul:o_proj:L2", "total_ns": 7, "role": "o_proj", "layer": "2"},
    ]
    trace = trace_of(totals=[printed | row for row in rows])
    table = kernel_table(trace)
    assert table.frame.select("kernel", "total_ns", "count", "resolution_ns").rows() == [
        ("attention", 70, None, 10.0),
        ("matmul:o_proj:L2", 7, None, 5.0),
        ("matmul:o_proj:L1", 5, None, 5.0),
    ]
    assert (table.total_ns, table.steps, table.others) == (82, 2, ())
    assert "for each of 2 steps, added up here" in " ".join(remarks_of(table))
    by_role = kernel_table(trace, by="role").frame
    assert by_role.select("kernel", "total_ns").rows() == [(None, 70), ("o_proj", 12)]
