"""The table of commands and formats, against what formats declare; that it is of today, the test of pages shows."""

from pathlib import Path

import pytest

from inferometer.formats.base import known_formats

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "works-on.md"


def cells() -> dict[str, dict[str, str]]:
    """By format and command."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines)
    return {row[0][1 : row[0].index("]")]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_each_format_has_a_row_of_the_three_answers() -> None:
    found = cells()
    assert set(found) == set(known_formats())
    assert {answer for row in found.values() for answer in row.values()} == {"yes", "-", "no"}


@pytest.mark.parametrize(
    ("table", "commands"),
    [
        ("launches", ("kernels", "launches", "timeline", "findings", "report", "roofline")),
        ("calls", ("calls", "tree")),
        ("spans", ("spans",)),
        ("totals", ("kernels",)),
        ("op_nodes", ("ops",)),
        ("memory_events", ("memory",)),
    ],
)
def test_commands_work_on_formats_that_fill_what_they_ask_for(table: str, commands: tuple[str, ...]) -> None:
    found = cells()
    filling = [name for name, fmt in known_formats().items() if table in fmt.tables]
    assert filling
    assert {(name, command): found[name][command] for name in filling for command in commands} == {
        (name, command): "yes" for name in filling for command in commands
    }


@pytest.mark.parametrize(
    ("table", "command"), [("calls", "calls"), ("kernel_counters", "counters"), ("memory_events", "memory")]
)
def test_commands_answer_of_no_format_that_lacks_what_they_ask_for(table: str, command: str) -> None:
    lacking = [name for name, fmt in known_formats().items() if table not in fmt.tables]
    assert all(cells()[name][command] in ("-", "no") for name in lacking)


@pytest.mark.parametrize("command", ["summary", "report", "import", "parquet"])
def test_every_format_can_be_summed_up_shown_and_stored(command: str) -> None:
    assert {name for name, row in cells().items() if row[command] != "yes"} == set()
