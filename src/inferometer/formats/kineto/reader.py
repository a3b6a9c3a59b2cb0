"""A whole Kineto or Chrome-trace file: the object around the events, one such object or an array of them.

Source: the Trace Event Format (Chrome) and what PyTorch 1.8 to 2.10 write in it. Left out: flow arrows (dropped,
counted), async and object events (counted), counters' and spans' further arguments. What only a full read needs is
imported where it begins.
"""

from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from inferometer.errors import FormatError
from inferometer.formats.json_text.window import Truncated, Window
from inferometer.formats.kineto.ahead import is_scan
from inferometer.formats.kineto.events import EventReader
from inferometer.formats.kineto.header import KEEP_BYTES, FileHeader
from inferometer.formats.kineto.scan import LaunchScan, ScanFailed
from inferometer.formats.source import Source, Stream
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.checks import check_device_work, check_spans
from inferometer.trace.facts import Device, Facts

if TYPE_CHECKING:
    from inferometer.formats.kineto.dispatch import Sorter
    from inferometer.formats.kineto.workers import Crew

NAME = "kineto"
_LOOK_BYTES = 1 << 20
_RANKED = ("launches", "collectives", "calls", "ops", "frames", "spans", "counters", "memory_events")


def read(source: Source, out: TraceBuilder, tables: frozenset[str]) -> Facts:
    """Read the tables asked for. For launches alone, a scan that decodes only their text is tried first.

    Where the profiler saw no device, ops that compute are launches of device `cpu`.
    """
    facts, header = _read_as_written(source, out, tables)
    if not (header.saw_no_device and out.wants("launches")) or out.rows("launches"):
        return facts
    if not _add_cpu_launches(source, out):
        return facts
    from inferometer.formats.kineto.cpu_launches import NOTE

    return replace(facts, devices=(Device("cpu"),), notes=(*facts.notes, NOTE), other_events={})


def read_as_written(source: Source, out: TraceBuilder, tables: frozenset[str]) -> Facts:
    """As `read`, but for launches that the file doesn't have."""
    return _read_as_written(source, out, tables)[0]


def _read_as_written(source: Source, out: TraceBuilder, tables: frozenset[str]) -> tuple[Facts, FileHeader]:
    if not is_scan(source, tables):
        return _read(source, out, scan=False)
    try:
        found = _read(source, out, scan=True)
    except ScanFailed:
        out.reset()
        found = _read(source, out, scan=False)
    finally:
        source.stop_ahead()
    out.narrow("launches")  # the checks looked at more of them
    return found


def _add_cpu_launches(source: Source, out: TraceBuilder) -> bool:
    """Whether there are any: none where a device's driver was called, or the file can't be read again for its ops."""
    from inferometer.formats.kineto.cpu_launches import OP_COLUMNS, add_cpu_launches
    from inferometer.formats.kineto.dispatch import OPS

    host = out
    if not (out.wants("ops") and out.wants("calls")):
        if not source.rewindable:
            return False
        host = TraceBuilder({"ops": OP_COLUMNS, "calls": ("start_ns",)})
        _read(source, host, scan=False)
        for loss in host.losses:
            if loss.category in OPS and not out.wants("ops"):
                out.losses.count(loss.name, loss.count, category=loss.category, example=loss.example)
    return not host.rows("calls") and add_cpu_launches(out, host)


def _read(source: Source, out: TraceBuilder, *, scan: bool) -> tuple[Facts, FileHeader]:
    with source.open() as stream, closing(_Document(source, stream, out, scan=scan)) as document:
        document.read()
    if damage := stream.damage or document.damage:
        out.losses.count("broken_compression", example=damage)
    check_device_work(out)
    check_spans(out)
    out.names = document.header.names
    has_launches = not out.wants("launches") or out.rows("launches") > 0
    return document.header.facts(source.name, NAME, has_launches=has_launches), document.header


