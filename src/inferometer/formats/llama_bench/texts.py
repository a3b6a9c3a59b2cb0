"""The four forms in which llama-bench prints, each as fields of tests and lines of other text."""

import csv
import re
from collections.abc import Iterator
from typing import Any, Final

from inferometer.errors import FormatError
from inferometer.formats.json_text.objects import Found, Objects
from inferometer.formats.llama_bench.names import TITLES
from inferometer.trace.losses import Losses

_CSV: Final = re.compile(r"^build_commit,", re.MULTILINE)
_TABLE: Final = re.compile(r"^\|\s*model\s*\|.*\|\s*t/s\s*\|", re.MULTILINE)
_SQL: Final = re.compile(r"^CREATE TABLE IF NOT EXISTS (?:llama_bench|test) \(", re.MULTILINE)
_RULE: Final = re.compile(r"\|[\s|:-]+\|?")
_RATE: Final = re.compile(r"([\d.]{1,25}|inf|nan)\s*±\s*([\d.]{1,25}|inf|-?nan)")
_BUILD: Final = re.compile(r"build: (\S+) \((\d{1,15})\)")
_LONGEST: Final = 100_000  # characters of a line of a table


def found_in(data: bytes, name: str, losses: Losses) -> Iterator[Found]:
    """Tests and lines, in the file's order.

    Raises:
        FormatError: It is SQL.
    """
    text = data.decode("utf-8-sig", "replace")
    if _SQL.search(text):
        raise FormatError(
            f"{name}: expected llama-bench's JSON, CSV or Markdown, found SQL statements",
            hint="Run it again with -o json, which has each repetition, too.",
        )
    if "�" in text and b"\xef\xbf\xbd" not in data:
        losses.count("invalid_utf8", category="tests", example=name)
    if _TABLE.search(text):
        return _of_table(text, losses)
    if _CSV.search(text):
        return _of_csv(text, losses)
    return (each for each in Objects(data, losses, "tests") if each.fields is None or "build_commit" in each.fields)


def _of_csv(text: str, losses: Losses) -> Iterator[Found]:
    titles: list[str] | None = None
    for number, line in _lines(text, losses):
        cells = _cells(line)
        if line.startswith("build_commit,"):
            titles = cells
        elif titles is None or not line.startswith('"'):
            yield Found(number, text=line)
        elif len(cells) == len(titles):
            yield Found(number, dict(zip(titles, cells, strict=True)))
        else:
            _lose(losses, number)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _of_table(text: str, losses: Losses) -> Iterator[Found]:
    titles: list[str] | None = None
    rows: list[Found] = []
    build: dict[str, Any] = {}
    for number, line in _lines(text, losses):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if _TABLE.match(line):
            titles = [TITLES.get(cell, cell) for cell in cells]
        elif match := _BUILD.match(line):
            build = {"build_commit": match[1], "build_number": match[2]}
        elif not line.startswith("|") or titles is None:
            yield Found(number, text=line)
        elif _RULE.fullmatch(line):
            continue
        elif len(cells) != len(titles):
            _lose(losses, number)
        else:
            rows.append(Found(number, _with_rate(dict(zip(titles, cells, strict=True)))))
    for row in rows:
        yield Found(row.line, build | (row.fields or {}))


def _with_rate(fields: dict[str, Any]) -> dict[str, Any]:
    """With what is in one cell, mean and deviation of the rate, as two."""
    match = _RATE.fullmatch(fields.get("t/s", ""))
    return fields | {"avg_ts": match[1], "stddev_ts": match[2]} if match else fields


def _lines(text: str, losses: Losses) -> Iterator[tuple[int, str]]:
    """Lines that aren't empty; what has no ending was cut, and what is too long is left out."""
    if text and not text.endswith("\n"):
        losses.count("truncated", example="the last line has no end")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LONGEST:
            _lose(losses, number)
        elif line.strip():
            yield number, line.rstrip("\r")


def _lose(losses: Losses, number: int) -> None:
    losses.see("tests")
    losses.count("unreadable_row", category="tests", example=f"line {number}")
