"""Messages of Protobuf, declared as tables of fields: the `protobuf` runtime decodes them, and nothing is compiled.

A schema names the fields that its reader needs; the runtime skips the others. Names and texts are best declared as
bytes: one that isn't UTF-8 must not cost its message.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from inferometer.errors import Unavailable

Field = tuple[str, int, str]
"""Name, number and type; `*` before the type: repeated, `?`: in the message's oneof."""


class Schema(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Messages by their names. `package` is ours; `oneof` names the oneof of each message that has one.

    `product` and `extra` are for the error where the runtime isn't installed.
    """

    package: str
    messages: Mapping[str, Sequence[Field]]
    oneof: str
    product: str
    extra: str

    def decode(self, message: str, data: bytes) -> Any:
        """The message called `message` that `data` holds.

        Raises:
            Unavailable: The `protobuf` runtime isn't installed.
            ValueError: `data` is no such message.
        """
        classes, error_type = self._classes
        decoded = classes[message]()
        try:
            decoded.ParseFromString(data)
        except error_type as error:
            raise ValueError(str(error)) from error
        return decoded

    @cached_property
    def _classes(self) -> tuple[dict[str, Any], type[Exception]]:
        """A class for each message, and what they raise."""
        try:
            from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
            from google.protobuf.descriptor_pool import DescriptorPool
            from google.protobuf.message import DecodeError
            from google.protobuf.message_factory import GetMessageClass
        except ImportError as error:
            raise Unavailable(
                f"{self.product} needs protobuf, which is not installed: {error}",
                hint=f"Install it with: pip install 'inferometer[{self.extra}]'",
            ) from error
        file = FileDescriptorProto(name=f"{self.package}.proto", package=self.package, syntax="proto3")
        for name, fields in self.messages.items():
            message = file.message_type.add(name=name)
            if any(kind.startswith("?") for _, _, kind in fields):
                message.oneof_decl.add(name=self.oneof)
            for field_name, number, kind in fields:
                label = "LABEL_REPEATED" if kind.startswith("*") else "LABEL_OPTIONAL"
                field = message.field.add(name=field_name, number=number, label=getattr(FieldDescriptorProto, label))
                self._set_type(field, kind.lstrip("*?"))
                if kind.startswith("?"):
                    field.oneof_index = 0
        pool = DescriptorPool()
        pool.Add(file)
        found = (pool.FindMessageTypeByName(f"{self.package}.{name}") for name in self.messages)
        return {each.name: GetMessageClass(each) for each in found}, DecodeError

    def _set_type(self, field: Any, kind: str) -> None:
        if kind in self.messages:
            field.type, field.type_name = field.TYPE_MESSAGE, f".{self.package}.{kind}"
        else:
            field.type = getattr(field, f"TYPE_{kind.upper()}")
