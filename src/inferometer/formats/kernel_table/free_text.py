"""Lines that are no rows: what each is taken for, the source files and the kernels that it names. They become `log`."""

import re
from typing import Any

import msgspec

from inferometer.formats.kernel_table.mentions import Mentions
from inferometer.formats.kernel_table.tracebacks import Tracebacks

_PATH = re.compile(r"\s*(?:PATH|Path|path)\s*[:\uff1a]\s*(?P<path>\S.*)")
_NAMED_PATH = re.compile(
    r"(?<![A-Za-z0-9_./\-])(?P<path>[A-Za-z0-9_.~\-]*(?:/[A-Za-z0-9_.+\-]+)+"
    r"\.(?:py|pyx|cpp|cc|cxx|c|cu|cuh|h|hpp|rs|go|js|ts))(?![A-Za-z0-9_])"
)
_HEADING = re.compile(r"\s*\*\* .*|#{1,6} .*|Processing \[.*|\s*[A-Za-z0-9 /]{1,60} \(cuda_\w+\):?\s*")
_LONGEST_REMARK = 20_000  # characters searched for names
_MOST_BLANKS = 2


class FreeText:
    """Collects the lines, with what they say, until all names of kernels are known."""

    def __init__(self) -> None:
        self.tracebacks = Tracebacks()
        self._columns: dict[str, list[Any]] = {"line": [], "text": [], "kind": [], "source": [], "fields": []}
        self._path: str | None = None
        self._blanks = 0

    @property
    def rows(self) -> int:
        """Lines so far."""
        return len(self._columns["line"])

    def blank(self) -> None:
        """A blank line: it ends stacks, and a second one the lines about a path."""
        self.tracebacks.end()
        self._blanks += 1
        if self._blanks >= _MOST_BLANKS:
            self._path = None

    def end(self) -> None:
        """A table begins, or the text ends."""
        self.tracebacks.end()
        self._path = None

    def add(self, number: int, text: str, kind: str, fields: dict[str, Any] | None = None) -> None:
        """A line of a known kind."""
        source = fields.get("path") if fields else None
        for column, value in zip(self._columns.values(), (number, text, kind, source, fields or {}), strict=True):
            column.append(value)

    def take(self, number: int, text: str) -> None:
        """A line of any kind."""
        self._blanks = 0
        fields = self.tracebacks.take(text)
        if fields is not None:
            self._add_traceback(number, text, fields)
        elif _HEADING.fullmatch(text):
            self.add(number, text, "heading")
        elif path := _PATH.fullmatch(text):
            self._path = path["path"].rstrip()
            self.add(number, text, "path", {"path": self._path})
        else:
            named = _NAMED_PATH.search(text[:_LONGEST_REMARK])
            about = named["path"] if named else self._path
            self.add(number, text, "remark", {"path": about} if about else {})

    def _add_traceback(self, number: int, text: str, fields: dict[str, Any]) -> None:
        self._path = None
        self.add(number, text, "traceback", fields)

    def columns(self, names: list[str]) -> dict[str, list[Any]]:
        """As `log` has them; `names` are the kernels of all tables."""
        mentions = Mentions(names)
        for kind, text, fields in zip(*(self._columns[name] for name in ("kind", "text", "fields")), strict=True):
            if kind == "remark" and (kernels := mentions.find(text[:_LONGEST_REMARK])):
                fields["kernels"] = kernels
        fields = [msgspec.json.encode(each).decode() if each else None for each in self._columns["fields"]]
        return {**self._columns, "fields": fields}
