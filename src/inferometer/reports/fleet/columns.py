"""Headings and texts of columns as the page's script reads them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from inferometer.errors import clean
from inferometer.reports.base import is_right
from inferometer.reports.page.blocks import ADDITIVE
from inferometer.reports.page.figures import without_surrogates
from inferometer.reports.screen.shown_names import cut_names, label_kernels
from inferometer.reports.views.layout import NAMES, Field

_SHORT: Final = 60  # characters of a name that are seen at first
_LONGEST: Final = 1_000


def column_data(field: Field) -> dict[str, Any]:
    """A column's heading, and how the script shows and sums it."""
    summed = field.column in ADDITIVE and is_right(field)
    return {"title": field.title, "kind": field.kind, "right": is_right(field), "summed": summed, "spare": field.spare}


def texts_of(field: Field, values: Sequence[str | None]) -> list[str | list[str]]:
    """Texts as they are shown: one, or a short one and the whole; of None a dash."""
    whole = {value: _plain(value) for value in dict.fromkeys(values) if value is not None}
    short: Mapping[str, str] = {}
    if field.kind in NAMES:
        labels = label_kernels(whole) if field.kind == "kernel" else whole
        short = cut_names(labels, _SHORT)

    def shown(value: str) -> str | list[str]:
        text = short.get(value, whole[value])
        return text if text == whole[value] else [text, whole[value]]

    return ["-" if value is None else shown(value) for value in values]


def _plain(text: str) -> str:
    return without_surrogates(clean(text[:_LONGEST])) + ("…" if len(text) > _LONGEST else "")
