"""Tables of call paths in every layout that people meet: the same rows, exact, where the file has them."""

from collections.abc import Callable

import pytest
from tests.traces import counted, rows, stored_facts

import inferometer
from inferometer import Trace
from inferometer.errors import FormatError
from inferometer.formats.base import known_formats
from inferometer.formats.path_table import FORMAT

Read = Callable[..., Trace]

RULED = """
|---------|--------------|-----------|-----------|----------|
| kernel  | kernel_path  | fast      | slow      | fast-slow|
|---------|--------------|-----------|-----------|----------|
| main    | main         |       2.5 |       3.0 |     -0.5 |
|---------|--------------|-----------|-----------|----------|
| softmax | main.softmax | 3.25e-05  |           |          |
|---------|--------------|-----------|-----------|----------|
| forward | main.forward | 1.000000001 | 1.5     | -0.499999999 |
|---------|--------------|-----------|-----------|----------|
"""
MARKDOWN = """
### Times

| kernel | kernel_path | fast | slow | difference |
|:---|---|---:|---:|---:|
| main | main | 2.5 | 3.0 | 0.5 |
| softmax | main.softmax | 3.25e-05 | | |
| forward | main.forward | 1.000000001 | 1.5 | -0.499999999 |
"""
CSV = """kernel,kernel_path,fast,slow,fast-slow
main,main,2.5,3.0,-0.5
softmax,main.softmax,3.25e-05,,
forward,main.forward,1.000000001,1.5,-0.499999999
"""
UNITS = """kernel;kernel_path;fast (ms);slow (us)
main;main;2500;3000000
softmax;main.softmax;3.25e-02;-
forward;main.forward;1000.000001;1.5 s
"""
LAYOUTS = {
    "ruled": RULED,
    "markdown": MARKDOWN,
    "csv": CSV,
    "tsv": CSV.replace(",", "\t"),
    "units": UNITS,
    "windows": RULED.replace("\n", "\r\n"),
}
HEAD = "| kernel | kernel_path | a | b | a-b |\n|---|---|---|---|---|\n"


def cells(trace: Trace) -> list[tuple[str, str, int | None]]:
    """Path, run and time of each row."""
    paths: dict[int, str] = {}
    for node, parent, name in rows(trace, "call_paths", "path_id", "parent_id", "name"):
        paths[node] = name if parent is None else f"{paths[parent]}.{name}"
    found = rows(trace, "path_totals", "path_id", "backend", "host_ns")
    return [(paths[node], arm, host_ns) for node, arm, host_ns in found]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows_column_by_column(layout: str, read: Read) -> None:
    trace = read(LAYOUTS[layout], name="table.txt")
    assert trace.facts.format == "path-table"
    assert cells(trace) == [
        ("main", "fast", 2_500_000_000),
        ("main.softmax", "fast", 32_500),
        ("main.forward", "fast", 1_000_000_001),
        ("main", "slow", 3_000_000_000),
        ("main.forward", "slow", 1_500_000_000),
    ]
    assert rows(trace, "path_totals", "order") == [0, 1, 2, 0, 2]
    assert rows(trace, "call_paths", "parent_id", "depth") == [(None, 0), (0, 1), (0, 1)]
    assert counted(trace) == {}
    assert trace.facts.engine_metrics == {"arms": ["fast", "slow"]}


def test_counts_and_other_times_are_not_told(read: Read) -> None:
    trace = read(CSV, name="table.csv")
    told = rows(trace, "path_totals", "calls", "device_busy_ns", "span_ns", "self_ns")
    assert set(told) == {(None, None, None, None)}
    assert trace.facts.notes[0].startswith("Times are means per call")


def test_digits_below_a_nanosecond_are_rounded_and_noted(read: Read) -> None:
    trace = read(HEAD + "| k | k | 3.3104419885907815e-05 | 1e-9 | |\n")
    assert cells(trace) == [("k", "a", 33_104), ("k", "b", 1)]
    assert "1 of 2 times have digits below a nanosecond and are rounded to one." in trace.facts.notes


def test_parents_without_a_row_are_made(read: Read) -> None:
    trace = read(HEAD + "| c | a.b.c | 1 | 2 | -1 |\n| d | a.b.d | 1 | 2 | -1 |\n")
    assert rows(trace, "call_paths", "name", "parent_id", "depth") == [
        ("a", None, 0),
        ("b", 0, 1),
        ("c", 1, 2),
        ("d", 1, 2),
    ]
    assert rows(trace, "path_totals", "path_id", "order") == [(2, 0), (3, 1), (2, 0), (3, 1)]


def test_the_column_kernel_tells_names_with_dots(read: Read) -> None:
    text = "| main | main | 4 | 4 | |\n| layers.3 | main.layers.3 | 2 | 2 | |\n| mlp | main.layers.3.mlp | 1 | 1 | |\n"
    assert rows(read(HEAD + text), "call_paths", "name", "parent_id") == [("main", None), ("layers.3", 0), ("mlp", 1)]


