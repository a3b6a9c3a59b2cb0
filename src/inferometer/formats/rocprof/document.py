"""rocprofv3's JSON: an object with one key, whose array has an element for each process.

Records refer to kernels, agents and texts by number. rocprofv3 writes these lookups before the records. Where another
program sorted the keys, the file is read twice: first the lookups, then the records.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.json_text.records import RecordReader
from inferometer.formats.json_text.window import Truncated, Window
from inferometer.formats.rocprof.batches import Batches
from inferometer.formats.rocprof.process import Process
from inferometer.formats.rocprof.records import (
    CopyRecord,
    CounterRecord,
    KernelRecord,
    Nothing,
    RangeText,
    Record,
    Symbol,
    record_kind,
)
from inferometer.formats.source import Source, Stream
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.tables import ALL_TABLES

KEY: Final = "rocprofiler-sdk-tool"
_BATCH: Final = 16_384
_KEEP_BYTES: Final = 16 << 20
_SMALL: Final = ("metadata", "agents", "counters")  # lookups that are decoded whole
_NEEDED: Final = frozenset({"metadata", "agents", "strings", "kernel_symbols"})
_RECORDS: Final = ("callback_records", "buffer_records")
_HINT: Final = "Record it again with rocprofv3 --output-format json, or name the format with --format."
Reads = Literal["all", "lookups", "records"]
_ARRAYS: Final[dict[str, tuple[str, type[msgspec.Struct]]]] = {  # the table that each fills, and what is in it
    "kernel_dispatch": ("launches", KernelRecord),
    "memory_copy": ("launches", CopyRecord),
    "hip_api": ("calls", Record),
    "hsa_api": ("calls", Record),
    "marker_api": ("spans", Record),
    "rccl_api": ("spans", Record),
    "counter_collection": ("kernel_counters", CounterRecord),
}


class OutOfOrder(Exception):
    """Records come before the lookups that they need."""


class Document:
    """One pass over a file.

    Args:
        source: What is read.
        stream: Its bytes.
        out: What is filled.
        reads: The lookups, the records, or all: lookups first.
        known: The processes with their lookups, for a pass that reads the records alone.
    """

    def __init__(
        self, source: Source, stream: Stream, out: TraceBuilder, reads: Reads = "all", known: Sequence[Process] = ()
    ) -> None:
        self._source = source
        self._text = Window(stream)
        self._out = out
        self._reads = reads
        self._known = known
        self._counted = 0
        self.processes: list[Process] = []

    def read(self) -> None:
        """Go through the file once.

        Raises:
            FormatError: It is no such file.
            OutOfOrder: All was to be read, and records come before their lookups.
        """
        text = self._text
        if text.skip_mark() != ord("{"):
            self._refuse("an object", bytes(text.buf[text.pos : min(text.end, text.pos + 20)]))
        try:
            for key in text.fields():
                if key == KEY and text.peek() in (ord("["), ord("{")):  # or -1, at the end
                    self._processes()
                else:
                    text.take_value()
            self._close("}")
        except Truncated:
            self._count_end()
        if not self.processes:
            self._refuse(f"the key {KEY} with a process in it", b"none")
        if text.peek() not in (-1, 0):
            self._out.losses.count("trailing_data", example=f"byte {text.offset:,}")

    def _refuse(self, expected: str, found: bytes) -> None:
        raise FormatError(f"{self._source.name}: expected {expected}, found {found!r}", hint=_HINT)

    def _count_end(self) -> None:
        if not self._out.losses.total("truncated"):
            self._out.losses.count("truncated", example=f"at byte {self._text.offset:,}")

    def _close(self, bracket: str) -> None:
        if not self._text.take(ord(bracket)):
            raise Truncated

    def _processes(self) -> None:
        text = self._text
        if text.peek() == ord("{"):
            self._process()
            return
        text.pos += 1
        while text.peek() == ord("{"):
            self._process()
            text.take(ord(","))
        self._close("]")

    def _process(self) -> None:
        text, seen = self._text, set[str]()
        number = len(self.processes)
        process = self._known[number] if number < len(self._known) else Process()
        self.processes.append(process)
        for key in text.fields():
            if key in _RECORDS and text.peek() == ord("{"):
                if self._reads == "all" and not seen >= _NEEDED:
                    raise OutOfOrder
                self._records(process)
            else:
                seen.add(key)
                self._lookup(key, process)
        self._close("}")

    def _lookup(self, key: str, process: Process) -> None:
        text = self._text
        if self._reads == "records":
            text.take_value()
        elif key in _SMALL:
            self._take_small(key, process)
        elif key == "kernel_symbols" and text.take(ord("[")):
            for symbols in self._array(Symbol, key, "kernel_id"):
                process.take_symbols(symbols)
        elif key == "strings" and text.peek() == ord("{"):
            self._strings(process)
        else:
            text.take_value()

    def _strings(self, process: Process) -> None:
        """Names of kinds and operations, and the texts of ROCTx ranges."""
        text = self._text
        for key in text.fields():
            if key == "buffer_records":
                self._take_small(key, process)
            elif key == "marker_api" and text.take(ord("[")):
                for texts in self._array(RangeText, "strings.marker_api", "key"):
                    process.take_texts(texts)
            else:
                text.take_value()
        self._close("}")

    def _take_small(self, key: str, process: Process) -> None:
        value = self._text.take_value(keep=_KEEP_BYTES)
        if value is None:
            larger = f"larger than {_KEEP_BYTES >> 20} MiB"
            self._out.losses.count("unreadable_header", category=key, example=larger)
        else:
            process.take(key, value, self._out.losses)

    def _records(self, process: Process) -> None:
        """The arrays of records: to their tables, or counted where all is read and they have none."""
        text = self._text
        batches = Batches(self._out, process, self._counted)
        for array in text.fields():
            fills = _ARRAYS.get(array)
            if not text.take(ord("[")):
                text.take_value()
            elif self._reads == "lookups" or fills is None or not self._out.wants(fills[0]):
                self._pass_over(array)
            else:
                self._hand_over(array, batches)
        self._counted = batches.counted
        self._close("}")

    def _hand_over(self, array: str, batches: Batches) -> None:
        """The records of one array to its table, many at a time."""
        _, struct = _ARRAYS[array]
        sign = None if struct is CounterRecord else "start_timestamp"
        handler = _handler(batches, array)
        held: list[Any] = []
        for records in self._array(struct, array, sign):
            held += records
            if len(held) >= _BATCH:
                handler(held)
                held = []
        if held:
            handler(held)

    def _pass_over(self, array: str) -> None:
        counts = array not in _ARRAYS and self._reads != "lookups" and self._out.tables == ALL_TABLES
        for records in self._array(Nothing, array, None):
            if counts:
                self._out.losses.see(array, len(records))
                self._out.losses.count("unknown_category", len(records), category=array)

    def _array(self, struct: type[msgspec.Struct], array: str, sign: str | None) -> Iterator[list[Any]]:
        kind = record_kind(struct, array, sign)
        yield from RecordReader(
            self._text, self._out.losses, kind, most_bytes=self._source.limits.event_bytes
        ).batches()


def _handler(batches: Batches, array: str) -> Callable[[Sequence[Any]], None]:
    special: dict[str, Callable[[Sequence[Any]], None]] = {
        "kernel_dispatch": batches.kernels,
        "memory_copy": batches.copies,
        "counter_collection": batches.counters,
    }
    if array in special:
        return special[array]
    take = batches.calls if array.endswith(("hip_api", "hsa_api")) else batches.spans
    return lambda records: take(records, array)
