"""Bytes that Google's library reads as the same values."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import DebugAnnotation, TracePacket, TrackEvent
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace
from tests.effort import examples

from inferometer.reports.perfetto.protobuf import (
    encode,
    fixed64,
    integers,
    joined,
    messages,
    repeated,
    same,
    small_messages,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "time": st.integers(0, 2**63 - 1),
            "whole": INT64 | st.none(),
            "flows": st.lists(st.integers(0, 2**63 - 1), max_size=4),
            "value": st.floats(allow_nan=False),
        }
    ),
    min_size=1,
    max_size=20,
)


def test_one_message_is_what_google_reads() -> None:
    data = encode({10: 300, 13: -1, 11: encode({22: "grün", 47: [], 3: [1, 2, 300], 44: 0.5})})
    packet = TracePacket()
    packet.ParseFromString(data.replace(encode({13: -1}), encode({13: 2})))
    assert (packet.trusted_packet_sequence_id, packet.sequence_flags) == (300, 2)
    assert packet.track_event.categories == ["grün"]
    assert list(packet.track_event.category_iids) == [1, 2, 300]
    assert packet.track_event.double_counter_value == 0.5


@given(INT64)
@examples(200)
def test_any_integer_is_the_shortest_varint(value: int) -> None:
    wanted = DebugAnnotation(int_value=value).SerializeToString()
    assert encode({4: value}) == integers(4, np.array([value])).data.tobytes() == wanted


@given(ROWS)
@examples(150)
def test_columns_are_the_messages_of_their_rows(rows: list[dict[str, Any]]) -> None:
    whole = [row["whole"] for row in rows]
    present = np.array([each is not None for each in whole])
    ids = np.array([flow for row in rows for flow in row["flows"]], np.int64)
    event = joined(
        integers(9, np.ones(len(rows), np.int64)),
        small_messages(4, encode({1: 7}), 4, np.array([each or 0 for each in whole], np.int64), present),
        small_messages(4, encode({1: 8}), 5, np.array([row["value"] for row in rows])),
        repeated(fixed64(47, ids), np.array([len(row["flows"]) for row in rows])),
    )
    times = np.array([row["time"] for row in rows], np.int64)
    packet = joined(integers(8, times), same(encode({10: 1}), len(rows)), messages(11, event))
    assert messages(1, packet).data.tobytes() == as_google_writes_it(rows)


def as_google_writes_it(rows: list[dict[str, Any]]) -> bytes:
    out = []
    for row in rows:
        event = TrackEvent(type=TrackEvent.TYPE_SLICE_BEGIN, flow_ids=row["flows"])
        if row["whole"] is not None:
            event.debug_annotations.add(name_iid=7, int_value=row["whole"])
        event.debug_annotations.add(name_iid=8, double_value=row["value"])
        parts = [(8, row["time"]), (10, 1), (11, in_our_order(event))]
        out.append(encode({1: encode(dict(parts))}))
    again = PerfettoTrace()
    again.ParseFromString(b"".join(out))
    assert [packet.timestamp for packet in again.packet] == [row["time"] for row in rows]
    assert [list(packet.track_event.flow_ids) for packet in again.packet] == [row["flows"] for row in rows]
    return b"".join(out)


def in_our_order(event: TrackEvent) -> bytes:
    """Google writes fields by number; ours are in the order given, which is as valid."""
    parts = [TrackEvent(type=event.type), TrackEvent(debug_annotations=event.debug_annotations)]
    return b"".join(part.SerializeToString() for part in [*parts, TrackEvent(flow_ids=event.flow_ids)])


def test_a_small_message_that_would_be_large_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 127 bytes"):
        small_messages(4, b"x" * 126, 4, np.array([1]))
