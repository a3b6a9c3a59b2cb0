"""How a job reports its progress to the server."""

import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[str, float | None], None]
"""Called with what the job is doing, and the share of that which is done, 0 to 1; None where it isn't known."""

_EVERY_S = 0.1


class ProgressReporter:
    """A `Progress` that replies a few times a second, and at once when the job does something else."""

    def __init__(self, reply: Callable[[dict[str, Any]], None]) -> None:
        self._reply = reply
        self._doing, self._replied_at = "", 0.0

    def __call__(self, doing: str, share: float | None) -> None:
        """As `Progress`."""
        now = time.monotonic()
        if doing != self._doing or now - self._replied_at >= _EVERY_S:
            self._doing, self._replied_at = doing, now
            self._reply({"doing": doing, "share": share})
