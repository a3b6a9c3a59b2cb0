"""JSON objects out of a text that is held as a whole: an array of them, lines of them, or one, with other text around.

Benchmarks print such texts, and programs log before and between. An object that doesn't decode is repaired as
`repair` does; one that still doesn't is counted, and so is one in which the text ends.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.json_text.repair import repair
from inferometer.formats.json_text.window import object_end
from inferometer.trace.losses import Losses

_SPACE: Final = re.compile(rb"[ \t\r\n,]*")
_OPENS: Final = re.compile(rb"\[(?=\s*(?:[\[{\]]|\Z))")
_NEXT: Final = re.compile(rb"^[ \t\[,]*(?=\{)", re.MULTILINE)
_MARK: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 60
Mend = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Found:
    """An object's fields, or a line of other text; `line` is where it begins, from 1."""

    line: int
    fields: dict[str, Any] | None = None
    text: str = ""


class Objects:
    """The objects of a text in order, and the lines between.

    Args:
        data: UTF-8.
        losses: Where damage is counted.
        category: Under which; each object is seen there only where it can't be read.
        mend: What the format's writer leaves undone, such as escaping names; asked where an object doesn't decode.
    """

    def __init__(self, data: bytes, losses: Losses, category: str, *, mend: Mend | None = None) -> None:
        self._data = bytearray(data.removeprefix(_MARK))
        self._losses = losses
        self._category = category
        self._mend = mend
        self._pos = self._line = self._counted = 0
        self._open = 0

    def __iter__(self) -> Iterator[Found]:
        while (at := self._skip_space()) < len(self._data):
            if self._data[at] == ord("{"):
                line, fields = self._line_at(at), self._object(at)
                if fields is not None:
                    yield Found(line, fields)
            elif _OPENS.match(self._data, at) or self._data[at] == ord("]"):
                self._open += 1 if self._data[at] == ord("[") else -1
                self._pos = at + 1
            else:
                end = self._data.find(b"\n", at)
                self._pos = len(self._data) if end == -1 else end
                if end == -1:
                    self._losses.count("truncated", example="the last line has no end")
                text = self._data[at : self._pos].decode("utf-8", "replace").rstrip("\r")
                yield Found(self._line_at(at), text=text)
        if self._open > 0 and not self._losses.total("truncated"):
            self._losses.count("truncated", example="an array without its end")

    def _skip_space(self) -> int:
        match = _SPACE.match(self._data, self._pos)
        self._pos = match.end() if match else self._pos
        return self._pos

    def _line_at(self, at: int) -> int:
        self._line += self._data.count(b"\n", self._counted, at)
        self._counted = at
        return self._line + 1

    def _object(self, at: int) -> dict[str, Any] | None:
        """The object that begins at `at`; moves behind it, or to where another might begin."""
        stop = object_end(self._data, at, len(self._data))
        line_end = self._data.find(b"\n", at)
        line_end = len(self._data) if line_end == -1 else line_end
        for end in dict.fromkeys((stop, line_end)):  # a quote that isn't escaped hides the end of an object
            text = bytes(self._data[at:end]).rstrip().rstrip(b",").rstrip() if end != -1 else b""
            if text.endswith(b"}") and (fields := self._decode(text)) is not None:
                self._pos = end
                return fields
        following = _NEXT.search(self._data, line_end)
        if stop == -1 and following is None:
            self._losses.count("truncated", example=f"in the object of line {self._line_at(at)}")
            self._pos = len(self._data)
            return None
        head = bytes(self._data[at : at + _SHOWN]).decode("utf-8", "replace")
        self._losses.see(self._category)
        self._losses.count("unreadable_event", category=self._category, example=f"line {self._line_at(at)}: {head}")
        self._pos = len(self._data) if following is None else following.end()
        if stop != -1 and (following is None or stop < self._pos):
            self._pos = stop
        return None

    def _decode(self, text: bytes) -> dict[str, Any] | None:
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except BAD_JSON:
            pass
        counted = Losses()
        for attempt in (text, self._mend(text) if self._mend else text):
            try:
                fields = msgspec.json.decode(repair(attempt, counted), type=dict[str, Any])
            except BAD_JSON:
                counted = Losses()
                continue
            self._losses.add(counted)
            if attempt is not text:
                self._losses.count("bad_escape", example=text[:_SHOWN].decode("utf-8", "replace"))
            return fields
        return None
