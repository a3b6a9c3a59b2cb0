"""Folded stacks and speedscope profiles hold all device time, and are what their readers expect, whatever the names."""

import json
import re
from typing import Any

import pytest
from tests.reports.call_trees import Node, tree_of
from tests.reports.conftest import HOSTILE

from inferometer import __version__
from inferometer.analyses.launched_by.call_tree import CallTreeTable
from inferometer.reports.flames import render_folded, render_speedscope

LINEAR = ("op", "aten::linear", 5, ("kernel", "gemm<int, 4>", 70), ("kernel", "void add(float*)", 20))
RUN = ("frame", "main.py(3): run", 0, LINEAR, ("kernel", "gemm<int, 4>", 4), ("kernel", "nothing", 0))
TREE = tree_of(RUN, ("unknown", "(launched before the window)", 0, ("kernel", "norm", 1)))
NAMES = [
    *HOSTILE,
    "a;b;c",
    "Linear 3",
    "v 1.5",
    "x 7.",
    "12",
    "no-break\u00a08",
    " ends ",
    "line\u2028end\u0085",
]


def read_as_flamegraph_pl(text: str) -> list[tuple[list[str], float, float | None]]:
    """Stack, value and second value of each line, by the expression that flamegraph.pl reads lines with."""
    count, found = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$", re.ASCII), []
    for line in text.removesuffix("\n").split("\n"):
        match = count.match(line)
        assert match, line
        second = count.match(match[1])
        found.append((match[1].split(";"), float(match[2]), second and float(second[2])))
    return found


def profile_of(table: CallTreeTable) -> tuple[dict[str, Any], dict[str, Any]]:
    document = json.loads(render_speedscope(table))
    (profile,) = document["profiles"]
    return document, profile


def test_a_line_for_each_node_with_time_of_its_own_in_the_trees_order() -> None:
    assert render_folded(TREE).splitlines() == [
        "main.py(3): run;aten::linear 5",
        "main.py(3): run;aten::linear;gemm<int, 4> 70",
        "main.py(3): run;aten::linear;void add(float*) 20",
        "main.py(3): run;gemm<int, 4> 4",
        "(launched before the window);norm 1",
    ]


def test_folded_values_are_whole_and_add_up_to_all_device_work() -> None:
    values = [line.rpartition(" ")[2] for line in render_folded(TREE).splitlines()]
    assert sum(map(int, values)) == TREE.total_ns == 100


@pytest.mark.parametrize("name", NAMES)
def test_a_name_never_changes_what_a_folded_line_says(name: str) -> None:
    text = render_folded(tree_of(("op", name, 3, ("kernel", name, 123))))
    assert text.replace("\n", "").isprintable()
    (outer, own, none), (both, below, none_too) = read_as_flamegraph_pl(text)
    assert (own, below, none, none_too) == (3, 123, None, None)
    assert both == outer * 2
    assert len(outer) == 1
    assert outer[0].strip() == outer[0] != ""


def test_what_the_folded_format_cannot_hold_is_replaced() -> None:
    names = {"a;b": "a,b", "two\r\nlines": "two lines", "Linear 3": "Linear_3", "a 1 2.5": "a 1_2.5", "\t": "(no name)"}
    for name, written in names.items():
        assert render_folded(tree_of(("kernel", name, 7))) == f"{written} 7\n"


def test_a_tree_without_time_has_no_lines_and_an_empty_profile() -> None:
    empty = tree_of(("kernel", "k", 0))
    assert render_folded(empty) == ""
    _, profile = profile_of(empty)
    assert (profile["samples"], profile["weights"], profile["endValue"]) == ([], [], 0)


def test_speedscope_gets_what_its_schema_requires() -> None:
    document, profile = profile_of(TREE)
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert document["exporter"] == f"inferometer@{__version__}"
    assert document["name"] == "by hand"
    assert document["activeProfileIndex"] == 0
    assert set(document) == {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
    assert (profile["type"], profile["unit"]) == ("sampled", "nanoseconds")
    assert all(set(frame) == {"name"} and isinstance(frame["name"], str) for frame in document["shared"]["frames"])


def test_weights_of_stacks_add_up_to_all_device_work() -> None:
    document, profile = profile_of(TREE)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    stacks = [[names[number] for number in stack] for stack in profile["samples"]]
    assert dict(zip(map(tuple, stacks), profile["weights"], strict=True)) == {
        ("main.py(3): run", "aten::linear"): 5,
        ("main.py(3): run", "aten::linear", "gemm<int, 4>"): 70,
        ("main.py(3): run", "aten::linear", "void add(float*)"): 20,
        ("main.py(3): run", "gemm<int, 4>"): 4,
        ("(launched before the window)", "norm"): 1,
    }
    assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"] == TREE.total_ns
    assert len(set(names)) == len(names)


def test_speedscope_keeps_any_name_as_it_is() -> None:
    table = tree_of(*(("kernel", name, 1) for name in NAMES), source="by \udcff hand")
    text = render_speedscope(table)
    text.encode()
    document = json.loads(text)
    assert [frame["name"] for frame in document["shared"]["frames"]] == list(dict.fromkeys(NAMES))
    assert document["name"] == "by \udcff hand"


def test_deep_trees_are_followed_without_recursion() -> None:
    node: Node = ("kernel", "leaf", 9)
    for level in range(5_000):
        node = ("frame", f"f{level}", 0, node)
    table = tree_of(node)
    (line,) = render_folded(table).splitlines()
    assert line.count(";") == 5_000
    (stack,) = profile_of(table)[1]["samples"]
    assert stack == list(range(5_001))
