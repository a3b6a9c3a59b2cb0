"""Causes are looked for while watching goes on: in a process of its own, one question at a time.

To compare two windows takes seconds of the processor and some hundred megabytes, which a watcher beside an engine must
not hold. The process ends after each answer.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from inferometer.errors import InferometerError
from inferometer.guarded import Guarded
from inferometer.watch.cause import Why
from inferometer.watch.watched import Window

_BYTES = 2 << 30
_SECONDS = 120.0
_CLOSE_S = 1.0


class Explainer:
    """Answers `ask` some seconds later, by `answers`.

    Args:
        place: Brings what was recorded so far to disk, and gives the store or the folder of stores.
        on_trouble: Called, from another thread, with why a question has no answer.
    """

    def __init__(self, place: Callable[[], Path], on_trouble: Callable[[str], object]) -> None:
        self._place, self._on_trouble = place, on_trouble
        self._questions: SimpleQueue[tuple[int, Window] | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[int, Why | None]] = SimpleQueue()
        self._process = Guarded(__name__, memory_bytes=_BYTES, seconds=_SECONDS, bounded="data")
        self._is_closed = False
        self.open_questions = 0
        self._thread = threading.Thread(target=self._run, name="inferometer-explainer", daemon=True)
        self._thread.start()

    def ask(self, number: int, window: Window) -> None:
        """Why is the slowdown `number` one?"""
        self.open_questions += 1
        self._questions.put((number, window))

    def answers(self, wait_s: float = 0.0) -> list[tuple[int, Why | None]]:
        """Those that came since the last call, after `wait_s` at most for the first that is still open."""
        found: list[tuple[int, Why | None]] = []
        try:
            while self.open_questions:
                found.append(self._answers.get(timeout=wait_s) if wait_s and not found else self._answers.get_nowait())
                self.open_questions -= 1
        except Empty:
            pass
        return found

    def close(self) -> None:
        """End; what is being looked for isn't waited for."""
        self._is_closed = True
        self._questions.put(None)
        self._process.close()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while (question := self._questions.get()) is not None and not self._is_closed:
            number, window = question
            try:
                self._answers.put((number, self._answer(window)))
            except Exception:  # the edge of a worker: its process was ended under its hands
                if not self._is_closed:
                    raise

    def _answer(self, window: Window) -> Why | None:
        try:
            found = self._process.call("why", str(self._place()), *window)
        except InferometerError as error:
            if not self._is_closed:
                self._on_trouble(f"no cause was looked for: {error.message}")
            return None
        finally:
            self._process.close()
        return None if found is None else Why.from_json(found)


def _why(path: str, *window: int) -> dict[str, Any] | None:
    """In the process: what `find_why` says of a store, or of parts of a recording."""
    from inferometer.formats.opening import open_trace
    from inferometer.trace.tables import TABLES
    from inferometer.watch.following import store_of
    from inferometer.watch.why import NEEDED, find_why

    with TemporaryDirectory(prefix="inferometer-watch-") as scratch:
        place = store_of(Path(path), Path(scratch))
        with open_trace(place, {table: tuple(TABLES[table].schema) for table in NEEDED}) as trace:
            found = find_why(trace, *window)
    return found.as_json() if found else None


SERVED = {"why": _why}
