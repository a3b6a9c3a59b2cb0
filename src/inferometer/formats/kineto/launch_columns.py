"""Launches as columns of plain lists, made without polars or NumPy: a process that has just started can do it.

Only of what is regular. Whatever a full read counts as a loss is `Irregular` here, and then a full read counts it: a
launch without a name or a time, a number beyond 64 bits, a category in the spelling of an older PyTorch.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from inferometer.formats.json_text.records import BAD_JSON
from inferometer.formats.kineto.arguments import EMPTY, CheckedLaunchArgs, LaunchArgs, LaunchEvent
from inferometer.formats.kineto.decimals import parse_list
from inferometer.formats.kineto.events import Event
from inferometer.formats.kineto.ids import find_devices, find_hosts, find_streams

LAUNCH_KINDS: Final = {
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "memcpy": "memcpy",
    "memset": "memset",
}
DEVICE_KINDS: Final = {"mtia_ccp_events": "mtia"}  # all others are GPUs, XPUs included
LONGEST_NS: Final = 2**53  # 104 days: a thousand such durations still add up within 64 bits
NEEDED: Final = frozenset({"kernel", "device", "context", "stream", "start_ns", "dur_ns", "correlation_id"})
"""Columns that every scan reads, for the checks of what was read."""

_FLUSH_EVENTS = 16_384
_Args = Sequence[LaunchArgs]


class Irregular(Exception):
    """Only a full read can say what this is."""


class Batch(msgspec.Struct, gc=False):
    """Launches of one category; a column that isn't there is null.

    `texts`: of a column its different values, and which of them each launch has. `values`: one value for each launch.
    """

    category: str
    rows: int
    texts: dict[str, tuple[list[str | None], list[int]]]
    values: dict[str, list[Any]]


class LaunchBatches:
    """Collects launches into batches, with the columns `wanted` and those that are needed; None: with all."""

    def __init__(self, wanted: Collection[str] | None) -> None:
        self._wanted = None if wanted is None else NEEDED.union(wanted)
        self._held: dict[str, list[LaunchEvent]] = {}

    def take(self, text: bytes) -> list[Batch]:
        """Take the events of one array's text; others than launches are passed over. Batches that are full by now.

        Raises:
            Irregular: It doesn't decode, or a launch is unusual.
        """
        try:
            events = _decode_launches(text)
        except BAD_JSON as error:
            raise Irregular from error
        for event in events:
            try:
                self._held[event.cat].append(event)
            except KeyError:
                self._begin(event)
        return self.flush() if sum(map(len, self._held.values())) >= _FLUSH_EVENTS else []

    def add(self, event: Event) -> None:
        """Take one launch whose arguments are still text."""
        try:
            args = _decode_args(event.args or EMPTY)
        except BAD_JSON as error:
            raise Irregular from error
        fields = (event.ph, event.cat, event.name, event.pid, event.tid, event.ts, event.dur)
        launch = LaunchEvent(*fields, args)
        if event.cat in self._held:
            self._held[event.cat].append(launch)
        else:
            self._begin(launch)

    def flush(self) -> list[Batch]:
        """The rest."""
        held, self._held = self._held, {}
        return [_batch(category, events, self._wanted) for category, events in held.items()]

    def _begin(self, event: LaunchEvent) -> None:
        if event.cat in LAUNCH_KINDS:
            self._held[event.cat] = [event]
        elif is_launch(event.cat):
            raise Irregular


def is_launch(category: str) -> bool:
    """Whether a full read makes launches of this category, which it knows in any spelling."""
    return category.lower() in LAUNCH_KINDS


def _batch(category: str, events: list[LaunchEvent], wanted: Collection[str] | None) -> Batch:
    names = [event.name for event in events]
    start_ns, dur_ns = parse_list([event.ts for event in events]), parse_list([event.dur for event in events])
    if start_ns is None or dur_ns is None or None in names or {event.ph for event in events} != {"X"}:
        raise Irregular
    if min(dur_ns) < 0 or max(dur_ns) > LONGEST_NS:
        raise Irregular
    args = [event.args for event in events]
    texts = {"kernel": names, "device": find_devices(args, events, DEVICE_KINDS.get(category, "gpu"))}
    if hosts := find_hosts(events):
        texts["host"] = hosts
    values: dict[str, list[Any]] = {
        "start_ns": start_ns,
        "dur_ns": dur_ns,
        "stream": find_streams(args, events),
        **{name: make(args) for name, make in _COLUMNS.items() if wanted is None or name in wanted},
    }
    return Batch(category, len(events), {name: _coded(each) for name, each in texts.items()}, values)


def _coded(texts: Sequence[str | None]) -> tuple[list[str | None], list[int]]:
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return [*codes], [codes[text] for text in texts]


_COLUMNS: dict[str, Callable[[_Args], list[Any]]] = {
    "context": lambda args: [a.context for a in args],
    "queued_ns": lambda args: [a.queued or None for a in args],
    "correlation_id": lambda args: [a.correlation for a in args],
    "external_id": lambda args: [a.old_external_id if a.external_id is None else a.external_id for a in args],
    "graph_id": lambda args: [a.graph_id or None for a in args],
    "graph_node_id": lambda args: [a.graph_node_id or None for a in args],
    "grid": lambda args: [a.grid for a in args],
    "block": lambda args: [a.block for a in args],
    "registers": lambda args: [a.registers for a in args],
    "shared_bytes": lambda args: [a.shared for a in args],
    "bytes": lambda args: [a.bytes for a in args],
    "occupancy": lambda args: [None if a.occupancy is None else a.occupancy / 100 for a in args],
}
_decode_launches = msgspec.json.Decoder(list[LaunchEvent], strict=False).decode
_decode_args = msgspec.json.Decoder(CheckedLaunchArgs, strict=False).decode
