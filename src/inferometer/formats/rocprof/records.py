"""What rocprofv3's JSON holds in its arrays: records as structs, and how a damaged one is read all the same.

Releases add fields, which are passed over, and leave out others, which are null. A key may stand twice in one object
(`group_segment_size` in ROCm 6.2): the last one counts.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import field

from inferometer.formats.json_text.records import BAD_JSON, BOUNDARY, Int64, RecordKind
from inferometer.formats.json_text.repair import repair
from inferometer.trace.losses import Losses

S = TypeVar("S", bound=msgspec.Struct)


class Handle(msgspec.Struct, gc=False):
    """An id of an agent, queue, stream or counter."""

    handle: Int64 | None = None


class Value(msgspec.Struct, gc=False):
    """An external correlation id, in releases that wrap it."""

    value: Int64 | None = None


class Correlation(msgspec.Struct, gc=False):
    """Ties device work to the call that queued it; 0 is none."""

    internal: Int64 | None = None
    external: Int64 | Value | None = None


class Size(msgspec.Struct, gc=False):
    """Work-items along each axis."""

    x: Int64 | None = None
    y: Int64 | None = None
    z: Int64 | None = None


class Dispatch(msgspec.Struct, gc=False):
    """What was dispatched. `group_segment_size` is the LDS with its dynamic part, which the symbol doesn't know."""

    agent_id: Handle = field(default_factory=Handle)
    queue_id: Handle = field(default_factory=Handle)
    kernel_id: Int64 | None = None
    dispatch_id: Int64 | None = None
    private_segment_size: Int64 | None = None
    group_segment_size: Int64 | None = None
    workgroup_size: Size = field(default_factory=Size)
    grid_size: Size = field(default_factory=Size)


class Record(msgspec.Struct, gc=False):
    """A record of any array of `buffer_records`; its numbers of kind and operation have names in `strings`."""

    kind: Int64 | None = None
    operation: Int64 | None = None
    thread_id: Int64 | None = None
    correlation_id: Correlation = field(default_factory=Correlation)
    start_timestamp: Int64 | None = None
    end_timestamp: Int64 | None = None


class KernelRecord(Record, gc=False):
    """A kernel."""

    dispatch_info: Dispatch = field(default_factory=Dispatch)
    stream_id: Handle = field(default_factory=Handle)
    graph_exec_id: Int64 | Handle | None = None
    graph_node_id: Int64 | Handle | None = None


class CopyRecord(Record, gc=False):
    """A copy."""

    dst_agent_id: Handle = field(default_factory=Handle)
    src_agent_id: Handle = field(default_factory=Handle)
    bytes: Int64 | None = None
    stream_id: Handle = field(default_factory=Handle)


class Count(msgspec.Struct, gc=False):
    """What one instance of a counter (an XCC, a shader engine) counted."""

    counter_id: Handle = field(default_factory=Handle)
    value: float | None = None


class CountedDispatch(msgspec.Struct, gc=False):
    """The dispatch that was counted."""

    dispatch_info: Dispatch = field(default_factory=Dispatch)


class CounterRecord(msgspec.Struct, gc=False):
    """The counters of one dispatch."""

    dispatch_data: CountedDispatch | None = None
    records: list[Count] = []


class Nothing(msgspec.Struct, gc=False):
    """A record that wasn't asked for."""


class Symbol(msgspec.Struct, gc=False):
    """A kernel's code: names, and what it takes of a compute unit."""

    kernel_id: Int64 | None = None
    formatted_kernel_name: str | None = None
    demangled_kernel_name: str | None = None
    kernel_name: str | None = None
    arch_vgpr_count: Int64 | None = None
    accum_vgpr_count: Int64 | None = None
    sgpr_count: Int64 | None = None

    @property
    def name(self) -> str | None:
        """The cleanest name there is; mangled ones end in `.kd`."""
        return (
            self.formatted_kernel_name
            or (self.demangled_kernel_name or "").removesuffix(" [clone .kd]").removesuffix(".kd")
            or (self.kernel_name or "").removesuffix(".kd")
            or None
        )


class RangeText(msgspec.Struct, gc=False):
    """The text of a ROCTx range, by correlation id."""

    key: Int64 | None = None
    value: str | None = None


class Names(msgspec.Struct, gc=False):
    """A kind of records: its name, and those of its operations, by number."""

    kind: str | None = None
    operations: list[str] = []


class Counter(msgspec.Struct, gc=False):
    """A counter's name by its id."""

    id: Handle = field(default_factory=Handle)
    name: str | None = None


_NESTED = re.compile(rb"\}\s*,\s*(?=\{(?!\s*\"(?:counter_id|value)\"))")  # not within its counts


def record_kind(struct: type[S], array: str, sign: str | None = None) -> RecordKind[S]:
    """How records of `struct` are read; `sign` is the field that each of them has. Losses are counted for `array`."""
    decode = msgspec.json.Decoder(struct).decode
    many: Callable[[bytes], list[S]] = msgspec.json.Decoder(list[struct]).decode  # type: ignore[valid-type]

    def mend(text: bytes, losses: Losses) -> S | None:
        mended = repair(text, losses, category=array)
        try:
            return decode(mended)
        except BAD_JSON:
            pass
        try:
            value = msgspec.json.decode(mended)
        except BAD_JSON:
            return None
        return convert_loosely(value, struct, losses, array)

    return RecordKind(
        many,
        decode,
        mend,
        lambda record: sign is None or getattr(record, sign) is not None,
        begins=_NESTED if struct is CounterRecord else BOUNDARY,
        array=array,
    )


def convert_loosely(value: Any, struct: type[S], losses: Losses, category: str) -> S | None:
    """As `convert_fields`; None where `value` is no object."""
    return convert_fields(value, struct, losses, category) if isinstance(value, dict) else None


def convert_fields(fields: Mapping[str, Any], struct: type[S], losses: Losses, category: str) -> S:
    """Parsed JSON as a struct: fields of unexpected types are left out and counted."""
    values: dict[str, Any] = {}
    for info in msgspec.structs.fields(struct):
        if info.encode_name not in fields:
            continue
        each, place = fields[info.encode_name], f"{category}.{info.encode_name}"
        try:
            values[info.name] = msgspec.convert(each, info.type, strict=False)
            continue
        except (msgspec.ValidationError, OverflowError, RecursionError):
            pass
        is_struct = isinstance(info.type, type) and issubclass(info.type, msgspec.Struct)
        inner = convert_loosely(each, info.type, losses, place) if is_struct else None
        if inner is None:
            is_large = isinstance(each, int) and not -(2**63) <= each < 2**63
            losses.count("number_out_of_range" if is_large else "wrong_type", category=place, example=repr(each)[:60])
        else:
            values[info.name] = inner
    return struct(**values)
