"""The fast scan for device work alone: cut out its text and decode only that.

Anything irregular that it meets (damage to device work, mixed layouts, no device work at all) ends the scan with
`ScanFailed`, and the file is read in full instead. Damage elsewhere is neither met nor counted.
"""

from collections.abc import Iterator

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.json_text.text import Text
from inferometer.formats.kineto.arguments import LaunchEvent, decode_launches
from inferometer.formats.kineto.columns import LAUNCH_KINDS
from inferometer.formats.kineto.cut import BLOCK_BYTES, CutFailed, CuttingProcess, cut_launches, learn_separator
from inferometer.formats.kineto.dispatch import FLUSH_EVENTS, Sorter
from inferometer.formats.kineto.events import EventReader
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.source import Source
from inferometer.trace.losses import Losses


class ScanFailed(Exception):
    """Only a full read can be sure."""


class LaunchScan:
    """Reads an array of events from the text's position just behind its `[`, launches only."""

    def __init__(
        self, source: Source, text: Text, sorter: Sorter, reader: EventReader, header: FileHeader, losses: Losses
    ) -> None:
        self._source = source
        self._text = text
        self._sorter = sorter
        self._reader = reader
        self._header = header
        self._losses = losses
        self._held: dict[str, list[LaunchEvent]] = {}

    def run(self) -> None:
        """Leaves the text behind the array. Raises `ScanFailed` where a full read is needed to be sure."""
        if not self._header.is_kineto:
            raise ScanFailed
        try:
            cut_any = False
            for block in self._blocks():
                cut_any = True
                self._keep(decode_launches(b"[" + block + b"]"))
            self._flush()
        except (CutFailed, *BAD_JSON) as error:
            raise ScanFailed from error
        if cut_any and not self._losses.seen:  # older versions of PyTorch write "Kernel", which is not searched for
            raise ScanFailed
        for events in self._reader.batches():
            self._sorter.take(events)
        self._sorter.flush()
        if self._losses.seen.total() == 0 or any(loss.dropped for loss in self._losses):
            raise ScanFailed

    def _blocks(self) -> Iterator[bytes]:
        if not isinstance(self._source.ahead, CuttingProcess):
            yield from cut_launches(self._text, learn_separator(self._text))
            return
        for n, block in enumerate(self._source.ahead.blocks(self._text)):
            self._source.report(n * BLOCK_BYTES)
            yield block

    def _keep(self, events: list[LaunchEvent]) -> None:
        for event in events:
            if event.cat in self._held:
                self._held[event.cat].append(event)
            elif event.cat in LAUNCH_KINDS:
                self._held[event.cat] = [event]
        if sum(map(len, self._held.values())) >= FLUSH_EVENTS:
            self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, {}
        for category, events in held.items():
            if any(event.ph != "X" for event in events):
                raise ScanFailed
            self._losses.see(category, len(events))
            self._sorter.columns.decoded_launches(events, category)
