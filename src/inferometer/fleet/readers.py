"""What reads traces for `mining`: processes on this machine (`workers`), or tasks of a cluster (`on_ray`)."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from inferometer.fleet.sources import Place


class ReadersClosed(Exception):
    """They were ended while one of them was at work: that says nothing of the trace."""


@dataclass(frozen=True)
class Reading:
    """A place that is being read: `trace` names its content; `digest` gives the packed digest.

    `digest` raises `SetAside` where the content can't be read, and `ReadersClosed`.
    """

    trace: str
    digest: Callable[[], bytes]


class Readers(Protocol):
    """Read places for several threads, `count` at once; they are there until the block ends."""

    @property
    def count(self) -> int:
        """How many places are read at once; known inside the block."""

    def reading(self, place: Place) -> AbstractContextManager[Reading]:
        """Hash the content of a place, and be ready to make its digest.

        Raises:
            SetAside: It can't be read at all.
        """

    def close(self) -> None:
        """End all of them, also those at work."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """End them."""
