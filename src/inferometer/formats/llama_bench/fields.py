"""Fields of a test, whose values are JSON's or text, as CSV and Markdown have them."""

import math
from collections.abc import Mapping
from typing import Any, Final

from inferometer.trace.losses import Losses

_MOST: Final = 2**63 - 1
_SHOWN: Final = 60


class Fields:
    """The fields of one test. What has another type than the one asked for is null and counted."""

    def __init__(self, values: Mapping[str, Any], losses: Losses, line: int) -> None:
        self._values = values
        self._losses = losses
        self.line = line

    def names(self) -> list[str]:
        """All of them, in order."""
        return list(self._values)

    def text(self, name: str) -> str | None:
        """As one writes it: numbers and truth values, too; null, lists and empty texts are none."""
        value = self._values.get(name)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int | float):
            return f"{value}"
        return value.strip() or None if isinstance(value, str) else None

    def number(self, name: str) -> float | None:
        """A finite number of 0 or more."""
        value = self._values.get(name)
        if value is None or value == "":
            return None
        try:
            number = math.nan if isinstance(value, bool | list | dict) else float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if 0 <= number <= _MOST:
            return number
        self._refuse(name, value)
        return None

    def count(self, name: str) -> int | None:
        """A whole number of 0 or more."""
        number = self.number(name)
        if number is None or number.is_integer():
            return None if number is None else int(number)
        self._refuse(name, self._values.get(name))
        return None

    def times(self, name: str) -> list[int]:
        """A list of times above 0, ns; those that are none are counted."""
        values = self._values.get(name)
        if values is None:
            return []
        if not isinstance(values, list):
            self._refuse(name, values)
            return []
        good = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 < v <= _MOST]
        if len(good) < len(values):
            self._refuse(name, values)
        return good

    def _refuse(self, name: str, value: object) -> None:
        text = str(value)[:_SHOWN] if not isinstance(value, int) or abs(value) <= _MOST else "a number too large"
        self._losses.count("wrong_type", category="tests", example=f"line {self.line}: {name}: {text}")
