"""The messages of an XSpace, declared here: the `protobuf` runtime decodes them, and no TensorFlow is needed.

Source: openxla/xla, `xla/tsl/profiler/protobuf/xplane.proto`, read November 2026. Names and texts are declared as
bytes: one that isn't UTF-8 must not cost its plane. Maps are declared as their entries, which is the same on the
wire. Fields that no table needs are left out; the runtime skips them. `PlaneOutline` is an XPlane of which events and
descriptions of compiled programs, nearly all of a file, stay undecoded.
"""

from functools import cache
from typing import Any

from inferometer.errors import Unavailable

_PACKAGE = "inferometer.xplane"
_VALUE = "value"  # the name of each message's oneof
_MESSAGES = {  # name, number and type of each field; `*`: repeated, `?`: in the oneof
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


def decode(message: str, data: bytes) -> Any:
    """The message called `message` that `data` holds.

    Raises:
        Unavailable: The `protobuf` runtime isn't installed.
        ValueError: `data` is no such message.
    """
    classes, error_type = _classes()
    decoded = classes[message]()
    try:
        decoded.ParseFromString(data)
    except error_type as error:
        raise ValueError(str(error)) from error
    return decoded


@cache
def _classes() -> tuple[dict[str, Any], type[Exception]]:
    """A class for each message, and what they raise."""
    try:
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass
    except ImportError as error:
        raise Unavailable(
            f"a profile of JAX needs protobuf, which is not installed: {error}",
            hint="Install it with: pip install 'inferometer[jax]'",
        ) from error
    file = FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if any(kind.startswith("?") for _, _, kind in fields):
            message.oneof_decl.add(name=_VALUE)
        for field_name, number, kind in fields:
            label = "LABEL_REPEATED" if kind.startswith("*") else "LABEL_OPTIONAL"
            field = message.field.add(name=field_name, number=number, label=getattr(FieldDescriptorProto, label))
            _set_type(field, kind.lstrip("*?"))
            if kind.startswith("?"):
                field.oneof_index = 0
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}, DecodeError


def _set_type(field: Any, kind: str) -> None:
    if kind in _MESSAGES:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
