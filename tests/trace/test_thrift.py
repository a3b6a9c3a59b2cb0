"""Structures as Thrift writes them, in bytes made by hand from its specification."""

import pytest

from inferometer.trace.thrift import MalformedThrift, read_struct


def read(data: bytes) -> object:
    fields, end = read_struct(data, 0, len(data))
    assert end == len(data)
    return fields


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b"\x00", {}),
        (b"\x15\x04\x15\x03\x00", {1: 2, 2: -2}),
        (b"\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", {1: -(2**63)}),
        (b"\x11\x12\x00", {1: True, 2: False}),
        (b"\x05\xc8\x01\x04\x00", {100: 2}),  # a field far from the one before it gives its number
        (b"\x18\x02ab\x15\x02\x00", {1: None, 2: 1}),
        (b"\x19\x35\x02\x04\x06\x00", {1: (1, 2, 3)}),
        (b"\x19\x21\x01\x02\x00", {1: (True, False)}),
        (b"\x1c\x15\x02\x00\x15\x04\x00", {1: {1: 1}, 2: 2}),
        (b"\x1b\x01\x85\x01a\x02\x15\x02\x00", {1: None, 2: 1}),
        (b"\x1b\x00\x17" + bytes(8) + b"\x1d" + bytes(16) + b"\x00", {1: None, 2: None, 3: None}),
        (b"\x19\xf3\x10" + bytes(16) + b"\x00", {1: (0,) * 16}),  # a list of more than 14 gives its length
    ],
)
def test_fields_are_read_by_their_ids(data: bytes, fields: object) -> None:
    assert read(data) == fields
    for length in range(len(data)):
        with pytest.raises(MalformedThrift):
            read_struct(data[:length], 0, length)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x1e\x00", r"expected a type from 1 to 13 before byte 1, found 14"),
        (b"\x15" + b"\xff" * 11, r"a number of more than 64 bits before byte 11"),
        (b"\x19\xf5\xff\xff\x03", r"a list of 65,535 before byte 5, where 0 bytes follow"),
        (b"\x18\x7fa", r"127 bytes at byte 2, where 1 follow"),
        (b"\x1c" * 40, r"nested more than 16 deep at byte 17"),
        (b"\x19\x19" * 40, r"nested more than 16 deep"),
    ],
)
def test_what_is_none_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(MalformedThrift, match=message):
        read(data)
