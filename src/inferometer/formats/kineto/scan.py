"""The fast scan for device work alone: cut out its text and decode only that.

Anything irregular that it meets (damage to device work, mixed layouts, no device work at all) ends the scan with
`ScanFailed`, and the file is read in full instead. Damage elsewhere is neither met nor counted.
"""

import io
from collections.abc import Collection, Iterator

import polars as pl

from inferometer.formats.json_text.window import Window
from inferometer.formats.kineto.ahead import start_workers
from inferometer.formats.kineto.cut import CutFailed, cut_launches, learn_separator, pass_separator
from inferometer.formats.kineto.events import Event, EventReader
from inferometer.formats.kineto.header import FileHeader
from inferometer.formats.kineto.ids import Ids
from inferometer.formats.kineto.launch_columns import LAUNCH_KINDS, NEEDED, Batch, Irregular, LaunchBatches, is_launch
from inferometer.formats.kineto.launch_workers import LaunchWorkers
from inferometer.formats.kineto.metadata import take_names
from inferometer.formats.kineto.native.columns import Decoded, TableNumber
from inferometer.formats.kineto.native.launches import NativeLaunches
from inferometer.formats.source import Source
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.tables import TABLES

_TRIPLES = frozenset({"grid", "block"})


class ScanFailed(Exception):
    """Only a full read can be sure."""


class LaunchScan:
    """Reads an array of events from the text's position just behind its `[`, launches only."""

    def __init__(
        self, source: Source, text: Window, out: TraceBuilder, reader: EventReader, header: FileHeader
    ) -> None:
        self._source = source
        self._text = text
        self._out = out
        self._reader = reader
        self._header = header
        self._ids = Ids(header, out.losses)

    def run(self) -> None:
        """Leaves the text behind the array. Raises `ScanFailed` where a full read is needed to be sure."""
        if not self._header.is_kineto:
            raise ScanFailed
        try:
            launches = LaunchBatches(self._out.columns("launches"))
            for batch in self._cut(launches):
                self._add(batch)
            for events in self._reader.batches():
                self._take_rest(events, launches)
            for batch in launches.flush():
                self._add(batch)
        except (CutFailed, Irregular) as error:
            raise ScanFailed from error
        losses = self._out.losses
        if losses.seen.total() == 0 or any(loss.dropped for loss in losses):
            raise ScanFailed

    def _cut(self, launches: LaunchBatches) -> Iterator[Batch]:
        """Batches of all blocks; afterwards the text stands at the last event, or some events before that."""
        text, ahead = self._text, self._source.ahead
        if isinstance(ahead, NativeLaunches):
            if self._take_native(ahead):
                return
            ahead.close()
            ahead = self._source.ahead = start_workers(self._source, self._out.columns("launches"))
        if ahead is None:
            between = learn_separator(text)
            for block in cut_launches(text, between):
                yield from launches.take(b"[" + block + b"]")
            pass_separator(text, between)
            return
        assert isinstance(ahead, LaunchWorkers)
        for part in ahead.parts(text.offset):
            self._source.report(part.offset)
            yield from part.batches
            if part.rest is not None:
                text.replace(io.BytesIO(part.rest), part.offset)

    def _take_native(self, ahead: NativeLaunches) -> bool:
        """Add what the library read; whether it could."""
        try:
            for part in ahead.parts(self._text.offset, self._source.report):
                self._add_native(Decoded(ahead.library, part))
        except CutFailed:
            return False
        offset, rest = ahead.rest()
        self._text.replace(io.BytesIO(rest), offset)
        self._source.report(offset)
        return True

    def _add_native(self, decoded: Decoded) -> None:
        for group in decoded.groups():
            self._out.losses.see(group.category, group.events)
        wanted = self._out.columns("launches")
        names = TABLES["launches"].schema if wanted is None else NEEDED.union(wanted, {"kind"})
        frame = decoded.frame(TableNumber.LAUNCHES, names)
        self._out.add("launches", frame.height, frame.to_dict())

    def _take_rest(self, events: list[Event], launches: LaunchBatches) -> None:
        """Events that were not cut."""
        take_names([event for event in events if event.ph == "M"], self._header, self._ids)
        for event in events:
            if is_launch(event.cat):
                launches.add(event)

    def _add(self, batch: Batch) -> None:
        self._out.losses.see(batch.category, batch.rows)
        columns: dict[str, Values] = {"kind": LAUNCH_KINDS[batch.category], **batch.values}
        for name, (texts, codes) in batch.texts.items():
            columns[name] = pl.Series(texts, dtype=pl.Categorical).gather(codes)
        for name in _TRIPLES.intersection(batch.values):
            columns[name] = _triples(batch.values[name])
        if "host" in batch.texts:
            self._header.hosts.update(host for host in batch.texts["host"][0] if host is not None)
        self._out.add("launches", batch.rows, columns)


def _triples(values: list[Collection[int] | None]) -> pl.Series | None:
    """Grid or block sizes as an Array(3) column; None when there are none at all."""
    if not any(values):
        return None
    return pl.Series(values, dtype=pl.Array(pl.Int64, 3))
