"""The messages of an XSpace, declared here: no TensorFlow is needed.

Source: openxla/xla, `xla/tsl/profiler/protobuf/xplane.proto`, read November 2026. Names and texts are declared as
bytes: one that isn't UTF-8 must not cost its plane. Maps are declared as their entries, which is the same on the
wire. Fields that no table needs are left out; the runtime skips them. `PlaneOutline` is an XPlane of which events and
descriptions of compiled programs, nearly all of a file, stay undecoded.
"""

from typing import Any, Final

from inferometer.formats.protobuf_messages import Field, Schema

_MESSAGES: Final[dict[str, tuple[Field, ...]]] = {
    "XPlane": (
        ("name", 2, "bytes"),
        ("lines", 3, "*XLine"),
        ("event_metadata", 4, "*EventEntry"),
        ("stat_metadata", 5, "*StatEntry"),
        ("stats", 6, "*XStat"),
    ),
    "PlaneOutline": (
        ("name", 2, "bytes"),
        ("lines", 3, "*LineOutline"),
        ("stat_metadata", 5, "*StatEntry"),
        ("stats", 6, "*XStat"),
    ),
    "EventEntry": (("key", 1, "int64"), ("value", 2, "XEventMetadata")),
    "StatEntry": (("key", 1, "int64"), ("value", 2, "XStatMetadata")),
    "XLine": (
        ("id", 1, "int64"),
        ("name", 2, "bytes"),
        ("timestamp_ns", 3, "int64"),
        ("events", 4, "*XEvent"),
        ("display_name", 11, "bytes"),
    ),
    "LineOutline": (
        ("id", 1, "int64"),
        ("name", 2, "bytes"),
        ("timestamp_ns", 3, "int64"),
        ("display_name", 11, "bytes"),
    ),
    "XEvent": (
        ("metadata_id", 1, "int64"),
        ("offset_ps", 2, "?int64"),
        ("duration_ps", 3, "int64"),
        ("stats", 4, "*XStat"),
        ("num_occurrences", 5, "?int64"),
    ),
    "XStat": (
        ("metadata_id", 1, "int64"),
        ("double_value", 2, "?double"),
        ("uint64_value", 3, "?uint64"),
        ("int64_value", 4, "?int64"),
        ("str_value", 5, "?bytes"),
        ("bytes_value", 6, "?bytes"),
        ("ref_value", 7, "?uint64"),
    ),
    "XEventMetadata": (("name", 2, "bytes"), ("display_name", 4, "bytes"), ("stats", 5, "*XStat")),
    "XStatMetadata": (("name", 2, "bytes"),),
}
_SCHEMA: Final = Schema("inferometer.xplane", _MESSAGES, "value", product="a profile of JAX", extra="jax")


def decode(message: str, data: bytes) -> Any:
    """The message called `message` that `data` holds.

    Raises:
        Unavailable: The `protobuf` runtime isn't installed.
        ValueError: `data` is no such message.
    """
    return _SCHEMA.decode(message, data)
