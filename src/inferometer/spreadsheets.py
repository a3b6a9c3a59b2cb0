"""Text in cells of CSV and TSV: a spreadsheet takes some of it for a formula, which may call programs or send data.

It does for text that begins with `=`, `+`, `-` or `@`, full-width ones too, whatever blanks, marks of byte order or
quotes come before them, and for text that begins with a tab or a line break, after which another cell could begin.
Such a cell gets a quote in front, which makes it text.
"""

import re

_BLANK = r"\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
_FORMULA = re.compile(rf"['{_BLANK}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]")


def guard(text: str) -> str:
    """`text` as a cell that no spreadsheet runs. What begins with such a quote gets one too: see `unguard`."""
    return "'" + text if _FORMULA.match(text) else text


def unguard(cell: str) -> str:
    """The text that `guard` made the cell of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
