"""Answers stay small, say what they leave out, and lead to the rest."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.secret_texts import planted

from inferometer.commands.tools.answers import MOST_BYTES, Window, answer_with
from inferometer.errors import InputError

ROWS = [{"kernel": f"k{n}", "total_ns": n} for n in range(120)]


def test_a_small_answer_is_whole() -> None:
    data: dict[str, Any] = {"rows": ROWS[:3], "losses": {"entries": []}, "ok": None, "share": 0.5}
    answer = answer_with(data, "text", Window(50, 0))
    assert (answer.content, answer.text) == ({"answer": data, "left_out": []}, "text")


def test_a_long_list_is_cut_and_said_to_be() -> None:
    answer = answer_with({"rows": ROWS}, "", Window(50, 100))
    assert answer.content["answer"] == {"rows": ROWS[100:]}
    assert answer.content["left_out"] == [{"where": "rows", "entries": 120, "from": 100, "shown": 20}]
    assert answer.text.startswith("Left out: rows has 120 entries, shown 20 from 100.")


def test_a_list_within_is_cut_from_its_start_and_the_longest_is_named() -> None:
    data = {"rows": [{"sites": ROWS[:60]}, {"sites": ROWS}]}
    answer = answer_with(data, "", Window(50, 1))
    assert answer.content["answer"] == {"rows": [{"sites": ROWS[:50]}]}
    assert answer.content["left_out"] == [
        {"where": "rows", "entries": 2, "from": 1, "shown": 1},
        {"where": "rows[].sites", "entries": 120, "from": 0, "shown": 50},
    ]


def test_a_list_at_the_top_is_a_table_too() -> None:
    answer = answer_with(ROWS, "", Window(10, 5))
    assert answer.content["answer"] == ROWS[5:15]
    assert answer.text.startswith("Left out: the answer has 120 entries")


def test_a_shape_an_interval_and_a_record_are_never_cut() -> None:
    data = {"interval": [0.5, 1.5], "shape": list(range(100)), "record": {str(n): n for n in range(100)}}
    assert answer_with({"x": data}, "", Window(1, 0)).content == {"answer": {"x": data}, "left_out": []}


def test_a_long_map_is_cut() -> None:
    answer = answer_with({"chains": {str(n): n for n in range(500)}}, "", Window(50, 0))
    assert len(answer.content["answer"]["chains"]) == 100
    assert answer.content["left_out"] == [{"where": "chains", "entries": 500, "from": 0, "shown": 100}]


def test_a_large_answer_has_fewer_entries_than_asked_for() -> None:
    answer = answer_with({"rows": [{"name": "x" * 1_000}] * 1_000}, "", Window(1_000, 0))
    shown = len(answer.content["answer"]["rows"])
    assert 0 < shown < 60
    assert answer.content["left_out"] == [{"where": "rows", "entries": 1_000, "from": 0, "shown": shown}]
    assert len(msgspec.json.encode(answer.content)) <= MOST_BYTES


def test_what_is_too_large_with_one_entry_is_an_error() -> None:
    data = {"texts": ["x" * 2_000 for _ in range(100)]}
    with pytest.raises(InputError, match=r"expected an answer of at most 60,000 bytes, found 2..,... with one entry"):
        answer_with(data, "", Window(50, 0))


def test_a_long_text_is_cut() -> None:
    answer = answer_with({"name": "x" * 5_000}, "line\n" * 2_000, Window(50, 0))
    assert answer.content["answer"]["name"] == "x" * 2_000 + "… (3,000 more characters)"
    assert len(answer.text) < 4_100
    assert answer.text.endswith("more lines: the structured content has the data.")


def test_hidden_characters_are_shown() -> None:
    """Tag characters carry text that a model reads and a person doesn't see."""
    answer = answer_with({"k\x1b[2J": "gemm\u202e\U000e0041"}, "a\x1b[31m", Window(50, 0))
    assert answer.content["answer"] == {"k\\x1b[2J": "gemm\\u202e\\U000e0041"}
    assert answer.text == "a\\x1b[31m"


def test_a_secret_is_blanked_even_at_the_edge_of_a_cut() -> None:
    for kind, text, secret in planted():
        answer = answer_with({"name": "x" * 1_990 + " " + text, text: 1}, text, Window(50, 0))
        assert secret not in str(answer), kind


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=3), inner, max_size=5),
    max_leaves=60,
)


@given(rows=st.lists(VALUES, max_size=150), limit=st.integers(1, 60))
def test_pages_put_together_are_the_table(rows: list[Any], limit: int) -> None:
    whole = answer_with({"rows": rows}, "", Window(1_000, 0)).content["answer"]["rows"]
    read: list[Any] = []
    while True:
        content = answer_with({"rows": rows}, "", Window(limit, len(read))).content
        page = content["answer"]["rows"]
        if len(rows) <= 100 and not any(isinstance(row, list | dict) for row in rows):
            assert page == whole
            return
        read += page
        if len(read) == len(rows):
            break
        assert page
    assert len(read) == len(whole)
    assert [type(row) for row in read] == [type(row) for row in whole]
