"""What is asked of a damaged input beyond opening it, and what must hold of every answer whatever the damage."""

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from random import Random

import polars as pl
from tests.formats.kineto.test_damage import FILE  # a small whole trace to compare with
from tests.traces import stored_facts

import inferometer
from inferometer import Trace
from inferometer.analyses.result import Result
from inferometer.errors import InferometerError
from inferometer.reports.delimited import render_csv, render_tsv
from inferometer.reports.flames import render_folded, render_speedscope
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.view import sections_of
from inferometer.trace.losses import KINDS
from inferometer.trace.tables import ALL_TABLES, TABLES

Question = Callable[[Trace, Path], None]

_LONGEST_MESSAGE = 10_000
csv.field_size_limit(1 << 30)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_DRIVES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_FORMULA = re.compile(
    r"(?:[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r])(?!\d*(?:\.\d+)?(?:[eE][+-]?\d+)?$|inf$)"
)  # negative numbers are none
_LINES = re.compile(r"[\t-\r\x1c-\x1f\x85]")  # which cells may hold
_TAGS = {*("div", "b", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li")}


def check_trace(trace: Trace, *, believed: bool) -> None:
    """Tables as declared, and every count of losses possible; what is `believed` only has to be readable."""
    for name, rows in zip(trace.tables, pl.collect_all(list(trace.tables.values())), strict=True):
        assert rows.schema == TABLES[name].schema, name
        for column in TABLES[name].columns if rows.height and not believed else ():
            assert column.null or not rows[column.name].null_count(), f"{name}.{column.name} is null"
    losses = trace.losses
    json.dumps(losses.as_dict(), allow_nan=False)
    if believed:
        return
    assert trace.scope <= losses.scope <= ALL_TABLES
    for loss in losses:
        assert loss.name in KINDS, loss
        assert loss.count > 0, loss
    assert all(losses.dropped(category) <= n for category, n in losses.seen.items()), "more dropped than seen"


def check_refusal(error: InferometerError, *, never: bool) -> None:
    """A refusal says what was found in a bounded number of words."""
    assert not never, f"was refused: {error.message}"
    assert error.message.strip()
    assert len(str(error)) < _LONGEST_MESSAGE, f"a message of {len(str(error))} characters"


def kernels(trace: Trace, _: Path) -> None:
    _render(inferometer.kernel_table(trace))


def summary(trace: Trace, _: Path) -> None:
    _render(inferometer.summarize(trace))


def calls(trace: Trace, _: Path) -> None:
    _render(inferometer.call_table(trace))


def spans(trace: Trace, _: Path) -> None:
    _render(inferometer.span_table(trace))


def steps(trace: Trace, _: Path) -> None:
    _render(inferometer.step_table(trace))


def timeline(trace: Trace, _: Path) -> None:
    _render(inferometer.find_timeline(trace))


def groups(trace: Trace, _: Path) -> None:
    _render(inferometer.find_groups(trace))


def launches(trace: Trace, _: Path) -> None:
    """Who launched it, with the trace as its own capture; time is conserved."""
    found = inferometer.attribute(trace, captures=[trace])
    table, tree = inferometer.launch_sites(found, by="module"), inferometer.call_tree(found)
    assert table.attributed_ns + table.unattributed_ns == table.total_ns == sum(table.by_how.values())
    assert tree.frame.filter(pl.col("parent").is_null())["total_ns"].sum() == tree.total_ns == table.total_ns
    assert sum(int(line.rpartition(" ")[2]) for line in render_folded(tree).splitlines()) == tree.total_ns
    json.loads(render_speedscope(tree))
    for result in (table, tree):
        _render(result)


def findings(trace: Trace, _: Path) -> None:
    _render(inferometer.find_findings(trace))


def compare(trace: Trace, folder: Path) -> None:
    """With a small whole trace, and with itself."""
    whole = folder / "whole.json"
    whole.write_bytes(FILE)
    _render(inferometer.compare(inferometer.open(whole), trace))
    _render(inferometer.compare(trace, trace))


def store(trace: Trace, folder: Path) -> None:
    """What is saved is what is opened again."""
    again = inferometer.open(trace.save(folder / "again.ifm"))
    assert (again.facts, list(again.losses), again.scope) == (stored_facts(trace), list(trace.losses), trace.scope)
    for name, frame in trace.tables.items():
        assert again.tables[name].collect().equals(frame.collect()), name


def exports(trace: Trace, folder: Path) -> None:
    for form in ("perfetto", "chrome", "parquet", "csv"):
        try:
            inferometer.export(trace, folder / f"export.{form}", to=form)
        except InferometerError as error:
            check_refusal(error, never=False)


_USUAL: tuple[Question, ...] = (kernels, summary)
_OTHERS: tuple[Question, ...] = (calls, spans, steps, timeline, groups, launches, findings, compare, store, exports)
QUESTIONS = (*_USUAL, *_OTHERS)


def question(rng: Random) -> Question:
    """One of them: a summary or the table of kernels in half of the cases."""
    return rng.choice(_USUAL if rng.random() < 0.5 else _OTHERS)


class _Page(HTMLParser):
    """Fails on a tag or attribute that reports don't write, or that doesn't close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, f"<{tag}> from a file"
        assert {name for name, _ in attrs} <= {"class", "style"}, attrs
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def _render(result: Result) -> None:
    """In every form, in each of which nothing from the file does anything."""
    json.dumps(result.as_json(), allow_nan=True)
    for is_terminal in (False, True):
        text = _STYLE.sub("", render_terminal(result, is_terminal=is_terminal))
        assert not _DRIVES.search(text), f"drives a terminal: {_DRIVES.search(text)}"
    markdown = inferometer.render_markdown(result)
    assert not _DRIVES.search(markdown), f"in Markdown: {_DRIVES.search(markdown)}"
    _Page(inferometer.render_html(result))
    if sections_of(result):
        render_tsv(result)
        cells = list(chain.from_iterable(csv.reader(io.StringIO(render_csv(result), newline=""))))
        assert not any(map(_FORMULA.match, cells)), "a formula in CSV"
        assert not any(_DRIVES.search(_LINES.sub("", cell)) for cell in cells), "drives a terminal, in CSV"
