"""How a job says what it is at."""

import time
from collections.abc import Callable
from typing import Any

Tell = Callable[[str, float | None], None]
"""What it is at, and how much of that is done, 0 to 1; None where that isn't known."""

_EVERY_S = 0.1


class Told:
    """Says what the job is at, a few times a second."""

    def __init__(self, reply: Callable[[dict[str, Any]], None]) -> None:
        self._reply = reply
        self._doing, self._at = "", 0.0

    def __call__(self, doing: str, share: float | None) -> None:
        """As `Tell`."""
        now = time.monotonic()
        if doing != self._doing or now - self._at >= _EVERY_S:
            self._doing, self._at = doing, now
            self._reply({"doing": doing, "share": share})
