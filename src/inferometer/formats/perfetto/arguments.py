"""Arguments of events (debug annotations) that tables have columns for, by their names in rocprofv3 and in our export.

Which of its names rocprofv3 uses here is not known: its JSON, its CSV and its databases each have others, and all are.
"""

from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inferometer.formats.perfetto.sequences import State, Texts

Value = int | float | str | None
BEGIN, END, FLOW = "begin_ns", "end_ns", "flow"
_OWN: Final = (  # named as our columns are
    *("process", "context", "queued_ns", "external_id", "graph_id", "graph_node_id", "frame_id", "parent"),
    *("registers", "accum_registers", "scalar_registers", "shared_bytes", "scratch_bytes", "bytes", "occupancy"),
    *("path_id", "sequence_number", "input_dims", "input_dtypes", "input_strides", "scalars", "kernel"),
    *("kernel_file", "kernel_hash", "kernel_backend"),
    *(f"{side}_{axis}" for side in ("grid", "block") for axis in "xyz"),
)
_NAMES: Final[Mapping[str, str]] = {
    **{name: name for name in (*_OWN, BEGIN, END)},
    **dict.fromkeys(("correlation_id", "corr_id", "correlation"), "correlation_id"),
    **dict.fromkeys(("agent", "agent_id", "device", "device_id"), "agent"),
    **dict.fromkeys(("queue", "queue_id"), "queue"),
    **dict.fromkeys(("stream", "stream_id"), "stream"),
    **dict.fromkeys(("vgpr_count", "arch_vgpr_count"), "registers"),
    "accum_vgpr_count": "accum_registers",
    "sgpr_count": "scalar_registers",
    **dict.fromkeys(("group_segment_size", "lds_block_size"), "shared_bytes"),
    **dict.fromkeys(("private_segment_size", "scratch_size"), "scratch_bytes"),
    "graph_exec_id": "graph_id",
}
TEXTS: Final = frozenset(
    {"input_dims", "input_dtypes", "input_strides", "scalars", "kernel", "kernel_file", "kernel_hash", "kernel_backend"}
)
_UNKNOWN: Final = -1


class Arguments:
    """Values by column and event: few events have many of them, and most have none."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._columns: dict[int, str | None] = {}
        self._rows: dict[str, array[int]] = {}
        self._values: dict[str, list[Value]] = {}

    def take(self, row: int, annotations: Iterable[Any], state: State) -> None:
        """The arguments of the event `row`; rows come in order."""
        for each in annotations:
            name = each.name
            number = self._texts.number(name) if name else state.annotation_names.get(each.name_iid, _UNKNOWN)
            column = self._columns.get(number)
            if column is None and number not in self._columns:
                text = "" if number == _UNKNOWN else self._texts.all[number]
                column = self._columns[number] = _NAMES.get(text.casefold())
            if column is not None:
                self.put(row, column, self._value(each, state))

    def put(self, row: int, column: str, value: Value) -> None:
        """One value; the first of several of an event counts."""
        rows = self._rows.setdefault(column, array("q"))
        if value is not None and (not rows or rows[-1] != row):
            rows.append(row)
            self._values.setdefault(column, []).append(value)

    def has(self, column: str) -> bool:
        """Whether any event has a value."""
        return bool(self._rows.get(column))

    def of(self, column: str, rows: NDArray[np.int64]) -> list[Value] | None:
        """The values of the events `rows`, in order; None where none has one."""
        if not self.has(column):
            return None
        known = np.frombuffer(self._rows[column], np.int64)
        places = np.searchsorted(known, rows)
        places[places == len(known)] = 0
        is_there = known[places] == rows
        if not is_there.any():
            return None
        values = self._values[column]
        return [values[at] if found else None for at, found in zip(places.tolist(), is_there.tolist(), strict=True)]

    def _value(self, annotation: Any, state: State) -> Value:
        kind = annotation.WhichOneof("kind")
        if kind == "string_value":
            text: str = annotation.string_value.decode(errors="replace")
            return text
        if kind == "string_value_iid":
            number = state.texts.get(annotation.string_value_iid)
            return None if number is None else self._texts.all[number]
        found: Value = None if kind in (None, "bool_value") else getattr(annotation, kind)
        return found
