"""Nodes of an execution trace as structs: of schema 1.1 and later with `attrs`, of earlier ones with flat fields."""

import re
from typing import Any, Final

import msgspec

from inferometer.formats.json_text.records import BAD_JSON, Int64, RecordKind
from inferometer.formats.json_text.repair import repair
from inferometer.trace.losses import Losses

_BEGINS: Final = re.compile(rb"\}\s*,\s*(?=\{\s*\"id\"\s*:)")  # attributes begin with their names


class Attribute(msgspec.Struct, gc=False):
    """One of `attrs`."""

    name: str = ""
    value: Any = None


class Arguments(msgspec.Struct, gc=False):
    """Inputs or outputs, as four lists with an entry for each; older files have two."""

    values: list[Any] = []
    shapes: list[Any] = []
    types: list[str] = []
    strides: list[Any] | None = None


class Node(msgspec.Struct, gc=False):
    """One call of an op. Fields from `parent` on are those of earlier schemas."""

    id: Int64 | None = None
    name: str | None = None
    ctrl_deps: Int64 | None = None
    inputs: Arguments | list[Any] | None = None
    outputs: Arguments | list[Any] | None = None
    attrs: list[Attribute] = []
    parent: Int64 | None = None
    rf_id: Int64 | None = None
    seq_id: Int64 | None = None
    tid: Int64 | None = None
    op_schema: str | None = None
    kernel_backend: str | None = None
    kernel_file: str | None = None
    input_shapes: list[Any] = []
    input_types: list[str] = []
    output_shapes: list[Any] = []
    output_types: list[str] = []

    def attributes(self) -> dict[str, Any]:
        """By name, whichever schema it is."""
        flat = {
            "rf_id": self.rf_id,
            "seq_id": self.seq_id,
            "tid": self.tid,
            "op_schema": self.op_schema,
            "kernel_backend": self.kernel_backend,
            "kernel_file": self.kernel_file,
        }
        return flat | {each.name: each.value for each in self.attrs}

    def given(self) -> Arguments:
        """What it was called with."""
        if isinstance(self.inputs, Arguments):
            return self.inputs
        return Arguments(self.inputs or [], self.input_shapes, self.input_types)

    def gave(self) -> Arguments:
        """What it returned."""
        if isinstance(self.outputs, Arguments):
            return self.outputs
        return Arguments(self.outputs or [], self.output_shapes, self.output_types)


_one = msgspec.json.Decoder(Node).decode


def _mend(text: bytes, losses: Losses) -> Node | None:
    """A node that doesn't decode, repaired; without what has the wrong type."""
    mended = repair(text, losses)
    try:
        return _one(mended)
    except BAD_JSON:
        pass
    try:
        fields = msgspec.json.decode(mended)
    except BAD_JSON:
        return None
    values = {}
    for info in msgspec.structs.fields(Node):
        if info.name in fields:
            try:
                values[info.name] = msgspec.convert(fields[info.name], info.type)
            except (msgspec.ValidationError, OverflowError, RecursionError):
                losses.count("wrong_type", category=f"nodes.{info.name}", example=f"{fields[info.name]!r:.60}")
    return Node(**values)


NODES: Final = RecordKind(
    msgspec.json.Decoder(list[Node]).decode,
    _one,
    _mend,
    lambda node: node.id is not None,
    begins=_BEGINS,
    array="nodes",
)
"""How nodes are read."""
