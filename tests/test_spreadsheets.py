"""No cell that a program opens as a table begins a formula, and each text comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.spreadsheets import guard, unguard


@pytest.mark.parametrize(
    "text",
    [
        "=1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\uff1d1",
        "\uff0b1",
        "\uff0d1",
        "\uff20x",
        " =1",
        "\ufeff=1",
        "\u00a0\u200b=1",
        "\t1",
        "\r1",
        "\n1",
        "'=1",
    ],
)
def test_what_a_spreadsheet_runs_gets_a_quote(text: str) -> None:
    assert guard(text) == f"'{text}"
    assert unguard(guard(text)) == text


@pytest.mark.parametrize("text", ["", "a", "a=1", "'a", "1-1", "void f<1>()", " a", "\\x1b[2J", "…=1"])
def test_what_none_runs_stays(text: str) -> None:
    assert guard(text) == text == unguard(text)


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    assert unguard(guard(text)) == text
