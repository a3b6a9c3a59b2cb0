"""Every result has its view, is shown by that alone, and JSON is its data with what the view adds."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from inferometer.analyses.result import Result
from inferometer.errors import UnknownName
from inferometer.registry import find
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views import view as module
from inferometer.reports.views.view import View, content_of, json_of, sections_of
from inferometer.trace.losses import Losses
from inferometer.trace.tables import ALL_TABLES

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "inferometer"
VIEWS = SOURCE / "reports" / "views"
SHOWN = """
import sys
from inferometer.commands.main import cli
try:
    cli()
except SystemExit:
    print(*[name for name in sys.modules if name.startswith("inferometer.reports.views.")], file=sys.stderr)
"""


def named_views() -> Iterator[tuple[str, str]]:
    """Each class of ours that derives from `Result`, with the view that it names; empty: none."""
    for path in sorted(SOURCE.rglob("*.py")):
        for text in path.read_text("utf-8").split("\nclass ")[1:]:
            if found := re.match(r"(\w+)\((?:Result|ChatAnswer)\):", text):
                view = re.search(r'^    view: ClassVar\[str\] = "([\w.]+)"$', text, re.MULTILINE)
                yield found[1], view[1] if view else ""


@pytest.mark.parametrize(("name", "view"), [*named_views()])
def test_every_result_has_a_view(name: str, view: str) -> None:
    assert isinstance(find("inferometer.reports.views", "VIEW", view), View), name


def test_every_view_is_that_of_one_result() -> None:
    files = {path: path.read_text("utf-8") for path in VIEWS.rglob("*.py")}
    declared = [path.relative_to(VIEWS).with_suffix("") for path, text in files.items() if "\nVIEW = View(" in text]
    assert sorted(view for _, view in named_views()) == sorted(".".join(path.parts) for path in declared)


@pytest.mark.parametrize(
    ("command", "views"),
    [
        ("kernels", {"kernels", "statistics"}),
        ("spans", {"spans", "statistics"}),
        (
            "summary",
            {
                "first_look",
                "findings",
                "time_budget",
                "summary",
                "kernels",
                "statistics",
                "steps.table",
                "measured_counters",
            },
        ),
    ],
)
def test_a_command_imports_no_other_results_view(command: str, views: set[str]) -> None:
    arguments = [sys.executable, "-c", SHOWN, command, "samples/decode.json.gz"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    loaded = {name.removeprefix("inferometer.reports.views.") for name in done.stderr.split()}
    assert loaded - {"view", "layout", "steps", "steps.serving"} <= views


@pytest.mark.parametrize("package", ["numpy", "scipy", "jinja2", "inferometer.analyses.counters"])
def test_kernels_starts_without_what_it_does_not_need(package: str) -> None:
    show = SHOWN.replace("inferometer.reports.views.", package)
    arguments = [sys.executable, "-c", show, "kernels", "samples/decode.json.gz"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr.split() == []


@dataclass(frozen=True)
class Ours(Result):
    view: ClassVar[str] = "ours"
    losses: Losses

    def as_json(self) -> dict[str, Any]:
        return {"first": 1, "said": None, "losses": {}}

    def to_polars(self) -> pl.DataFrame:
        return pl.DataFrame()


def test_json_is_the_data_with_what_the_view_adds_before_the_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Ours(Losses(ALL_TABLES))
    schema = Schema("ours", 3)
    shown: View[Ours] = View(
        schema=schema,
        sections=lambda _: (),
        remarks=lambda _: ("so",),
        remarks_in_json=True,
        in_json=lambda _: {"said": "it"},
    )
    monkeypatch.setattr(module, "find", lambda *_: shown)
    assert [*content_of(result).items()] == [("first", 1), ("said", "it"), ("remarks", ["so"]), ("losses", {})]
    plain: View[Ours] = View(schema=schema, sections=lambda _: ())
    monkeypatch.setattr(module, "find", lambda *_: plain)
    assert content_of(result) == result.as_json()
    assert next(iter(json_of(result).items())) == ("schema", {"name": "ours", "version": 3})
    assert json_of(result) == {"schema": {"name": "ours", "version": 3}, **result.as_json()}


def test_a_result_whose_view_is_nowhere_says_which() -> None:
    with pytest.raises(UnknownName, match='unknown view "ours"'):
        sections_of(Ours(Losses(ALL_TABLES)))
