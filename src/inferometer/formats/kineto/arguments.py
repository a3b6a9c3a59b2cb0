"""The arguments of events, decoded by category: all of a batch in one call.

A batch that doesn't decode goes event by event; a field of an unexpected type becomes null and is counted.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, field

from inferometer.formats.json_text.records import BAD_JSON, Int64
from inferometer.formats.json_text.repair import repair
from inferometer.trace.losses import Losses

Id = Int64 | str | None
Triple = tuple[Int64, Int64, Int64]
EMPTY = b"{}"
_NONE = Raw(b"")


class LaunchArgs(msgspec.Struct, gc=False):
    """Arguments of device work."""

    external_id: int | None = field(default=None, name="External id")
    queued: int | None = None
    device: Id = None
    context: int | None = None
    stream: Id = None
    correlation: int | None = None
    registers: int | None = field(default=None, name="registers per thread")
    shared: int | None = field(default=None, name="shared memory")
    grid: Triple | None = None
    block: Triple | None = None
    occupancy: float | None = field(default=None, name="est. achieved occupancy %")
    graph_id: int | None = field(default=None, name="graph id")
    graph_node_id: int | None = field(default=None, name="graph node id")
    bytes: int | None = None
    old_external_id: int | None = field(default=None, name="external id")


class CollectiveArgs(msgspec.Struct, gc=False):
    """Arguments of a kernel that communicates: what Kineto copies from the op that queued it."""

    collective: str | None = field(default=None, name="Collective name")
    dtype: str | None = None
    elements_in: int | None = field(default=None, name="In msg nelems")
    elements_out: int | None = field(default=None, name="Out msg nelems")
    group: str | None = field(default=None, name="Process Group Name")
    group_description: str | None = field(default=None, name="Process Group Description")
    group_size: int | None = field(default=None, name="Group size")
    group_ranks: str | None = field(default=None, name="Process Group Ranks")
    splits_in: str | None = field(default=None, name="In split size")
    splits_out: str | None = field(default=None, name="Out split size")
    source_rank: int | None = field(default=None, name="Src Rank")
    destination_rank: int | None = field(default=None, name="Dst Rank")
    sequence_number: int | None = field(default=None, name="Seq")


COLLECTIVE_SIGN = b'"Collective name"'
"""In the text of arguments that `CollectiveArgs` are decoded from."""


class CheckedLaunchArgs(LaunchArgs, gc=False):
    """The same; a number that a column can't hold is refused."""

    external_id: Int64 | None = field(default=None, name="External id")
    queued: Int64 | None = None
    context: Int64 | None = None
    correlation: Int64 | None = None
    registers: Int64 | None = field(default=None, name="registers per thread")
    shared: Int64 | None = field(default=None, name="shared memory")
    graph_id: Int64 | None = field(default=None, name="graph id")
    graph_node_id: Int64 | None = field(default=None, name="graph node id")
    bytes: Int64 | None = None
    old_external_id: Int64 | None = field(default=None, name="external id")


class LaunchEvent(msgspec.Struct, gc=False):
    """An event of device work with its arguments decoded in the same pass; otherwise as `Event`."""

    ph: str = ""
    cat: str = ""
    name: str | None = None
    pid: Id = None
    tid: Id = None
    ts: Raw = _NONE
    dur: Raw = _NONE
    args: CheckedLaunchArgs = field(default_factory=CheckedLaunchArgs)


class CallArgs(msgspec.Struct, gc=False):
    """Arguments of a driver or runtime call."""

    external_id: int | None = field(default=None, name="External id")
    correlation: int | None = None
    kernel: str | None = None
    grid: Triple | None = None
    block: Triple | None = None
    stream: Id = None
    bytes: int | None = None
    size: int | None = None
    old_external_id: int | None = field(default=None, name="external id")


