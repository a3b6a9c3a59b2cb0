"""Python tracebacks in text: frames as nodes of `call_paths`, root first, common beginnings shared within a rank.

Lines may carry a prefix (`[rank0]:`, a logger's), the head `Traceback (most recent call last):` may be missing, and
several processes may print at once: a stack is followed by its prefix, in which times may change from line to line.
"""

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

_FRAME = re.compile(
    r'(?P<prefix>[^"]{0,400}?)\bFile "(?P<path>[^"\n]+)", line (?P<line>[0-9]{1,9})(?:,? in (?P<function>\S.*))?'
)
_HEAD = re.compile(
    r"(?P<prefix>.{0,400}?)(?:Traceback|Stack|(?:Current )?[Tt]hread .{1,60})"
    r" \(most recent call (?P<side>last|first)\):"
)
_PREFIX = re.compile(r"\s*(?:(?:\S.*)?[:\])>|]\s+)?")
_TIME = re.compile(r"[0-9]+(?:[-:/.,][0-9]+)+")
_RANK = re.compile(r"\brank\s?[=:]?\s?(?P<rank>[0-9]{1,9})\b", re.IGNORECASE)
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_EXCEPTION = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:: .*)?")
_EXCEPTION_ENDINGS = ("Error", "Exception", "Interrupt", "Exit", "Iteration", "Warning", "Timeout", "Expired", "Group")
_MOST_OPEN = 64  # stacks of different prefixes at once


@dataclass(frozen=True)
class Frame:
    """`file:line function`, as `call_paths` has it."""

    path: str
    line: int
    function: str | None

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.function or f"{self.path}:{self.line}"

    @property
    def text(self) -> str:
        """The declared form."""
        return f"{self.path}:{self.line} {self.function}" if self.function else f"{self.path}:{self.line}"


@dataclass
class CallPaths:
    """The tree: one entry per node in each list; `frames` counts all frames met."""

    parent_id: list[int | None] = field(default_factory=list)
    frame: list[Frame] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    rank: list[int | None] = field(default_factory=list)
    frames: int = 0
    _nodes: dict[tuple[int | None, int | None, Frame], int] = field(default_factory=dict)

    def intern(self, parent_id: int | None, frame: Frame, rank: int | None) -> int:
        """The node of `frame` below `parent_id`."""
        self.frames += 1
        key = (rank, parent_id, frame)
        if key not in self._nodes:
            self._nodes[key] = len(self.frame)
            self.frame.append(frame)
            self.parent_id.append(parent_id)
            self.depth.append(0 if parent_id is None else self.depth[parent_id] + 1)
            self.rank.append(rank)
        return self._nodes[key]

    def columns(self) -> dict[str, list[Any]]:
        """As `call_paths` has them."""
        return {
            "path_id": list(range(len(self.frame))),
            "parent_id": self.parent_id,
            "name": [frame.name for frame in self.frame],
            "frame": [frame.text for frame in self.frame],
            "depth": self.depth,
            "rank": self.rank,
        }


@dataclass
class _Stack:
    prefix: str
    rank: int | None
    has_head: bool = False
    root_last: bool = False
    frames: list[tuple[Frame, dict[str, Any]]] = field(default_factory=list)


class Tracebacks:
    """Follows the stacks of a text, line by line, and interns them in `paths` as they end."""

    def __init__(self) -> None:
        self.paths = CallPaths()
        self._open: dict[Hashable, _Stack] = {}

    def take(self, text: str) -> dict[str, Any] | None:
        """What a line of a traceback says, for its `fields`; None when it belongs to none.

        A frame's `path_id` is filled in when its stack has ended.
        """
        text = text.rstrip()
        if match := find_frame(text):
            return self._take_frame(match)
        if "(most recent call" in text and (match := _HEAD.fullmatch(text)):
            stack = self._begin(match["prefix"])
            stack.has_head, stack.root_last = True, match["side"] == "first"
            return {}
        for key, stack in list(self._open.items()):
            if _key(text[: len(stack.prefix)]) == key:
                return self._take_rest(key, stack, text[len(stack.prefix) :])
        return {} if any(words in text for words in _CHAIN) else None

    def end(self) -> None:
        """A blank line, a table or the end of the text: what was open has ended."""
        while self._open:
            self._close(next(iter(self._open)))

    def _take_frame(self, match: re.Match[str]) -> dict[str, Any]:
        prefix = match["prefix"].rstrip()
        stack = self._open.get(_key(prefix)) or self._begin(prefix)
        frame = Frame(match["path"], int(match["line"]), match["function"])
        fields = {"path": frame.path, "line": frame.line}
        fields |= {"function": frame.function} if frame.function else {}
        fields |= {"rank": stack.rank} if stack.rank is not None else {}
        stack.frames.append((frame, fields))
        return fields

    def _take_rest(self, key: Hashable, stack: _Stack, text: str) -> dict[str, Any] | None:
        if text.startswith("  ") and text.strip():  # the source line, its marks, a repetition
            return {}
        if any(words in text for words in _CHAIN):
            return {}
        exception = _EXCEPTION.fullmatch(text.strip())
        self._close(key)
        if exception and (stack.has_head or exception["name"].endswith(_EXCEPTION_ENDINGS)):
            fields: dict[str, Any] = {"exception": text.strip()}
            if stack.frames:
                fields["path_id"] = stack.frames[0 if stack.root_last else -1][1]["path_id"]
            return fields
        return None

    def _begin(self, prefix: str) -> _Stack:
        prefix = prefix.rstrip()
        self._close(_key(prefix))
        if len(self._open) >= _MOST_OPEN:
            self._close(next(iter(self._open)))
        rank = _RANK.search(prefix)
        stack = _Stack(prefix, int(rank["rank"]) if rank else None)
        self._open[_key(prefix)] = stack
        return stack

    def _close(self, key: Hashable) -> None:
        stack = self._open.pop(key, None)
        parent_id = None
        for frame, fields in (reversed(stack.frames) if stack.root_last else stack.frames) if stack else ():
            parent_id = self.paths.intern(parent_id, frame, stack.rank if stack else None)
            fields["path_id"] = parent_id


def find_frame(text: str) -> re.Match[str] | None:
    """The frame that a line is about: `prefix`, `path`, `line` and `function`."""
    match = _FRAME.fullmatch(text.rstrip()) if 'File "' in text else None
    return match if match and _PREFIX.fullmatch(match["prefix"]) else None


def _key(prefix: str) -> str:
    return _TIME.sub("", prefix)
