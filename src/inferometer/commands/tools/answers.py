"""A result as a tool's answer: the same data as `--json`, of bounded size, and a short text.

Long lists and maps are cut, and `left_out` says which, how long they are and what was kept. Texts are cut, too, and
have no secrets and no hidden characters: names from a file reach a model and a person who watches it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.errors import InputError, clean, show_hidden
from inferometer.privacy.secrets import blank_secrets

if TYPE_CHECKING:
    from inferometer.analyses.result import Result

MOST_BYTES = 60_000
"""Size of the data as JSON: some twenty thousand tokens."""

_LONGEST_TEXT = 2_000
_ONE_THING = 100  # so many plain values or keys are left whole: a shape, an interval, a record
_TABLE_ROWS = 10
_TEXT_CHARACTERS = 4_000

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"description": "What the command prints with --json."},
        "left_out": {
            "type": "array",
            "description": "Lists and maps of the answer that aren't whole; ask for more with limit and offset.",
            "items": {
                "type": "object",
                "properties": {
                    "where": {"type": "string", "description": "The path to it; [] stands for each entry of a list."},
                    "entries": {"type": "integer", "description": "How long it is (of several, the longest)."},
                    "from": {"type": "integer", "description": "The first entry kept."},
                    "shown": {"type": "integer", "description": "How many are kept."},
                },
                "required": ["where", "entries", "from", "shown"],
            },
        },
    },
    "required": ["answer", "left_out"],
}


@dataclass(frozen=True)
class Window:
    """At most `limit` entries of each list; of a list at the top of the answer, those from `offset` on."""

    limit: int
    offset: int


@dataclass(frozen=True)
class Answer:
    """The structured content, and the text."""

    content: dict[str, Any]
    text: str


def answer_with(data: Any, text: str, window: Window) -> Answer:
    """The data within the window, or within fewer entries where that is too large.

    Raises:
        InputError: A single entry of each list is too large.
    """
    import msgspec

    limit = window.limit
    while True:
        cut = _Cut(replace(window, limit=limit))
        content = {"answer": cut.kept(data), "left_out": list(cut.left_out.values())}
        encoded = msgspec.json.encode(content)
        if (size := len(encoded)) <= MOST_BYTES:
            return Answer(content, _short_text(text or encoded.decode(), cut))
        if limit == 1:
            raise InputError(
                f"expected an answer of at most {MOST_BYTES:,} bytes, found {size:,} with one entry of each list",
                hint="Ask for less: match, top, or another tool.",
            )
        limit = max(1, limit // 2)


def describe_result(result: "Result") -> str:
    """What people read first: facts, sentences, what was lost, then the first rows of each table."""
    from inferometer.reports.base import loss_lines
    from inferometer.reports.markdown import markdown_table
    from inferometer.reports.views.view import brief_of, facts_of, remarks_of, sections_of

    facts = [f"{label}: {text}" for label, text in facts_of(result)]
    lines = [*(brief_of(result) or (*facts, *remarks_of(result))), *loss_lines(result.losses)]
    first = [msgspec.structs.replace(section, frame=section.frame.head(_TABLE_ROWS)) for section in sections_of(result)]
    return "\n\n".join(filter(None, ["\n".join(map(clean, lines)), *map(markdown_table, first)]))


class _Cut:
    """One pass over the data; `left_out` grows as it goes, by path."""

    def __init__(self, window: Window) -> None:
        self.left_out: dict[str, dict[str, Any]] = {}
        self._window = window

    def kept(self, value: Any, where: str = "", depth: int = 0) -> Any:
        if isinstance(value, str):
            return _plain(value)
        if isinstance(value, list):
            if len(value) <= _ONE_THING and not any(isinstance(each, list | dict) for each in value):
                return [self.kept(each) for each in value]
            start = self._window.offset if depth <= 1 else 0
            few = value[start : start + self._window.limit]
            self._note(where, len(value), start, len(few))
            return [self.kept(each, f"{where}[]", depth + 1) for each in few]
        if isinstance(value, dict):
            keys = list(value)[: max(_ONE_THING, self._window.limit) if depth else None]
            self._note(where, len(value), 0, len(keys))
            return {_plain(key): self.kept(value[key], f"{where}.{key}" if where else key, depth + 1) for key in keys}
        return value

    def _note(self, where: str, entries: int, start: int, shown: int) -> None:
        known = self.left_out.get(where)
        if shown < entries and (known is None or known["entries"] < entries):
            self.left_out[where] = {"where": _plain(where), "entries": entries, "from": start, "shown": shown}


def _plain(text: str) -> str:
    text = show_hidden(blank_secrets(text))
    if len(text) > _LONGEST_TEXT:
        return f"{text[:_LONGEST_TEXT]}… ({len(text) - _LONGEST_TEXT:,} more characters)"
    return text


def _short_text(text: str, cut: _Cut) -> str:
    """`text` up to the line where there is no more room, below what isn't in the data."""
    return "\n".join([*_say_left_out(cut), *_first_lines(show_hidden(blank_secrets(text)))])


def _say_left_out(cut: _Cut) -> Iterator[str]:
    for each in list(cut.left_out.values())[:_TABLE_ROWS]:
        where = clean(each["where"]) or "the answer"
        yield f"Left out: {where} has {each['entries']:,} entries, shown {each['shown']:,} from {each['from']:,}."


def _first_lines(text: str) -> Iterator[str]:
    lines, room = text.split("\n"), _TEXT_CHARACTERS
    for i, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            yield f"… {len(lines) - i:,} more lines: the structured content has the data."
            return
        yield line
