"""How a file writes its numbers: ncu follows the locale, so `1,234` is 1234 in one file and 1.234 in another.

One answer holds for a whole file, and it is found, never assumed: `41.95` has a decimal point, `1.234.567` has points
between thousands, and a launch whose grid is (1056, 1, 1) and whose grid size is printed as `1,056` has commas there.
Blanks and apostrophes between thousands say nothing of it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from math import prod
from typing import Final, Literal

from inferometer.formats.ncu.pages import Launch

Mark = Literal[".", ","]
"""What is before the decimals."""

_BLANKS: Final = " '\u00a0\u2009\u202f\u2019"


def _pattern(mark: Mark, thousands: str) -> re.Pattern[str]:
    whole = rf"(?:[1-9]\d{{0,2}}(?:[{re.escape(thousands)}{_BLANKS}]\d{{3}}){{1,9}}|\d{{1,30}})"
    decimals = rf"(?:{re.escape(mark)}\d{{1,30}})?(?:[eE][-+]?\d{{1,3}})?"
    return re.compile(rf"[-+]?{whole}{decimals}|[-+]?(?:nan|inf)")


_MARKS: Final[dict[Mark, re.Pattern[str]]] = {".": _pattern(".", ","), ",": _pattern(",", ".")}
_SIZES: Final = {
    "launch__grid_size": "Grid Size",
    "Launch Statistics: Grid Size": "Grid Size",
    "launch__block_size": "Block Size",
    "Launch Statistics: Block Size": "Block Size",
}
"""Metrics that are the product of a size next to them."""


def read_number(text: str, mark: Mark = ".") -> Decimal | None:
    """A printed number, which may be NaN; None where it is none."""
    if not _MARKS[mark].fullmatch(text):
        return None
    plain = text.translate(dict.fromkeys(map(ord, _BLANKS)))
    plain = plain.replace(",", "") if mark == "." else plain.replace(".", "").replace(",", ".")
    try:
        return Decimal(plain)
    except InvalidOperation:
        return None


def is_number(text: str) -> bool:
    """Whether it is one in some file."""
    return any(pattern.fullmatch(text) for pattern in _MARKS.values())


def is_ambiguous(text: str) -> bool:
    """Whether it is one number with a decimal point, and another with a decimal comma."""
    numbers = [read_number(text, mark) for mark in _MARKS]
    return None not in numbers and str(numbers[0]) != str(numbers[1])


def find_mark(launches: Iterable[Launch]) -> Mark | None:
    """What is before decimals in most numbers that can be read in one way; None where none can, or on a tie."""
    votes = Counter(mark for launch in launches for mark in _marks_of(launch))
    point, comma = votes["."], votes[","]
    return None if point == comma else "." if point > comma else ","


def _marks_of(launch: Launch) -> Iterable[Mark]:
    """The mark of each number that can be read in one way alone."""
    for name, _, text in launch.metrics:
        possible: list[Mark] = [mark for mark, pattern in _MARKS.items() if pattern.fullmatch(text)]
        size = launch.size(_SIZES[name]) if name in _SIZES else None
        if size is not None and is_ambiguous(text):
            possible = [mark for mark in possible if read_number(text, mark) == prod(size)]
        if len(possible) == 1:
            yield possible[0]
