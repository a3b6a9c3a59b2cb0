"""How a result is shown: its facts, tables and sentences; terminal, Markdown, CSV, HTML and JSON all render from them.

Each view is a file of this folder with the constant `VIEW`, by the name that the result gives as `view`. It is loaded
when the first such result is shown, and no other with it. Other packages name theirs by an entry point.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from inferometer.analyses.result import Result
from inferometer.registry import find
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Section

R = TypeVar("R", bound=Result)


def _none(_: Any) -> tuple[Any, ...]:
    return ()


def _nothing(_: Any) -> dict[str, Any]:
    return {}


class View(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """Functions that take the result, and what its JSON is called.

    Attributes:
        schema: Which document `--json` prints of it.
        sections: The tables, in order.
        more: Further tables, too long for a terminal; where the view has a brief, Markdown folds them with the others.
        facts: Lines above the tables: a label and its text.
        remarks: Sentences for the reader, the most important first.
        brief: Lines that say the most where there is little room, as in a pull request; Markdown folds all else then.
        remarks_in_json: Whether `--json` has `remarks` after what `as_json()` gives.
        in_json: What else it has then, before the losses; a key of `as_json()` is replaced.
        table: All rows as one table, exact, for spreadsheets; None: the first section is that.
    """

    schema: Schema
    sections: Callable[[R], Iterable[Section]]
    more: Callable[[R], Iterable[Section]] = _none
    facts: Callable[[R], Iterable[tuple[str, str]]] = _none
    remarks: Callable[[R], Iterable[str]] = _none
    brief: Callable[[R], Iterable[str]] = _none
    remarks_in_json: bool = False
    in_json: Callable[[R], Mapping[str, Any]] = _nothing
    table: Callable[[R], Section] | None = None


def view_of(result: R) -> View[R]:
    """The view that belongs to the result.

    Raises:
        UnknownName: There is none of that name.
    """
    view: View[R] = find(__package__, "VIEW", result.view)
    return view


def facts_of(result: Result) -> tuple[tuple[str, str], ...]:
    """Lines above the tables."""
    return tuple(view_of(result).facts(result))


def sections_of(result: Result) -> tuple[Section, ...]:
    """The tables, in order."""
    return tuple(view_of(result).sections(result))


def more_of(result: Result) -> tuple[Section, ...]:
    """Further tables, for where there is room."""
    return tuple(view_of(result).more(result))


def brief_of(result: Result) -> tuple[str, ...]:
    """Lines that say the most where there is little room; empty where the view folds nothing."""
    return tuple(view_of(result).brief(result))


def remarks_of(result: Result) -> tuple[str, ...]:
    """Sentences for the reader, the most important first."""
    return tuple(view_of(result).remarks(result))


def table_of(result: Result) -> Section:
    """All rows as one table, exact; for spreadsheets."""
    view = view_of(result)
    return sections_of(result)[0] if view.table is None else view.table(result)


def json_of(result: Result) -> dict[str, Any]:
    """Everything as plain data, as `--json` prints it: the schema's name and version, then `content_of`."""
    return view_of(result).schema.document(content_of(result))


def content_of(result: Result) -> dict[str, Any]:
    """`as_json()`, with sentences where the view adds them."""
    data, view = result.as_json(), view_of(result)
    more = {**({"remarks": [*view.remarks(result)]} if view.remarks_in_json else {}), **view.in_json(result)}
    added = {key: value for key, value in more.items() if key not in data}
    found: dict[str, Any] = {}
    for key, value in data.items():
        found |= added if key == "losses" else {}
        found[key] = more.get(key, value)
    return found | added
