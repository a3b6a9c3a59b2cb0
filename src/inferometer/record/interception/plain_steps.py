"""Steps of a recording without intercepted ops: where ops weren't wanted, or torch never came."""

import threading
from typing import TYPE_CHECKING

from inferometer.record.interception.steps import Marks, begin_marks, end_marks

if TYPE_CHECKING:
    from inferometer.record.sink import Sink

_FLUSH_S = 0.5


class PlainSteps:
    """What `inferometer.step` marks, between `start` and `stop`; a thread hands it over, so that little waits."""

    def __init__(self, sink: "Sink") -> None:
        self._marks = Marks(sink)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Steps that begin from now on."""
        begin_marks(self._marks)
        self._thread = threading.Thread(target=self._tick, name="inferometer-steps", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the open ones. Twice is no error."""
        self._stopping.set()
        end_marks(self._marks)

    def flush(self) -> None:
        """Hand over the steps that are over."""
        self._marks.flush()

    def _tick(self) -> None:
        while not self._stopping.wait(_FLUSH_S):
            self._marks.flush()
