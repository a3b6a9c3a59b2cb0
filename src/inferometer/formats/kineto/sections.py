"""A long array of events in sections, each read as if nothing stood before it.

A section holds the events that begin in its bytes: it ends before the first one that begins at its limit or later.
What is read of it depends on where it begins and on nothing else, not even on damage before it; so it makes no
difference which process reads which section, and `read_in_sections` and `workers.py` agree.

Where a section begins is known for sure only at the end of the one before. `find_start` guesses it from the text
around: who uses the guess compares it with that end.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from inferometer.formats.json_text.records import BAD_JSON, BEFORE_BYTES, BOUNDARY
from inferometer.formats.json_text.window import Window, object_end
from inferometer.formats.kineto.dispatch import Sorter
from inferometer.formats.kineto.events import EventReader, decode_event, decode_events
from inferometer.formats.kineto.typed import TypedDecoder
from inferometer.formats.source import Source, Stream
from inferometer.trace.losses import Losses

SECTION_BYTES: Final = 16 << 20
_LOOK_BYTES: Final = 1 << 20
_TRIES: Final = 64


class Sections(msgspec.Struct, frozen=True):
    """The sections of one array; the first begins at `begin`, a place in the text, and each has `size` bytes."""

    begin: int
    size: int

    def limit(self, number: int) -> int:
        """Where section `number` ends at the earliest."""
        return self.begin + (number + 1) * self.size


class SectionReader:
    """Reads sections of one array into a sorter.

    Args:
        tables: Those that are wanted.
        event_bytes: The largest event; None: no limit.
        bare: The array is the whole file, and need not be closed.
    """

    def __init__(self, tables: frozenset[str], *, event_bytes: int | None, bare: bool) -> None:
        self._many: Callable[[bytes], list[Any]] = TypedDecoder(tables, decode_events).decode
        self._event_bytes = event_bytes
        self.bare = bare

    def read(self, text: Window, losses: Losses, sorter: Sorter, limit: int) -> bool:
        """All events from the text's position that begin before `limit`; whether the array ended with them."""
        text.start_over()
        reader = EventReader(text, losses, event_bytes=self._event_bytes, bare=self.bare, until=limit, many=self._many)
        for events in reader.batches():
            sorter.take(events)
        sorter.flush()
        return reader.is_done


def read_in_sections(
    text: Window, losses: Losses, sorter: Sorter, reader: SectionReader, sections: Sections, first: int = 0
) -> None:
    """Every section from `first` on, where `text` stands, one after the other."""
    number = first
    while not reader.read(text, losses, sorter, sections.limit(number)):
        number += 1


def find_start(text: Window, at_least: int) -> bool:
    """Move to the first event that seems to begin at `at_least` or later; False where none is near.

    What looks like an event may stand inside another one.
    """
    text.fill(_LOOK_BYTES)
    earliest, tries = at_least - text.offset + text.pos, 0
    for match in BOUNDARY.finditer(text.buf, text.pos, text.end):
        start = match.end()
        if start < earliest:
            continue
        stop = object_end(text.buf, start, text.end)
        try:
            if stop != -1 and decode_event(bytes(text.buf[start:stop])).ph:
                text.pos = start
                return True
        except BAD_JSON:
            pass
        tries += 1
        if tries == _TRIES:
            break
    return False


class Places:
    """The text of a source that can be opened again, from any place on. Packed data is unpacked up to there."""

    def __init__(self, source: Source) -> None:
        assert source.path is not None
        self._source = Source(source.path, limits=source.limits)  # without progress: whoever joins sections reports it
        self._is_packed = source.is_packed
        self._stream: Stream | None = None
        self._text: Window | None = None

    @property
    def damage(self) -> str | None:
        """What is wrong with the compressed data, as far as it was read."""
        return self._stream.damage if self._stream else None

    def at(self, offset: int) -> Window:
        """The text from `offset` on; what was given before must not be used any more.

        Raises:
            InputError: The file can't be opened, or unpacks to more than the limit.
        """
        if self._text is None or not self._is_packed or self._text.offset > offset:
            self.close()
            self._stream = self._source.open()
            if not self._is_packed:
                self._stream.seek(offset)
            self._text = Window(self._stream, 0 if self._is_packed else offset)
        self._text.skip_to(offset)
        return self._text

    def near(self, offset: int) -> Window:
        """The text from a little before `offset` on, where an event may end."""
        return self.at(max(0, offset - BEFORE_BYTES))

    def close(self) -> None:
        """Close the file."""
        if self._stream:
            self._stream.close()
        self._stream = self._text = None