class _Document:
    """One pass over one file."""

    def __init__(self, source: Source, stream: Stream, out: TraceBuilder, *, scan: bool) -> None:
        self._source = source
        self._stream = stream
        self._text = Window(stream)
        self._out = out
        self._scan = scan
        self.header = FileHeader(out.losses)
        self._sorter = None if scan else _new_sorter(out, self.header)
        self._found_events = False
        self._first_rows = dict.fromkeys(_RANKED, 0)
        self._crew: Crew | None = None
        self.damage: str | None = None

    def close(self) -> None:
        """Close what was opened besides the stream."""
        if self._crew:
            self._crew.close()

    def read(self) -> None:
        text = self._text
        byte = text.skip_mark()
        if byte == ord("{"):
            self._object()
        elif byte == ord("["):
            text.pos += 1
            if self._holds_objects():
                self._objects()
            else:
                self._events(bare=True)
                self._end_part()
        else:
            found = "nothing" if byte == -1 else repr(bytes(text.buf[text.pos : min(text.end, text.pos + 20)]))
            raise FormatError(f"{self._source.name}: byte {text.offset}: expected {{ or [, found {found}")
        if not self._found_events:
            keys = ", ".join(repr(key[:40]) for key in sorted(self.header.keys)[:12]) or "nothing"
            raise FormatError(
                f"{self._source.name}: expected a traceEvents array or an array of events, found {keys}",
                hint="Export it again with torch.profiler's export_chrome_trace, or name the format with --format.",
            )
        if text.peek() not in (-1, 0):
            self._out.losses.count("trailing_data", example=f"byte {text.offset:,}")

    def _holds_objects(self) -> bool:
        """Whether the array holds trace objects rather than events."""
        text = self._text
        text.fill(_LOOK_BYTES)
        at_events = text.buf.find(b'"traceEvents"', text.pos, text.end)
        at_phase = text.buf.find(b'"ph"', text.pos, text.end)
        return at_events != -1 and (at_phase == -1 or at_events < at_phase)

    def _objects(self) -> None:
        if self._scan:  # each object has its own rank, and a scan would run through all of them
            raise ScanFailed
        text, n = self._text, 0
        while text.peek() == ord("{"):
            self._object()
            n += 1
            text.take(ord(","))
        if not text.take(ord("]")):
            self._out.losses.count("truncated", example=f"byte {text.offset:,}: in the array of trace objects")
        self._out.losses.count("several_trace_objects", n)

    def _object(self) -> None:
        """A trace object: its fields, with the events among them."""
        text = self._text
        try:
            for key in text.fields():
                self._field(key)
            if text.peek() == -1:
                raise Truncated
            if not text.take(ord("}")):
                place = bytes(text.buf[text.pos : min(text.end, text.pos + 40)]).decode("utf-8", "replace")
                self._out.losses.count("unreadable_header", example=f"byte {text.offset:,}: {place}")
                text.pos = text.end
                text.eof = True
        except Truncated:
            if not self._out.losses.total("truncated"):
                self._out.losses.count("truncated", example=f"at byte {text.offset:,}, next to the events")
        self._end_part()

    def _field(self, key: str) -> None:
        text = self._text
        if key == "traceEvents" and text.take(ord("[")):
            self._events(bare=False)
            return
        self.header.take(key, text.take_value(keep=KEEP_BYTES))

    def _events(self, *, bare: bool) -> None:
        self._found_events = True
        self._out.constants["rank"] = self.header.rank
        text, losses, event_bytes = self._text, self._out.losses, self._source.limits.event_bytes
        if self._sorter is None:
            reader = EventReader(text, losses, event_bytes=event_bytes, bare=bare)
            LaunchScan(self._source, text, self._out, reader, self.header).run()
            return
        from inferometer.formats.kineto.native.sections import NativeSections
        from inferometer.formats.kineto.sections import SECTION_BYTES, SectionReader, Sections, read_in_sections
        from inferometer.formats.kineto.workers import Crew, processes_for
        from inferometer.formats.native.library import find_library

        sections = Sections(text.offset, SECTION_BYTES)
        section_reader = SectionReader(self._out.tables, event_bytes=event_bytes, bare=bare)
        first: int | None = 0
        if library := find_library():
            native = NativeSections(library, self._source, section_reader, sections, self._out, self._sorter)
            first = native.read(text, self._stream)
        if first is None:
            return
        processes = 1 if self._crew else processes_for(self._source)
        if processes == 1:
            read_in_sections(text, losses, self._sorter, section_reader, sections, first)
            return
        parts = (self._source, section_reader, sections, self._out, self.header, self._sorter)
        self._crew = Crew(*parts, first=first, at=text.offset)
        behind, self.damage = self._crew.run(processes)
        text.go_on_as(behind)
        if not self._out.is_stored:
            self._out.load()

    def _end_part(self) -> None:
        """The end of a trace object: hand on its events, and fill in what only its end held."""
        if self._sorter is not None:
            self._sorter.finish()
        if self.header.rank is not None and self._out.constants.get("rank") != self.header.rank:
            for table, first_row in self._first_rows.items():
                self._out.fill(table, {"rank": self.header.rank}, first_row=first_row)
        if self._sorter is not None:
            self._fill_process(self._sorter.columns.call_processes - {None})
            self._sorter.columns.call_processes.clear()
            self._sorter.columns.records.start_over()
        self._first_rows = {table: self._out.rows(table) for table in _RANKED}
        self.header.rank = None

    def _fill_process(self, processes: set[int | None]) -> None:
        if len(processes) == 1:
            process = {"process": next(iter(processes)) or 0}
            self._out.fill("launches", process, first_row=self._first_rows["launches"])


def _new_sorter(out: TraceBuilder, header: FileHeader) -> "Sorter":
    from inferometer.formats.kineto.dispatch import Sorter

    return Sorter(out, header)
