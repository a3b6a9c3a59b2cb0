"""The recordings of this process that run now, as forks, exits and other recordings see them."""

from pathlib import Path
from typing import Protocol

from inferometer.record.clock import Clock
from inferometer.record.parts import Options


class Running(Protocol):
    """A recording between its start and its stop."""

    options: Options
    clock: Clock | None
    parts: Path | None

    def forked(self, folder: Path | None) -> None:
        """In a forked child: what it records goes to a part of its own in `folder`."""

    def flush(self) -> None:
        """Write what there is: the process is about to vanish."""


RUNNING: list[Running] = []
