"""Reads a snapshot: segments and their blocks, the events of each device, and the stacks that both share."""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.held import read_held
from inferometer.formats.json_text.values import whole_number
from inferometer.formats.torch_memory.literals import read_literals
from inferometer.formats.torch_memory.stacks import Stacks
from inferometer.trace.facts import Device, Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_NOTE: Final = "A snapshot of an allocator, without device work: inferometer memory shows what holds the memory."
_BLOCKS, _EVENTS, _PATHS = "memory_blocks", "memory_events", "call_paths"
_HINT: Final = "Dump it again: torch.cuda.memory._dump_snapshot('snapshot.pickle')"
_STATES: Final = {"active_awaiting_free": "active_pending_free"}  # what PyTorch's documentation calls it
_KNOWN: Final = frozenset(
    {"alloc", "free", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map"}
    | {"segment_unmap", "snapshot", "oom", "annotate"}
)
_LEAST_BYTES: Final = 2  # that a row takes in any file: a reference to what stands elsewhere


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: It is no snapshot, or has more than plain values.
    """
    data = read_held(source, hint="Record fewer events (max_entries), or read it with --no-limits.")
    found = _decode(data, source.name)
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise FormatError(f"{source.name}: expected a dict with a list of segments, found none", hint=_HINT)
    reader = _Reader(source.name, out, len(data))
    reader.segments(found["segments"])
    reader.traces(found.get("device_traces"))
    return reader.finish()


def _decode(data: bytes, name: str) -> Any:
    if data[:1] == b"\x80":
        return read_literals(data, name)
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{name}: expected a snapshot as JSON, found none that can be read ({error})") from error


class _Reader:
    """Rows so far. A file may name one list many times: there are never more rows than it has bytes for."""

    def __init__(self, name: str, out: "TraceBuilder", size: int) -> None:
        self._name = name
        self._out = out
        self._most = size // _LEAST_BYTES
        self._rows = 0
        self._columns: dict[str, dict[str, list[Any]]] = {table: defaultdict(list) for table in (_BLOCKS, _EVENTS)}
        self._stacks = Stacks(size)
        self._devices: dict[str, None] = {}

    def segments(self, segments: list[Any]) -> None:
        """The state at the end."""
        for segment in segments:
            self._one_more()
            address = _address(segment, "address")
            blocks = segment.get("blocks") if isinstance(segment, dict) else None
            if address is None or not isinstance(blocks, list):
                self._drop(_BLOCKS, "a segment without an address or blocks")
                continue
            device = self._device(segment.get("device"))
            pool = segment.get("segment_pool_id")
            is_private = isinstance(pool, list | tuple) and any(pool)
            kind = segment.get("segment_type")
            about = {
                "device": device,
                "segment": address,
                "stream": whole_number(segment.get("stream")),
                "pool": f"{kind} {tuple(pool)}" if is_private and kind else kind if isinstance(kind, str) else None,
            }
            at = address
            for block in blocks:
                at = self._block(block, about, at)

    def _block(self, block: Any, about: Mapping[str, Any], at: int) -> int:
        """One block, which begins at `at` where it doesn't say; where the next one begins."""
        self._one_more()
        size = whole_number(block.get("size")) if isinstance(block, dict) else None
        state = block.get("state") if isinstance(block, dict) else None
        if size is None or size < 0 or not isinstance(state, str):
            self._drop(_BLOCKS, "a block without a size or a state")
            return at
        own = _address(block, "address")
        at = at if own is None else own
        requested, frames = block.get("requested_size"), block.get("frames")
        history = block.get("history")
        if frames is None and isinstance(history, list) and history and isinstance(history[-1], dict):
            frames, requested = history[-1].get("frames"), history[-1].get("real_size")  # before 2023
        is_free = state == "inactive"
        row = {
            **about,
            "address": at,
            "bytes": size,
            "requested_bytes": None if is_free else whole_number(requested),
            "state": _STATES.get(state, state),
            "path_id": None if is_free else self._stacks.add(frames),
        }
        self._add(_BLOCKS, row)
        return _signed(at + size)

    def traces(self, traces: Any) -> None:
        """What happened before, device by device."""
        for number, events in enumerate(traces if isinstance(traces, list) else ()):
            for order, event in enumerate(events if isinstance(events, list) else ()):
                self._event(event, f"gpu:{number}", order)

    def _event(self, event: Any, device: str, order: int) -> None:
        self._one_more()
        action = event.get("action") if isinstance(event, dict) else None
        if not isinstance(action, str):
            self._drop(_EVENTS, "an event without an action")
            return
        if action not in _KNOWN and self._out.wants(_EVENTS):
            self._out.losses.count("unknown_action", category=_EVENTS, example=action)
        self._devices[device] = None
        micros = event.get("time_us")
        row = {
            "action": action,
            "device": device,
            "order": order,
            "time_ns": whole_number(micros * 1000) if isinstance(micros, int) else None,
            "address": _address(event, "addr"),
            "bytes": whole_number(event.get("size")),
            "stream": whole_number(event.get("stream")),
            "path_id": self._stacks.add(event.get("frames")),
        }
        self._add(_EVENTS, row)

    def finish(self) -> Facts:
        """Hand over all rows."""
        for table, columns in self._columns.items():
            n = len(columns["bytes"])
            if self._out.wants(table):
                self._out.losses.see(table, n)
                self._out.add(table, n, columns)
        if self._out.wants(_PATHS):
            nodes = self._stacks.columns()
            self._out.losses.see(_PATHS, len(nodes["path_id"]))
            self._out.add(_PATHS, len(nodes["path_id"]), nodes)
        return Facts(
            "torch-memory",
            self._name,
            tool="PyTorch's allocator",
            devices=tuple(map(Device, self._devices)),
            notes=(_NOTE,),
        )

    def _device(self, number: Any) -> str | None:
        if (whole := whole_number(number)) is None or whole < 0:
            return None
        self._devices[f"gpu:{whole}"] = None
        return f"gpu:{whole}"

    def _one_more(self) -> None:
        self._rows += 1
        if self._rows > self._most:
            raise FormatError(
                f"{self._name}: expected at most one block or event for each {_LEAST_BYTES} bytes, found more: it "
                "names the same ones again and again",
                hint=_HINT,
            )

    def _drop(self, table: str, example: str) -> None:
        if self._out.wants(table):
            self._out.losses.see(table)
            self._out.losses.count("unreadable_row", category=table, example=example)

    def _add(self, table: str, row: Mapping[str, Any]) -> None:
        for name, value in row.items():
            self._columns[table][name].append(value)


def _address(fields: Any, name: str) -> int | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    return _signed(value) if type(value) is int and 0 <= value < 2**64 else None


def _signed(address: int) -> int:
    address %= 2**64
    return address - 2**64 if address >= 2**63 else address