def test_names_may_be_any_text(read: Read) -> None:
    trace = read(HEAD + "| größe | wurzel.größe | 1 | 2 | -1 |\n| a\\|b | 注意.a\\|b | 1 | 2 | -1 |\n")
    assert [path for path, arm, _ in cells(trace) if arm == "a"] == ["wurzel.größe", "注意.a|b"]


@pytest.mark.parametrize(
    ("titles", "arms"),
    [
        (("only",), ["only"]),
        (("one", "two", "three", "one-two", "one-three"), ["one", "two", "three"]),
        (("same", "same"), ["same", "same (2)"]),
        (("calls", "torch", "speedup", "compile"), ["torch", "compile"]),
    ],
)
def test_any_number_of_runs(titles: tuple[str, ...], arms: list[str], read: Read) -> None:
    values = {"one-two": "0", "one-three": "0"}
    text = " | ".join(("kernel", "kernel_path", *titles)) + "\n"
    text += " | ".join(("k", "k", *(values.get(title, "1") for title in titles)))
    trace = read(f"{text} |\n".replace("\n", " |\n", 1))
    assert [arm for _, arm, _ in cells(trace)] == arms
    assert trace.losses.total("unknown_column") == len(set(titles) & {"calls", "speedup"})


def test_differences_that_the_times_do_not_make_are_counted(read: Read) -> None:
    rows_ = "| a | a | 3 | 1 | 2 |\n| b | a.b | 2.0 | 1.0 | 1.5 |\n| c | a.c | 2 | | 2 |\n| d | a.d | 2 | 1 | much |\n"
    trace = read(HEAD + rows_)
    assert [(loss.name, loss.count, loss.example) for loss in trace.losses] == [
        ("contradicting_rows", 2, "line 4: a-b is 1.5, the row makes 1,000,000,000 ns"),
        ("wrong_type", 1, "line 6: a-b is much, the row makes 1,000,000,000 ns"),
    ]
    assert len(cells(trace)) == 7


def test_a_difference_that_was_cut_or_rounded_is_no_contradiction(read: Read) -> None:
    cut = "| a | a | 15.229127281999808 | 23.885352947999763 | -8.65622566599 |\n"
    assert counted(read(f"{HEAD}{cut}| b | b | 0.3 | 0.1 | 0.19999999999999998 |\n")) == {}


def test_a_repeated_path_keeps_both_rows(read: Read) -> None:
    trace = read(HEAD + "| k | k | 1 | 2 | -1 |\n| k | k | 3 | 4 | -1 |\n")
    assert cells(trace) == [
        ("k", "a", 10**9),
        ("k", "a", 3 * 10**9),
        ("k", "b", 2 * 10**9),
        ("k", "b", 4 * 10**9),
    ]
    assert counted(trace) == {"contradicting_rows": 1}


def test_text_around_the_table_is_kept(read: Read) -> None:
    trace = read(f"We ran it:\n\n{HEAD}| k | k | 1 | 2 | -1 |\n\nIt was slow.\n")
    assert rows(trace, "log", "line", "kind") == [(1, "text"), (3, "heading"), (7, "text")]


def test_a_second_table_is_refused_row_by_row(read: Read) -> None:
    table = HEAD + "| k | k | 1 | 2 | -1 |\n"
    trace = read(table + table.replace("| k ", "| m "))
    assert len(cells(trace)) == 2
    assert counted(trace) == {"row_of_something_else": 1}
    assert trace.facts.notes[-1].startswith("Line 4 begins a second table")


def test_tables_of_kernels_and_logs_are_left_to_their_readers() -> None:
    for text in (
        b"kernel,kernel_path,total time,count\n",
        b"Time(%)  Total Time  Instances  Name\nkernel | kernel_path | a\n",
        b"kernel and kernel_path in prose\n",
        b"| kernel | kernel_path |\n",
        b"| kernel | time |\n",
        b'{"kernel": 1, "kernel_path": 2}',
    ):
        assert not FORMAT.sniff(text), text
    taken = [each.name for each in known_formats().values() if each.sniff(RULED.encode())]
    assert taken == ["path-table"]


def test_a_text_without_the_header_is_refused(read: Read) -> None:
    with pytest.raises(FormatError, match="expected the header of a table of call paths"):
        read("| kernel | time |\n| a | 1 |\n", format="path-table")


def test_a_store_holds_the_same(read: Read, tmp_path: object) -> None:
    trace = read(RULED)
    again = inferometer.open(trace.save(f"{tmp_path}/a.ifm"))
    assert (again.facts, cells(again)) == (stored_facts(trace), cells(trace))