class OpArgs(msgspec.Struct, gc=False):
    """Arguments of a framework operator; shapes stay JSON text."""

    external_id: int | None = field(default=None, name="External id")
    scalars: Raw = field(default=_NONE, name="Concrete Inputs")
    dtypes: Raw = field(default=_NONE, name="Input type")
    strides: Raw = field(default=_NONE, name="Input Strides")
    dims: Raw = field(default=_NONE, name="Input Dims")
    sequence_number: int | None = field(default=None, name="Sequence number")
    kernel_file: str | None = None
    kernel_hash: str | None = None
    kernel_backend: str | None = None
    record_function_id: int | None = field(default=None, name="Record function id")
    old_dims: Raw = field(default=_NONE, name="Input dims")
    old_external_id: int | None = field(default=None, name="external id")


SHAPES_SIGN = b'"Input Dims"'
"""In the text of arguments that `ShapeArgs` are decoded from."""


class ShapeArgs(msgspec.Struct, gc=False):
    """Shapes and types of what a range was given: JSON text."""

    dims: Raw = field(default=_NONE, name="Input Dims")
    dtypes: Raw = field(default=_NONE, name="Input type")


class FrameArgs(msgspec.Struct, gc=False):
    """Arguments of a Python frame."""

    parent: int | None = field(default=None, name="Python parent id")
    frame_id: int | None = field(default=None, name="Python id")


class TrackArgs(msgspec.Struct, gc=False):
    """Arguments of an event on a device's track."""

    device: Id = None
    stream: Id = None


class MemoryArgs(msgspec.Struct, gc=False):
    """Arguments of a memory record."""

    bytes: int | None = field(default=None, name="Bytes")
    address: int | None = field(default=None, name="Addr")
    total: int | None = field(default=None, name="Total Allocated")
    reserved: int | None = field(default=None, name="Total Reserved")
    device: int | None = field(default=None, name="Device Id")
    device_type: int | None = field(default=None, name="Device Type")


A = TypeVar("A", bound=msgspec.Struct)


class ArgsDecoder(Generic[A]):
    """The arguments of a batch of events as structs of one type, decoded where they are text still.

    Quoted numbers are numbers.
    """

    def __init__(self, kind: type[A], losses: Losses) -> None:
        self._kind = kind
        self._many: Callable[[bytes], list[A]] = msgspec.json.Decoder(list[kind], strict=False).decode  # type: ignore[valid-type]
        self._one: Callable[[bytes], A] = msgspec.json.Decoder(kind, strict=False).decode
        self._absent = kind()
        self._losses = losses

    def decode(self, events: Sequence[Any], category: str) -> list[A]:
        """One struct for each event, in order; `args` of an event are text, or such a struct, or None."""
        args = [event.args for event in events]
        if Raw not in set(map(type, args)):
            return [each or self._absent for each in args]
        decoded = iter(self._decode_texts([each or EMPTY for each in args if type(each) is Raw], category))
        return [next(decoded) if type(each) is Raw else each or self._absent for each in args]

    def _decode_texts(self, texts: list[bytes | Raw], category: str) -> list[A]:
        try:
            return self._many(b"[" + b",".join(texts) + b"]")
        except BAD_JSON:
            return [self._decode_one(bytes(text), category) for text in texts]

    def _decode_one(self, text: bytes, category: str) -> A:
        try:
            return self._one(text)
        except BAD_JSON:
            pass
        text = repair(text, self._losses, category=category)
        try:
            return self._one(text)
        except BAD_JSON:
            return self._loose(text, category)

    def _loose(self, text: bytes, category: str) -> A:
        """Field by field; what has the wrong type is left out and counted."""
        try:
            fields = msgspec.json.decode(text, type=dict[str, Raw])
        except BAD_JSON:
            if text != b"null":
                self._losses.count(
                    "wrong_type", category=f"{category}.args", example=text[:80].decode("utf-8", "replace")
                )
            return self._kind()
        values = {}
        for info in msgspec.structs.fields(self._kind):
            raw = fields.get(info.encode_name)
            if raw is None:
                continue
            try:
                values[info.name] = msgspec.json.decode(raw, type=info.type, strict=False)
            except BAD_JSON:
                example = bytes(raw)[:60].decode("utf-8", "replace")
                self._losses.count("wrong_type", category=f"{category}.{info.encode_name}", example=example)
        return self._kind(**values)
