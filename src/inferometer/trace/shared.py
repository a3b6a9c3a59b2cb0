"""What several threads make of one trace at once, each once."""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, cast

Made = TypeVar("Made")


class Shared:
    """What was made for each key, for so many `users`."""

    def __init__(self) -> None:
        self.users = 0
        self._lock = Lock()
        self._locks: dict[Hashable, Lock] = {}
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What the first that asked for the key made; others wait for it."""
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
            return cast("Made", self._made[key])
