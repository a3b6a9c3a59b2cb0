"""Python tracebacks next to tables become call paths, root first, and stay in the log."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.traces import rows

from inferometer import Trace

Read = Callable[..., Trace]
TABLE = "Name\tTotal Time\tInstances\nk\t1 us\t1\n\n"


def paths(trace: Trace) -> list[tuple[Any, ...]]:
    return rows(trace, "call_paths", "path_id", "parent_id", "frame", "depth", "rank")


def kinds(trace: Trace) -> list[str]:
    return [kind for line, kind in rows(trace, "log", "line", "kind") if line > 3]


def test_a_traceback_is_a_path_from_the_root(read: Read) -> None:
    trace = read(
        TABLE
        + """\
Traceback (most recent call last):
  File "/srv/run.py", line 3, in <module>
    main()
    ^^^^^^
  File "/srv/model.py", line 40, in forward
    raise ValueError("no")
ValueError: no
After it.
"""
    )
    assert paths(trace) == [(0, None, "/srv/run.py:3 <module>", 0, None), (1, 0, "/srv/model.py:40 forward", 1, None)]
    assert rows(trace, "call_paths", "name") == ["<module>", "forward"]
    assert kinds(trace) == ["traceback"] * 7 + ["remark"]
    fields = [json.loads(each) for each in rows(trace, "log", "fields")[2:-1] if each]
    assert fields == [
        {"path": "/srv/run.py", "line": 3, "function": "<module>", "path_id": 0},
        {"path": "/srv/model.py", "line": 40, "function": "forward", "path_id": 1},
        {"exception": "ValueError: no", "path_id": 1},
    ]


def test_ranks_have_paths_of_their_own_even_where_their_lines_alternate(read: Read) -> None:
    lines = [f'[rank{rank}]:   File "/a.py", line {n}, in f{n}' for n in (1, 2) for rank in (0, 7)]
    trace = read(TABLE + "\n".join(lines))
    assert paths(trace) == [
        (0, None, "/a.py:1 f1", 0, 0),
        (1, 0, "/a.py:2 f2", 1, 0),
        (2, None, "/a.py:1 f1", 0, 7),
        (3, 2, "/a.py:2 f2", 1, 7),
    ]


def test_paths_that_begin_alike_share_their_nodes_within_a_rank(read: Read) -> None:
    stack = '[rank0]:   File "/a.py", line 1, in f\n[rank0]:   File "/a.py", line {}, in g\n\n'
    trace = read(TABLE + stack.format(2) + stack.format(3) + stack.format(2))
    assert [row[:3] for row in paths(trace)] == [(0, None, "/a.py:1 f"), (1, 0, "/a.py:2 g"), (2, 0, "/a.py:3 g")]
    assert trace.losses.seen["call_paths"] == 6
    assert trace.losses.total("repeated_frame") == 3


@pytest.mark.parametrize(
    "prefix",
    ["", "[rank3]: ", "(EngineCore_DP0 pid=77) ", "(Worker pid=1) ERROR 10-10 12:00:0{} [core.py:70] ", "  | "],
)
def test_a_prefix_may_change_with_the_time(prefix: str, read: Read) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/a.py", line 1, in f',
        "    g()",
        '  File "/a.py", line 2, in g',
        "RuntimeError: boom",
    ]
    trace = read(TABLE + "\n".join(prefix.format(i) + line for i, line in enumerate(lines)))
    assert [(row[2], row[4]) for row in paths(trace)] == [
        ("/a.py:1 f", 3 if "rank3" in prefix else None),
        ("/a.py:2 g", 3 if "rank3" in prefix else None),
    ]
    assert kinds(trace) == ["traceback"] * 5
    assert json.loads(rows(trace, "log", "fields")[-1]) == {"exception": "RuntimeError: boom", "path_id": 1}


@pytest.mark.parametrize("head", ["Thread 0x01", "Current thread 0x01", "Stack"])
def test_what_is_printed_inmost_first_is_turned_round(head: str, read: Read) -> None:
    frames = '  File "/a.py", line 9 in leaf\n  File "/a.py", line 1 in root\n'
    trace = read(f"{TABLE}{head} (most recent call first):\n{frames}")
    assert [(row[2], row[3]) for row in paths(trace)] == [("/a.py:1 root", 0), ("/a.py:9 leaf", 1)]


def test_chained_exceptions_are_paths_of_their_own(read: Read) -> None:
    trace = read(
        TABLE
        + """\
Traceback (most recent call last):
  File "/a.py", line 1, in f
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/a.py", line 3, in f
    [Previous line repeated 9 more times]
  File "/a.py", line 4
SyntaxError: bad
"""
    )
    assert [(row[2], row[3]) for row in paths(trace)] == [("/a.py:1 f", 0), ("/a.py:3 f", 0), ("/a.py:4", 1)]
    assert set(kinds(trace)) == {"traceback"}


def test_a_text_that_only_mentions_a_file_is_no_frame(read: Read) -> None:
    trace = read(TABLE + 'look at File "/a.py", line 3, in f\nValueError: not one of a stack\n')
    assert paths(trace) == []
    assert kinds(trace) == ["remark", "remark"]


def test_a_path_below_a_stack_without_an_exception_is_no_exception(read: Read) -> None:
    trace = read(TABLE + '  File "/a.py", line 3, in f\nPATH: a/b.cu\n')
    assert kinds(trace) == ["traceback", "path"]


def test_many_stacks_at_once_take_no_longer(read: Read) -> None:
    lines = (f'[rank{i}]:   File "/a.py", line {i}, in f' for i in range(20_000))
    assert len(paths(read(TABLE + "\n".join(lines)))) == 20_000
