"""Headers of GGUF files: every type of value, places of tensors, and what a file that isn't one says."""

import os
import struct
import tracemalloc
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.engines.gguf.model_files import Raw, Wide, gguf_bytes, text, tiny_model, value

from inferometer.engines.gguf.header import Header, read_header
from inferometer.engines.gguf.tensor_types import TYPES
from inferometer.errors import FormatError, InputError

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


def read(folder: Path, data: bytes) -> Header:
    path = folder / "a.gguf"
    path.write_bytes(data)
    return read_header(path)


def values(header: Header) -> dict[str, Any]:
    return {key: each.tolist() if isinstance(each, np.ndarray) else each for key, each in header.metadata.items()}


def test_values_and_places_are_those_that_were_written(tmp_path: Path) -> None:
    metadata = {
        "a": "ä",
        "b": True,
        "c": 7,
        "d": 0.5,
        "e": Wide(-(2**40)),
        "f": ["x", "", "yy"],
        "g": [1, -2],
        "h": [1.5],
    }
    header = read(tmp_path, gguf_bytes(metadata, {"w": ROWS, "v": np.ones(5, np.float16)}))
    assert values(header) == metadata
    assert [type(header.metadata[key]) for key in "abcd"] == [str, bool, int, float]
    w, v = header.tensors["w"], header.tensors["v"]
    assert (w.dtype, w.shape, w.end - w.start, w.start % 32) == ("F32", (3, 4), 48, 0)
    assert (v.dtype, v.shape, v.end - v.start, v.start - w.start) == ("F16", (5,), 10, 64)
    data = header.path.read_bytes()
    assert np.frombuffer(data[w.start : w.end], np.float32).tolist() == ROWS.reshape(-1).tolist()


def test_the_gguf_library_reads_and_writes_the_same(tmp_path: Path) -> None:
    gguf: Any = pytest.importorskip("gguf")
    path = tmp_path / "library.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for kind in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        getattr(writer, f"add_{kind}")(kind, 100)
    writer.add_float32("float32", 0.25)
    writer.add_float64("float64", 1e-300)
    writer.add_bool("bool", False)
    writer.add_array("texts", ["a", "é"])
    writer.add_array("numbers", [1.5, 2.5])
    writer.add_tensor("plain", ROWS)
    writer.add_tensor("blocks", gguf.quantize(np.ones((2, 64), np.float32), gguf.GGMLQuantizationType.Q5_1),
                      raw_dtype=gguf.GGMLQuantizationType.Q5_1)  # fmt: skip
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header, library = read_header(path), gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in library.fields.items() if not name.startswith("GGUF.")}
    assert {
        key: each.tolist() if isinstance(each, np.ndarray) else each for key, each in header.metadata.items()
    } == fields
    assert [(name, each.dtype, each.shape, each.start, each.end) for name, each in header.tensors.items()] == [
        (each.name, each.tensor_type.name, tuple(int(n) for n in each.shape[::-1]), each.data_offset,
         each.data_offset + each.n_bytes) for each in library.tensors
    ]  # fmt: skip


