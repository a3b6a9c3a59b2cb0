"""Pickles of plain values, of every protocol; and that nothing else is ever made of one, or run."""

import pickle
import pickletools
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from inferometer.errors import FormatError
from inferometer.formats.torch_memory.literals import read_literals

KNOWN = set("().}])suaetXJKMGNqrhj") | set(map(chr, (0x80, 0x95, 0x85, 0x86, 0x87, 0x8C, 0x8D, 0x8A, 0x88, 0x89, 0x94)))
OTHERS = [op for op in pickletools.opcodes if op.code not in KNOWN]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner) | st.tuples(inner),
)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@given(value=PLAIN)
@settings(examples(20))
def test_plain_values_are_what_python_makes_of_them(protocol: int, value: Any) -> None:
    assert read_literals(pickle.dumps(value, protocol), "a.pickle") == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_is_shared_stays_one_object(protocol: int) -> None:
    frames = [{"name": "f"}]
    first, second = read_literals(pickle.dumps([frames, frames], protocol), "a.pickle")
    assert first is second


def test_long_texts_and_long_containers() -> None:
    value = ["x" * 300, *range(3000), {str(key): key for key in range(2000)}]
    for protocol in (2, 4, 5):
        assert read_literals(pickle.dumps(value, protocol), "a.pickle") == value


@pytest.mark.parametrize("opcode", OTHERS, ids=lambda op: op.name)
def test_every_other_opcode_is_refused_by_its_name(opcode: pickletools.OpcodeInfo) -> None:
    data = b"\x80\x02" + opcode.code.encode("latin-1") + b"os\nsystem\n" + b"\0" * 16 + b"."
    with pytest.raises(FormatError, match=f"byte 2: expected an opcode of plain values, found {opcode.name}\n"):
        read_literals(data, "a.pickle")


class Runs:
    """What pickle would run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_no_code_is_run(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "made"
    data = pickle.dumps({"segments": [Runs(target)]}, protocol)
    with pytest.raises(FormatError, match="Don't load this file with Python"):
        read_literals(data, "a.pickle")
    assert not target.exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x02]r\xff\xff\xff\xff.", None),  # a memo with one far index is a dict with one key
        (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.", "bytes more, found"),
        (b"\x80\x02X\xff\xff\xff\xff.", "expected 4,294,967,295 bytes more, found 1"),
        (b"\x80\x02" + b"(" * 100_000 + b".", "expected at most 1,000 containers in each other"),
        (b"\x80\x02h\x05.", "found none that fit"),
        (b"\x80\x02.", "found none that fit"),
        (b"\x80\x02K\x01a.", "found none that fit"),
        (b"\x80\x02}]K\x01s.", "neither text nor number"),
        (b"\x80\x02(K\x01q\x00.", None),
        (b"\x80\x02]K\x01(e.", "int in place of a list"),
        (b"\x80\x02](a.", "a mark is no value"),
        (b"\x80\x02}(K\x01u.", "in place of a dict and pairs"),
        (b"\x80\x02t.", "found none that fit"),
        (b"\x80\x04\x8c\x02\xff\xfe.", "found none that fit"),
        (b"\x80\x02\xff.", "found byte 0xff"),
    ],
)
def test_what_would_take_the_machine_or_makes_no_sense(data: bytes, words: str | None) -> None:
    if words is None:
        read_literals(data, "a.pickle")
        return
    with pytest.raises(FormatError, match=words):
        read_literals(data, "a.pickle")


def test_a_key_that_takes_forever_to_hash_is_refused() -> None:
    key: tuple[Any, ...] = ()
    for _ in range(40):
        key = (key, key)
    text = pickle.dumps(key, 4)[2:-1]
    with pytest.raises(FormatError, match="neither text nor number"):
        read_literals(b"\x80\x04}" + text + b"Ns.", "a.pickle")


def test_a_list_that_holds_itself_is_one_list() -> None:
    found = read_literals(b"\x80\x02]q\x00h\x00a.", "a.pickle")
    assert found[0] is found


def test_a_bomb_of_references_stays_small() -> None:
    """30 lists of twice the one before: 2^30 items if they were copied."""
    value: list[Any] = []
    for _ in range(30):
        value = [value, value]
    found = read_literals(pickle.dumps(value, 4), "a.pickle")
    assert found[0] is found[1]


@given(data=st.binary(max_size=60))
@settings(examples(100))
def test_any_bytes_are_a_value_or_a_format_error(data: bytes) -> None:
    with suppress(FormatError):
        read_literals(b"\x80\x04" + data, "a.pickle")


def test_cut_at_every_byte() -> None:
    data = pickle.dumps({"segments": [{"address": 1 << 40, "blocks": [(1, 2.5, None, True)]}]}, 4)
    for size in range(len(data)):
        with pytest.raises(FormatError, match="the file was cut"):
            read_literals(data[:size], "a.pickle")
