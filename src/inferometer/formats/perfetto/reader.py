"""Reads a Perfetto trace: packets one after the other, then slices and samples as rows."""

from collections import Counter
from typing import Any

from inferometer.errors import FormatError
from inferometer.formats.perfetto.clocks import Clocks
from inferometer.formats.perfetto.events import Events
from inferometer.formats.perfetto.packets import read_batches
from inferometer.formats.perfetto.rows import Rows
from inferometer.formats.perfetto.schema import ABOUT
from inferometer.formats.perfetto.sequences import Sequences, Texts
from inferometer.formats.perfetto.tracks import Tracks
from inferometer.formats.source import Source
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_device_work
from inferometer.trace.facts import Facts
from inferometer.trace.tables import ALL_TABLES

NAME = "perfetto"
_AGENTS = "The file doesn't say which of AMD's agents are GPUs: gpu:4 is agent 4, CPUs counted."


def read(source: Source, out: TraceBuilder) -> Facts:
    """Read the tables that `out` wants.

    Raises:
        FormatError: There is no packet that can be read.
    """
    reader = _Reader(out)
    with source.open() as stream:
        for batch in read_batches(stream, out.losses, source.limits.event_bytes):
            for packet in batch:
                reader.take(packet)
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    if not reader.packets:
        raise FormatError(
            f"{source.name}: expected packets of a Perfetto trace, found none that can be read",
            hint="Copy the file again from where it was recorded, as binary.",
        )
    return reader.finish(source)


class _Reader:
    def __init__(self, out: TraceBuilder) -> None:
        self._out = out
        self._losses = out.losses
        self._texts = Texts(out.losses)
        self._sequences = Sequences(self._texts, out.losses)
        self._clocks = Clocks()
        self._tracks = Tracks()
        self._events = Events(self._texts, out.losses)
        self._others: Counter[str] = Counter()
        self.packets = 0

    def take(self, packet: Any) -> None:
        """One packet, in the file's order."""
        self.packets += 1
        kind = packet.WhichOneof("kind")
        state = self._sequences.follow(packet)
        if state is None:
            if kind == "track_event":
                self._events.drop("needs_lost_packets", f"on the sequence {packet.sequence}")
            return
        if kind == "clock_snapshot":
            self._clocks.take(packet.clock_snapshot, state.clocks)
            return
        clock = packet.timestamp_clock_id or state.clock
        if kind == "track_event":
            time_ns = self._clocks.time(packet.timestamp, clock, state.clocks)
            if time_ns is None:
                self._events.drop("unknown_clock", f"clock {clock}")
            else:
                self._events.take(packet.track_event, time_ns, state)
            return
        if packet.timestamp:
            self._clocks.time(packet.timestamp, clock, state.clocks)  # the next time may count from it
        if kind == "track_descriptor":
            self._tracks.take(packet.track_descriptor)
        elif kind is not None and kind not in ABOUT:
            self._others[kind] += 1

    def finish(self, source: Source) -> Facts:
        """Hand over all rows; the facts."""
        if self._out.tables == ALL_TABLES:
            for kind, n in self._others.items():
                self._losses.see(kind, n)
                self._losses.count("unknown_category", n, category=kind)
        rows = Rows(self._events, self._texts.all, self._tracks, self._out)
        rows.add()
        check_device_work(self._out)
        processes, threads = self._tracks.named()
        return Facts(
            NAME,
            source.name,
            processes=processes,
            threads=threads,
            clock_base_ns=self._clocks.base_ns,
            notes=tuple(self._notes(rows)),
        )

    def _notes(self, rows: Rows) -> list[str]:
        notes = []
        if rows.names_agents:
            notes.append(_AGENTS)
        if rows.joins_by_flow:
            notes.append("Correlation ids are those of flows: the file gives no others.")
        if self._clocks.coarsest_ns > 1:
            notes.append(f"Times of some packets are whole multiples of {self._clocks.coarsest_ns:,} ns.")
        return notes
