"""The page as Markdown: short enough for a comment, and nothing of a file is markup."""

import re

import polars as pl
import pytest
from tests.reports.conftest import HOSTILE

from inferometer.reports.page.blocks import (
    Band,
    Block,
    Chart,
    Facts,
    Fold,
    Folds,
    Grid,
    Part,
    Point,
    Points,
    Tab,
    Tabs,
    Words,
)
from inferometer.reports.page.text import render_text
from inferometer.reports.views.layout import Field, Section


def grid(rows: int, name: str = "gemm") -> Grid:
    fields = (Field("count", "Instances", "count"), Field("kernel", "Kernel", "name"))
    frame = pl.DataFrame([(i, name) for i in range(rows)], schema=["count", "kernel"], orient="row")
    return Grid(Section("Kernels", fields, frame, ("A note.",)))


def test_blocks_are_headings_lists_tables_and_sentences() -> None:
    blocks = [
        Block("facts", "Facts", [Facts([("File", "a.json"), ("Tool", "nsys")])]),
        Block("verdict", "Verdict", [Words("Slower.", "verdict"), Facts([("Steps", "3", "4")], ("Base", "Candidate"))]),
        Block("findings", "First", [Points([Point("Idle", "high", "bad", "3 ms", ["Half of it.", "Next: look."])])]),
        Block("kernels", "Kernels", [grid(1), Chart("Time", "gemm takes all.", [], {})]),
        Block("steps", "Steps", lacking="Marks of steps."),
    ]
    assert render_text(blocks, title="run") == (
        "# run\n\n## Facts\n\n- **File**: a.json\n- **Tool**: nsys\n\n"
        "## Verdict\n\n**Slower.**\n\n|  | Base | Candidate |\n| --- | --- | --- |\n| Steps | 3 | 4 |\n\n"
        "## First\n\n- **high**: Idle (3 ms)\n  - Half of it.\n  - Next: look.\n\n"
        "## Kernels\n\n| Instances | Kernel |\n|---:|---|\n| 0 | gemm |\n\nA note.\n\n"
        "**Time**: gemm takes all.\n\n"
        "## What this page can't show\n\n- **Steps**: Marks of steps.\n"
    )


def test_long_tables_and_names_are_cut_and_say_so() -> None:
    text = render_text([Block("kernels", "Kernels", [grid(50, "x" * 10_000)])], title="t")
    assert text.count("\n| ") == 21
    assert "30 more rows." in text
    assert "(9,700 more characters)" in text
    assert len(text) < 10_000


def test_tabs_and_folds_stand_below_each_other_and_numbers_have_their_signs() -> None:
    fields = (Field("s", "S", "share"), Field("kernel", "Kernel", "name"))
    frame = pl.DataFrame({"s": [0.5, None], "kernel": ["gemm", "copy"], "why": ["", "n/a"]})
    half = Band("x", "bad", "half")
    own = Grid(Section("gemm", fields, frame), bands={"s": lambda share: half}, instead={"s": "why"})
    parts = [Tabs("Device", [Tab("A", [Folds([Fold("gemm", [own], "two rows", half)])]), Tab("B", [Words("None.")])])]
    assert render_text([Block("shapes", "Shapes", parts)], title="t") == (
        "# t\n\n## Shapes\n\n### A\n\n#### gemm\n\nx two rows\n\n"
        "| S | Kernel |\n|---:|---|\n| x 50.0 % | gemm |\n| n/a | copy |\n\n### B\n\nNone.\n"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(name: str) -> None:
    parts: list[Part] = [
        Words(name),
        Facts([(name, name)]),
        Points([Point(name, name, aside=name, detail=[name])]),
        grid(1, name),
    ]
    text = render_text([Block("kernels", name, parts)], title=name)
    assert not re.search(r"(?<!\\)[<`*_]", text.replace("**", ""))
    assert not set("\x1b\x9b\u202e\u2066\r\t") & set(text)
    assert "[a](b)" not in text