def test_blocks_are_as_large_as_the_gguf_library_has_them() -> None:
    gguf: Any = pytest.importorskip("gguf")
    sizes = {kind.value: (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGMLQuantizationType}
    assert {number: (each.name, each.numbers, each.bytes) for number, each in TYPES.items()} == {
        number: sizes[number] for number in TYPES
    }
    assert sorted(each.name for each in TYPES.values()) == [
        "BF16", "F16", "F32", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0"
    ]  # fmt: skip


def keyed(form: str, *numbers: int, behind: bytes = b"") -> bytes:
    """A file whose only key, `a`, has this value."""
    return gguf_bytes({"a": struct.pack(form, *numbers) + behind}, {})


def tensor(kind: int, shape: tuple[int, ...], size: int) -> bytes:
    """A file whose only tensor, `w`, is this."""
    return gguf_bytes({}, {"w": Raw((kind, shape, bytes(size)))})


def keys(*written: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(written)) + b"".join(written)


CUT_OFF = "bytes, found 64: it is cut off"
WRONG = {
    "empty": (b"", "expected a GGUF file, which begins with GGUF, found b''"),
    "text": (b"{} is no model", "begins with GGUF, found b'{} i'"),
    "version": (gguf_bytes({}, {}, version=1), "version: expected 2 or 3, in little-endian order, found 1"),
    "big-endian": (gguf_bytes({}, {}, version=3 << 24), "found 50331648"),
    "tensors": (gguf_bytes({}, {}, counts=(2**40, 0)), "number of tensors: expected at most 262,144"),
    "keys": (gguf_bytes({}, {}, counts=(0, 2**63)), "number of keys: expected at most 4,096"),
    "fewer keys": (gguf_bytes({}, {}, counts=(0, 9)), "it is cut off"),
    "long text": (keyed("<IQ", 8, 2**62), "a: expected 4,611,686,018,427,387,949 bytes"),
    "long array": (keyed("<IIQ", 9, 0, 2**60), f"a: expected 1,152,921,504,606,847,025 {CUT_OFF}"),
    "long texts": (keyed("<IIQ", 9, 8, 2**61), f"a: expected 18,446,744,073,709,551,665 {CUT_OFF}"),
    "texts in a text": (keyed("<IIQQ", 9, 8, 1, 99), f"a: expected 156 {CUT_OFF}"),
    "array of arrays": (keyed("<IIQ", 9, 9, 1), "a: expected an array of numbers or texts, found one of type 9"),
    "type of value": (keyed("<I", 13), "a: expected a type of value from 0 to 12, found 13"),
    "no UTF-8": (keyed("<I", 8, behind=text(b"\xff")), "a: expected text in UTF-8"),
    "no UTF-8 in texts": (keyed("<IIQ", 9, 8, 1, behind=text(b"\xff")), "a: expected text in UTF-8"),
    "long key": (keys(text("k" * 300)), "key 1 of 1: expected a name of at most 256 bytes, found 300"),
    "key twice": (keys(*[text("k") + value(1)] * 2), "key 2 of 2: expected another name, found k a second time"),
    "alignment": (gguf_bytes({"general.alignment": 48}, {}), "general.alignment: expected a power of two up to 65536"),
    "no alignment": (gguf_bytes({"general.alignment": 0}, {}), "general.alignment: expected a power of two"),
    "dimensions": (tensor(0, (1,) * 5, 4), "w: expected 1 to 4 dimensions, found 5"),
    "no dimension": (tensor(0, (), 4), "w: expected 1 to 4 dimensions, found 0"),
    "no number": (tensor(0, (0, 4), 0), "w: expected rows of whole blocks of 1 numbers (F32)"),
    "half a block": (tensor(2, (2, 48), 54), "w: expected rows of whole blocks of 32 numbers (Q4_0), found [2, 48]"),
    "blocks of a vector": (tensor(2, (32,), 18), "w: expected a vector of plain numbers, found Q4_0"),
    "type of tensor": (tensor(16, (1, 256), 66), "w: expected a type of F32, F16, Q4_0, Q4_1"),
    "huge tensor": (tensor(0, (2**32, 2**32), 4), "w: expected 73,786,976,294,838,206,5"),
}


@pytest.mark.parametrize(("data", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_gguf_file_says_so(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, data)
    assert words in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'a.gguf'}: ")


def test_tensors_that_overlap_are_refused(tmp_path: Path) -> None:
    data = bytearray(gguf_bytes({}, {"w": ROWS, "v": ROWS}))
    at = data.index(b"v") + 1 + struct.calcsize("<IQQI")
    assert struct.unpack_from("<Q", data, at) == (64,)
    for offset in (32, 33, 0):
        struct.pack_into("<Q", data, at, offset)
        with pytest.raises(FormatError, match="expected its bytes from"):
            read(tmp_path, bytes(data))


def test_a_file_that_is_cut_off_anywhere_says_so(tmp_path: Path) -> None:
    metadata, tensors = {"a": ["xx", "y"], "b": [1.5], "c": "text"}, {"w": ROWS}
    whole = gguf_bytes(metadata, tensors)
    for size in range(len(whole)):
        with pytest.raises(FormatError, match="it is cut off" if size >= 4 else "begins with GGUF"):
            read(tmp_path, whole[:size])


def test_any_byte_may_be_any_other(tmp_path: Path) -> None:
    """A header or an InputError, and little memory, whatever the damage is."""
    metadata, _ = tiny_model("tiny-qwen3")
    whole = gguf_bytes({**metadata, "tokens": ["a", "bb"] * 20}, {"w": ROWS, "v": ROWS})
    rng = Random(20261126)
    tracemalloc.start()
    for _ in range(800):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 5))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        try:
            header = read(tmp_path, bytes(data))
        except InputError:
            continue
        assert all(each.end <= len(data) for each in header.tensors.values())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path, words in (
        (tmp_path, "directory"),
        (tmp_path / "pipe.gguf", "found a pipe"),
        (tmp_path / "none", "No such"),
    ):
        with pytest.raises(InputError, match=words):
            read_header(path)
