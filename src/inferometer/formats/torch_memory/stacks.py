"""The stacks of a snapshot as one tree: a file shares their lists, so each list is looked at once."""

from typing import Any, Final

_DEEPEST: Final = 1_000


class Stacks:
    """Nodes so far, callers first. `most`: frames that are looked at in all; a stack that comes later has none."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lists: dict[int, tuple[Any, int | None]] = {}  # with the list, so that its id stays its own
        self._nodes: dict[tuple[int | None, str], int] = {}
        self._parent: list[int | None] = []
        self._frame: list[str] = []
        self._depth: list[int] = []

    def add(self, frames: Any) -> int | None:
        """The innermost node of a stack, which a snapshot has first; None without one."""
        if not isinstance(frames, list | tuple) or not frames:
            return None
        known = self._lists.get(id(frames))
        if known is None:
            known = self._lists[id(frames)] = (frames, self._intern(frames))
        return known[1]

    def columns(self) -> dict[str, Any]:
        """Columns of `call_paths`."""
        return {
            "path_id": range(len(self._frame)),
            "parent_id": self._parent,
            "name": self._frame,
            "frame": self._frame,
            "depth": self._depth,
        }

    def _intern(self, frames: Any) -> int | None:
        shown = frames[:_DEEPEST]
        self._left -= len(shown)
        node: int | None = None
        for frame in reversed(shown) if self._left >= 0 else ():
            above, text = node, _text(frame)
            node = self._nodes.get((above, text))
            if node is None:
                node = self._nodes[above, text] = len(self._frame)
                self._frame.append(text)
                self._parent.append(above)
                self._depth.append(0 if above is None else self._depth[above] + 1)
        return node


def _text(frame: Any) -> str:
    if not isinstance(frame, dict):
        return "?"
    file, line, name = (frame.get(key) for key in ("filename", "line", "name"))
    where = f"{file}:{line} " if isinstance(file, str) and file and isinstance(line, int) and line > 0 else ""
    return f"{where}{name if isinstance(name, str) else '?'}"
