"""A way to see ops: Python's dispatch mode (`by_mode`), or the observer in C++ (`by_observer`)."""

from typing import Protocol

from inferometer.record.interception.signatures import Signature


class Way(Protocol):
    """Sees ops, modules and the user's functions of this process, between `start` and `stop`."""

    @property
    def is_active(self) -> bool:
        """Between `start` and `stop`."""

    @property
    def is_seeing(self) -> bool:
        """Whether ops are seen: not while paused."""

    def start(self) -> None:
        """Begin; raises when it can't."""

    def stop(self) -> None:
        """End, and hand over everything. What it began on other threads does nothing more."""

    def wait(self, seconds: float) -> None:
        """So long, or until rows should be handed over, or the end."""

    def flush(self, *, idle: bool = False) -> None:
        """Hand over what is over; `idle`: it is time that somebody does, nobody asked for it."""

    def abandon(self) -> None:
        """In a forked child: drop everything."""

    def cut(self) -> None:
        """A step begins or ends on this thread: functions around it get a range on either side."""

    def pause(self) -> None:
        """See nothing that begins, on any thread, until `resume`."""

    def resume(self) -> None:
        """See it again."""

    def end_region(self, signature: Signature, start_ns: int, *, is_on_cpu: bool) -> None:
        """What ran on this thread from `start_ns` on, which is no op: device work where no op ran in it, on a CPU."""

    def note(self) -> str | None:
        """What isn't seen, for the notes of the recording."""
