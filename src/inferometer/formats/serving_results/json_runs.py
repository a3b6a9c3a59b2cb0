"""JSON objects one after another in a file: one, lines of them, or a list; read field by field.

Python's `json` writes `NaN` and `Infinity`, which are no JSON: NaN counts as absent. Benchmarks append to their files,
so a file of one object today has several tomorrow.
"""

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from inferometer.errors import FormatError
from inferometer.formats.held import read_held
from inferometer.formats.source import Limits, Source

_LONGEST = 60  # characters of a wrong value in a message
_TOO_LARGE = "Leave out the details of each request, or lift the limits if you trust the file."
MOST = 2**63 - 1
_SPACE = " \t\r\n\ufeff"
_DECIMALS = 3  # of a time in ns: the tools' floats hold no more


class RunFields:
    """The fields of one object. `source` is the file, `where` the file and the object, for messages.

    A field that is null or NaN counts as absent. Another type than the one wanted raises a FormatError.
    """

    def __init__(self, fields: dict[str, Any], source: str, where: str) -> None:
        self.source = source
        self.where = where
        self._fields = fields

    @property
    def names(self) -> list[str]:
        """All fields."""
        return list(self._fields)

    def has(self, *names: str) -> bool:
        """Whether all of these are there."""
        return all(name in self._fields for name in names)

    def text(self, name: str) -> str | None:
        """Text that isn't empty."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            self.refuse(name, "text", value)
        return value or None

    def number(self, name: str) -> float | None:
        """A finite number of any sign."""
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MOST:
            if isinstance(value, float) and math.isinf(value):
                return None
            self.refuse(name, "a number", value)
        return float(value)

    def positive(self, name: str) -> float | None:
        """A number; 0 and less are what the tools write where there is nothing to tell."""
        value = self.number(name)
        return value if value is not None and value > 0 else None

    def ns(self, name: str, scale: float) -> float | None:
        """A time above 0, in ns; `scale` is ns in the field's unit."""
        value = self.positive(name)
        return None if value is None else round(value * scale, _DECIMALS)

    def count(self, name: str) -> int | None:
        """A whole number; less than 0 is none."""
        value = self.number(name)
        if value is None or value < 0:
            return None
        if not value.is_integer():
            self.refuse(name, "a whole number", self._fields[name])
        return int(value)

    def rate(self, name: str) -> float | None:
        """A rate; words for "no limit" (`inf`) or another plan (`trace`) are none."""
        return None if isinstance(self._fields.get(name), str) else self.positive(name)

    def items(self, name: str) -> list[Any] | None:
        """A list; what it holds is for the caller."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, list):
            self.refuse(name, "a list", value)
        return value

    def child(self, name: str) -> "RunFields":
        """An object in this one."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.refuse(name, "an object", value)
        return RunFields(value or {}, self.source, f"{self.where}: {name}")

    def refuse(self, name: str, wanted: str, found: object) -> NoReturn:
        """Raise what a wrong field raises."""
        raise FormatError(
            f"{self.where}: {name}: expected {wanted}, found {_show(found)}",
            hint="Write the result again with the benchmark itself.",
        )


def read_runs(path: str | Path, *, limits: Limits | None, wanted: str, hint: str) -> list[RunFields]:
    """All objects of a file, at least one; `wanted` and `hint` are for messages.

    Raises:
        InputError: It can't be opened.
        FormatError: It is larger than `limits.held_bytes`, damaged, empty, or no such JSON.
    """
    source = Source(path, limits=limits)
    text = read_held(source, hint=_TOO_LARGE).decode("utf-8", "replace")
    found = _decode(text, source.name, wanted, hint)
    if len(found) == 1 and isinstance(found[0], list):
        found = found[0]
    if not found:
        raise FormatError(f"{source.name}: expected {wanted}, found an empty file", hint=hint)
    runs = []
    for number, fields in enumerate(found):
        where = source.name if len(found) == 1 else f"{source.name}: run {number}"
        if not isinstance(fields, dict):
            raise FormatError(f"{where}: expected {wanted}, found {_show(fields)}", hint=hint)
        runs.append(RunFields(fields, source.name, where))
    return runs


def _decode(text: str, name: str, wanted: str, hint: str) -> list[Any]:
    decoder = json.JSONDecoder(parse_constant=_constant)
    found: list[Any] = []
    at = _skip(text, 0)
    while at < len(text):
        where = name if not found else f"{name}: run {len(found)}"
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            if at < error.pos and (error.pos >= len(text) - 1 or error.msg.startswith("Unterminated string")):
                shown = "the end of the file in the middle of an object"
                raise FormatError(
                    f"{where}: line {error.lineno}: expected {wanted}, found {shown}",
                    hint="The benchmark may not have ended: run it again, or remove the last line.",
                ) from error
            raise FormatError(
                f"{where}: line {error.lineno}, column {error.colno}: expected {wanted}, found no JSON ({error.msg})",
                hint=hint,
            ) from error
        except (RecursionError, ValueError) as error:  # nested too deep; a number of thousands of digits
            raise FormatError(
                f"{where}: expected {wanted}, found JSON that can't be read ({error})", hint=hint
            ) from error
        found.append(value)
        at = _skip(text, at)
    return found


def _constant(word: str) -> float | None:
    return {"Infinity": math.inf, "-Infinity": -math.inf}.get(word)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _show(value: object) -> str:
    if value is None:
        return "null"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # thousands of digits, nested too deep
        return f"something that is too long to show ({type(value).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
