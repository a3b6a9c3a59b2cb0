"""Reads a text with one table of call paths: cells to `path_totals`, paths to `call_paths`, every other line to `log`.

Rows of `path_totals` come column by column, each in the order of the file; a blank cell has none. A cell that is no
time has a row without one.
"""

import json
import re
from typing import TYPE_CHECKING, Any

from inferometer.errors import FormatError
from inferometer.formats.path_table.header import PathHeader, find_header, is_closed, split
from inferometer.formats.path_table.rows import Row, names_of, read_row, rounded
from inferometer.formats.text_lines import Line, read_lines, without_ending
from inferometer.trace.facts import Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_RULER = re.compile(r"[\s|+:=\-─━═┼╪]*[-=─━═]{3}[\s|+:=\-─━═┼╪]*")
_CELLS, _NODES, _LOG = "path_totals", "call_paths", "log"


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: No header of a table of call paths is in the text.
    """
    reader = _Reader(out)
    with source.open() as stream:
        limits = source.limits
        for line in read_lines(stream, out.losses, longest=limits.event_bytes, most=limits.lines, name=source.name):
            reader.take(line)
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    if reader.header is None:
        raise FormatError(
            f"{source.name}: expected the header of a table of call paths (kernel, kernel_path, a column per run), "
            f"found none in {reader.lines:,} lines",
            hint="Name the columns so in the first line, or name another format with --format.",
        )
    reader.finish(reader.header)
    arms = [arm.name for arm in reader.header.arms]
    return Facts("path-table", source.name, engine_metrics={"arms": arms}, notes=tuple(reader.notes(arms)))


class _Reader:
    """Where the reading stands: the header once it was found, the rows, the text around them."""

    def __init__(self, out: "TraceBuilder") -> None:
        self.out = out
        self.header: PathHeader | None = None
        self.lines = 0
        self._rows: list[tuple[int, Row]] = []
        self._second: int | None = None
        self._last_is_ruler = self._is_ruler_cut = False
        self._ruler: str | None = None
        self._ruled = 0  # rows that a ruler follows
        self._log: dict[str, list[Any]] = {"line": [], "kind": [], "text": [], "fields": []}

    def take(self, line: Line) -> None:
        """One line."""
        number, text = line[0], without_ending(line[1])
        self.lines = number
        if not text.strip():
            return
        if found := find_header(text):
            self._begin(found, number, text)
        elif _RULER.fullmatch(text):
            self._ruled += bool(self._rows) and not self._last_is_ruler
            self._last_is_ruler = True
            self._ruler = self._ruler or text
            self._is_ruler_cut = not line[1].endswith("\n") and len(text) < len(self._ruler)
        elif self.header and self.header.delimiter in text:
            self._take_row(self.header, number, text, is_whole=line[1].endswith("\n"))
            self._last_is_ruler = False
        else:
            self._note(number, text, "text")

    def finish(self, header: PathHeader) -> None:
        """Hand over all rows."""
        if not self._rows:
            self._count("empty_table", _CELLS, "the header has no rows below it")
        elif self._is_ruler_cut or 0 < len(self._rows) - 1 == self._ruled:
            self._count("truncated", _CELLS, "the ruler below the last row is cut, or not there")
        for title in header.unknown:
            self._count("unknown_column", _CELLS, title[:80])
        nodes = _Nodes({row.path: row.name for _, row in self._rows})
        where = [nodes.add(row.path) for _, row in self._rows]
        if self.out.wants(_NODES):
            self.out.losses.see(_NODES, len(nodes.name))
            self.out.add(_NODES, len(nodes.name), nodes.columns())
        if self.out.wants(_CELLS):
            self._hand_over_cells(header, where)
        if self.out.wants(_LOG):
            self.out.losses.see(_LOG, len(self._log["line"]))
            self.out.add(_LOG, len(self._log["line"]), self._log)

    def notes(self, arms: list[str]) -> list[str]:
        """What a reader must know of the whole table."""
        cells = [cell for _, row in self._rows for cell in row.cells]
        found = ["Times are means per call, as the table has them; how many calls, it doesn't say."]
        if below := sum(1 for _ in rounded(cells)):
            found.append(f"{below:,} of {len(cells):,} times have digits below a nanosecond and are rounded to one.")
        filled = {arms[cell.arm] for cell in cells}
        found += [f"The column {arm[:80]} has no time." for arm in arms if arm not in filled]
        if self._second:
            found.append(f"Line {self._second} begins a second table, which is not read: give it a file of its own.")
        return found

    def _begin(self, header: PathHeader, number: int, text: str) -> None:
        if self.header is None:
            self.header = header
            self._note(number, text, "heading")
        else:
            self._second = self._second or number
            self._note(number, text, "heading")

    def _take_row(self, header: PathHeader, number: int, text: str, *, is_whole: bool) -> None:
        if self._second:
            self._count("row_of_something_else", "other table", f"line {number}", is_event=True)
            self._note(number, text, "row")
            return
        is_cut = not is_whole and not (header.delimiter == "|" and header.closed and is_closed(text))
        row = read_row(header, split(text, header.delimiter), last_is_cut=is_cut)
        if is_cut:
            self._count("unended_line", _CELLS, f"line {number}")
        if row is None:
            self._count("unreadable_row", _CELLS, f"line {number}", is_event=True)
        else:
            self._rows.append((number, row))
            for name, words in row.losses:
                self._count(name, _CELLS, f"line {number}: {words}")
        if row is None or is_cut:
            self._note(number, text, "row")

    def _hand_over_cells(self, header: PathHeader, where: list[int]) -> None:
        seen: dict[str, Row] = {}
        for number, row in self._rows:
            first = seen.setdefault(row.path, row)
            if first is not row and first.cells != row.cells:
                self._count("contradicting_rows", _CELLS, f"line {number}: the path {row.path[-80:]} has a row already")
        for i, arm in enumerate(header.arms):
            mine = [
                (where[order], order, cell.host_ns)
                for order, (_, row) in enumerate(self._rows)
                for cell in row.cells
                if cell.arm == i
            ]
            path_id, order, host_ns = zip(*mine, strict=True) if mine else ((), (), ())
            self.out.losses.see(_CELLS, len(mine))
            columns = {"path_id": path_id, "order": order, "host_ns": host_ns, "backend": arm.name}
            self.out.add(_CELLS, len(mine), columns)

    def _count(self, name: str, category: str, example: str, *, is_event: bool = False) -> None:
        if self.out.wants(_CELLS):
            self.out.losses.see(category, int(is_event))
            self.out.losses.count(name, category=category, example=example)

    def _note(self, number: int, text: str, kind: str) -> None:
        columns = self.header.titles if self.header and kind == "heading" else None
        for column, value in zip(self._log, (number, kind, text, columns and _as_json(columns)), strict=True):
            self._log[column].append(value)


class _Nodes:
    """The interned tree of paths: parents are made where the table has no row of them."""

    def __init__(self, named: dict[str, str]) -> None:
        self.name: list[str] = []
        self._parent: list[int | None] = []
        self._depth: list[int] = []
        self._named = named
        self._found: dict[tuple[int | None, str], int] = {}

    def add(self, path: str) -> int:
        """The node of this path."""
        node: int | None = None
        for depth, name in enumerate(names_of(path, self._named)):
            above, node = node, self._found.get((node, name))
            if node is None:
                node = self._found[above, name] = len(self.name)
                self.name.append(name)
                self._parent.append(above)
                self._depth.append(depth)
        assert node is not None, "a row has a path"
        return node

    def columns(self) -> dict[str, Any]:
        """Columns of `call_paths`."""
        return {
            "path_id": range(len(self.name)),
            "parent_id": self._parent,
            "name": self.name,
            "depth": self._depth,
        }


def _as_json(titles: Any) -> str:
    return json.dumps({"columns": list(titles)}, ensure_ascii=False)
