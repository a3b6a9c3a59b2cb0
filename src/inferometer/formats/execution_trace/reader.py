"""Reads an execution trace: a few fields, and an array of nodes, a window of text at a time."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.execution_trace.arguments import texts
from inferometer.formats.execution_trace.nodes import NODES, Node
from inferometer.formats.execution_trace.storages import STORAGES, storages
from inferometer.formats.json_text.records import BAD_JSON, RecordReader
from inferometer.formats.json_text.values import some_text, whole_number
from inferometer.formats.json_text.window import Truncated, Window
from inferometer.trace.facts import Facts, NamedId

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_TABLE, _CATEGORY = "op_nodes", "nodes"
_KEPT_BYTES: Final = 1 << 10
_FRAME: Final = "[pytorch|profiler|execution_trace|"  # nodes that stand for the process and its threads
_HINT: Final = "Record it again: torch.profiler.ExecutionTraceObserver().register_callback('et.json')."
NOTE: Final = (
    "An execution trace has ops with their arguments, and no times: `inferometer ops` says what they must do, and a "
    "profile of the same run gets shapes from it (`--execution-trace`)."
)


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it; a file that breaks off is read as far as it goes.

    Raises:
        FormatError: It has no nodes.
    """
    with source.open() as stream:
        document = _Document(source, Window(stream), out)
        document.read()
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    return document.facts()


class _Document:
    """One pass over one file."""

    def __init__(self, source: "Source", text: Window, out: "TraceBuilder") -> None:
        self._source = source
        self._text = text
        self._out = out
        self._fields: dict[str, Any] = {}
        self._found_nodes = False

    def read(self) -> None:
        text = self._text
        if text.skip_mark() != ord("{"):
            raise FormatError(f"{self._source.name}: expected an object with nodes, found something else", hint=_HINT)
        try:
            for key in text.fields():
                self._field(key)
            if not text.take(ord("}")):
                raise Truncated
        except Truncated:
            if not self._out.losses.total("truncated"):
                self._out.losses.count("truncated", example=f"at byte {text.offset:,}, next to the nodes")
        if not self._found_nodes:
            raise FormatError(f"{self._source.name}: expected an array of nodes, found none", hint=_HINT)

    def _field(self, key: str) -> None:
        text = self._text
        if key == "nodes" and text.take(ord("[")):
            self._found_nodes = True
            most = self._source.limits.event_bytes
            for nodes in RecordReader(text, self._out.losses, NODES, most_bytes=most).batches():
                self._take(nodes)
            return
        raw = text.take_value(keep=_KEPT_BYTES)
        try:
            self._fields[key] = None if raw is None else msgspec.json.decode(raw)
        except BAD_JSON:
            self._out.losses.count("unreadable_header", example=key[:60])

    def _take(self, nodes: Sequence[Node]) -> None:
        if not self._out.wants(_TABLE):
            return
        self._out.losses.see(_CATEGORY, len(nodes))
        columns: dict[str, list[Any]] = defaultdict(list)
        for node in nodes:
            if node.name is None:
                self._out.losses.count("without_name", category=_CATEGORY)
            elif node.name.startswith(_FRAME):
                self._out.losses.count("metadata_event", category=_CATEGORY)
            else:
                for name, value in self._row(node, node.name).items():
                    columns[name].append(value)
        self._out.add(_TABLE, len(columns["op"]), columns)

    def _row(self, node: Node, name: str) -> dict[str, Any]:
        attributes = node.attributes()
        try:
            given, gave = texts(node.given()), texts(node.gave())
            written = storages(node.given(), node.gave(), some_text(attributes["op_schema"]))
        except RecursionError:
            self._out.losses.count("wrong_type", category=_CATEGORY, example=name[:60])
            given = gave = dict.fromkeys(("dims", "dtypes", "strides", "scalars"))
            written = dict.fromkeys(STORAGES)
        sequence = whole_number(attributes["seq_id"])
        return {
            "op": name,
            "process": whole_number(self._fields.get("pid")),
            "thread": whole_number(attributes["tid"]),
            "node": node.id,
            "parent": node.ctrl_deps if node.parent is None else node.parent,
            "record_function_id": whole_number(attributes["rf_id"]) or None,
            "input_dims": given["dims"],
            "input_dtypes": given["dtypes"],
            "input_strides": given["strides"],
            "scalars": given["scalars"],
            **written,
            "output_dims": gave["dims"],
            "output_dtypes": gave["dtypes"],
            "sequence_number": None if sequence is None or sequence < 0 else sequence,
            "schema": some_text(attributes["op_schema"]),
            "kernel_file": some_text(attributes["kernel_file"]),
            "kernel_backend": some_text(attributes["kernel_backend"]),
        }

    def facts(self) -> Facts:
        """What is next to the nodes."""
        schema, process = self._fields.get("schema"), whole_number(self._fields.get("pid"))
        return Facts(
            "execution-trace",
            self._source.name,
            tool="PyTorch ExecutionTraceObserver",
            tool_version=schema if isinstance(schema, str) else None,
            processes=() if process is None else (NamedId(process),),
            recorded={"shapes": True},
            notes=(NOTE,),
        )
