"""Numbers of safetensors files: every BF16, ranges of rows, what float16 loses, and broken files."""

import json
import os
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.webgpu.model_folders import bfloat16, header_of, write_safetensors

from inferometer.engines import safetensors_header
from inferometer.engines.hf.weight_files import INDEX, find_tensors
from inferometer.engines.safetensors_header import read_header
from inferometer.engines.webgpu.weights.safetensors_file import MappedFiles
from inferometer.engines.webgpu.weights.weight_reader import WeightReader
from inferometer.errors import FormatError, InferometerError, InputError

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def new_reader() -> WeightReader:
    return WeightReader(MappedFiles().rows)


def read(folder: Path, name: str, first: int = 0, last: int | None = None, reader: WeightReader | None = None) -> Any:
    tensor = find_tensors(folder)[name]
    return (reader or new_reader()).halves(name, tensor, first, tensor.shape[0] if last is None else last)


def write(folder: Path, **tensors: Any) -> Path:
    write_safetensors(folder / "model.safetensors", tensors)
    return folder


def test_every_bfloat16_becomes_the_nearest_float16(tmp_path: Path) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    exact = (bits.astype(np.uint32) << 16).view(np.float32)
    kept = bits[np.abs(exact) < 65536]  # NaN isn't
    folder = write(tmp_path, w=kept.reshape(-1, 2))
    with np.errstate(under="ignore"):
        wanted = exact[np.abs(exact) < 65536].astype(np.float16)
    found = read(folder, "w")
    assert (found.dtype, found.flags.c_contiguous, found.shape) == (np.float16, True, (len(kept) // 2, 2))
    assert np.array_equal(found.reshape(-1).view(np.uint16), wanted.view(np.uint16))  # bits: -0.0 too
    assert len(kept) == 2 * (143 << 7)


def test_ties_go_to_the_even_float16(tmp_path: Path) -> None:
    step = 2.0**-24  # between the smallest float16
    folder = write(tmp_path, w=bfloat16([[0.5 * step, 1.5 * step, 2.5 * step, -0.5 * step]]))
    assert (read(folder, "w") / step).tolist() == [[0, 2, 2, 0]]


@pytest.mark.parametrize("array", [ROWS, ROWS.astype(np.float16), bfloat16(ROWS)], ids=["F32", "F16", "BF16"])
@pytest.mark.parametrize("pad", [0, 1])
def test_rows_are_those_of_the_whole_wherever_the_data_begins(tmp_path: Path, array: Any, pad: int) -> None:
    header = header_of({"w": array})
    text = len(json.dumps(header))
    write_safetensors(tmp_path / "a.safetensors", {"w": array}, header, pad=-text % 2 + pad)
    assert read_header(tmp_path / "a.safetensors")["w"].start % 2 == pad
    assert read(tmp_path, "w").tolist() == ROWS.tolist()
    assert read(tmp_path, "w", 1, 3).tolist() == ROWS[1:3].tolist()
    assert read(tmp_path, "w", 2, 2).shape == (0, 3)
    floats = new_reader().floats("w", find_tensors(tmp_path)["w"], 3)
    assert (floats.dtype, floats.tolist()) == (np.float32, ROWS[3:].tolist())


def test_more_rows_than_a_block_are_joined(tmp_path: Path) -> None:
    values = np.arange(300 * 1000, dtype=np.float32).reshape(300, 1000) % 2048
    folder = write(tmp_path, w=values, wide=values.reshape(1, -1))
    assert np.array_equal(read(folder, "w"), values)
    assert np.array_equal(read(folder, "wide"), values.reshape(1, -1))


@pytest.mark.parametrize("is_bfloat16", [False, True])
def test_what_float16_loses_is_counted_once_a_row(tmp_path: Path, is_bfloat16: bool) -> None:
    rows = [[2.0**-26, 1.5 * 2.0**-24, 1.0], [2.0**-24, 0.0, -(2.0**-30)]]  # to 0, coarse; held; held, held, to 0
    folder, reader = (
        write(tmp_path, w=bfloat16(rows) if is_bfloat16 else np.array(rows, np.float32)),
        new_reader(),
    )
    assert reader.notes() == ()
    read(folder, "w", 1, 2, reader)
    read(folder, "w", 1, 2, reader)
    assert reader.notes() == (
        "float16 holds 3 numbers of matrices but for 1 that become 0 and 0 that lose digits, all below 6.1e-05",
    )
    read(folder, "w", reader=reader)
    assert reader.notes()[0].startswith("float16 holds 6 numbers of matrices but for 2 that become 0 and 1 that lose")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (bfloat16([[1.0, -65536.0]]), "w: expected numbers up to 65504, which float16 holds, found -65536"),
        (np.array([[1.0, 7e4]], np.float32), "w: expected numbers up to 65504, which float16 holds, found 70000"),
        (np.array([[1.0, 65520.0]], np.float32), "found 65520"),  # rounds to infinity
        (bfloat16([[1.0, np.inf]]), "w: expected finite numbers, found inf"),
        (bfloat16([[7e4 - 7e4 % 512, np.nan]]), "w: expected finite numbers, found nan"),
        (np.array([[np.nan, 7e4]], np.float32), "w: expected finite numbers, found nan"),
        (np.array([[1.0, np.inf]], np.float16), "w: expected finite numbers, found inf"),
        (np.array([[1.0, np.nan]], np.float16), "w: expected finite numbers, found nan"),
        (np.ones((1, 2), np.float64), "w: expected a dtype of F16, BF16, F32, found F64"),
        (np.ones((1, 2), np.int8), "w: expected a dtype of F16, BF16, F32, found I8"),
    ],
)
def test_numbers_that_float16_cant_hold_are_named(tmp_path: Path, values: Any, words: str) -> None:
    folder = write(tmp_path, w=values)
    with pytest.raises(InputError) as error:
        read(folder, "w")
    assert str(error.value).startswith(f"{tmp_path / 'model.safetensors'}: ")
    assert words in str(error.value)


def test_a_vector_may_be_larger_than_float16_but_must_be_finite(tmp_path: Path) -> None:
    folder = write(tmp_path, a=np.array([1e30], np.float32), b=bfloat16([np.nan]))
    tensors = find_tensors(folder)
    assert new_reader().floats("a", tensors["a"]).tolist() == [np.float32(1e30)]
    with pytest.raises(InputError, match="b: expected finite numbers, found nan"):
        new_reader().floats("b", tensors["b"])


def test_a_dtype_that_is_unknown_stands_beside_others(tmp_path: Path) -> None:
    header = {**header_of({"w": ROWS}), "x": {"dtype": "F4", "shape": [9], "data_offsets": [48, 53]}}
    write_safetensors(tmp_path / "a.safetensors", {"w": ROWS, "x": np.zeros(5, np.int8)}, header)
    assert read(tmp_path, "w").tolist() == ROWS.tolist()


def test_names_are_unicode_and_metadata_is_no_tensor(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, **header_of({"wörd.重み": ROWS})}
    write_safetensors(tmp_path / "a.safetensors", {"w": ROWS}, header)
    assert read(tmp_path, "wörd.重み").tolist() == ROWS.tolist()
    assert list(find_tensors(tmp_path)) == ["wörd.重み"]


def test_memory_stays_near_the_size_of_the_answer(tmp_path: Path) -> None:
    folder, reader = write(tmp_path, w=np.full((4000, 1000), 0x3C00, np.uint16)), new_reader()
    read(folder, "w", 0, 1, reader)  # the table of small numbers
    tracemalloc.start()
    found = read(folder, "w", reader=reader)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < found.nbytes + 3_000_000


def shards(folder: Path, weight_map: Mapping[str, str]) -> None:
    write_safetensors(folder / "a.safetensors", {"first": ROWS})
    write_safetensors(folder / "b.safetensors", {"second": ROWS + 1})
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 96}, "weight_map": weight_map}))


def test_tensors_of_several_files_are_found_by_name(tmp_path: Path) -> None:
    shards(tmp_path, {"first": "a.safetensors", "second": "b.safetensors"})
    write_safetensors(tmp_path / "stranger.safetensors", {"first": ROWS + 9})  # the index doesn't name it
    assert read(tmp_path, "first").tolist() == ROWS.tolist()
    assert read(tmp_path, "second", 3).tolist() == (ROWS[3:] + 1).tolist()


@pytest.mark.parametrize(
    ("index", "kind", "words"),
    [
        ({"first": "a.safetensors", "second": "c.safetensors"}, InputError, "aren't there: c.safetensors"),
        ({"third": "a.safetensors"}, FormatError, "says that third is in a.safetensors, found it not there"),
        ({"first": "b.safetensors"}, FormatError, "says that first is in b.safetensors, found it not there"),
        ({"first": "../a.safetensors"}, FormatError, 'expected names of files next to it, found "../a.safetensors"'),
        ({"first": ""}, FormatError, 'expected names of files next to it, found ""'),
        ({"first": "x" * 300}, InputError, "names 1 files, 1 of them aren't there: xxx"),
        ({"first": 3}, FormatError, "expected a JSON object with weight_map"),
    ],
)
def test_an_index_that_leads_nowhere_says_where(
    tmp_path: Path, index: dict[str, str], kind: type[InferometerError], words: str
) -> None:
    shards(tmp_path, index)
    with pytest.raises(kind) as error:
        find_tensors(tmp_path)
    assert type(error.value) is kind
    assert str(error.value).startswith(f"{tmp_path / INDEX}: ")
    assert words in str(error.value)


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        write_safetensors(tmp_path / f"{name}.safetensors", {"w": ROWS})
    with pytest.raises(
        FormatError, match=r"b\.safetensors: w: expected it in one file, found it in a\.safetensors too"
    ):
        find_tensors(tmp_path)


def entry(start: int, end: int, shape: object = (4, 3), dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"w": entry(0, 44)}, "w: expected 48 bytes of F32 [4, 3], found 44"),
        ({"w": entry(0, 48, (-4, -3))}, "of F32 [-4, -3], found 48"),
        ({"w": entry(0, 48, (2**40, 2**40))}, "found 48"),
        ({"v": entry(0, 48), "w": entry(0, 48)}, "w: expected its bytes from 48, found 0 to 48"),
        ({"w": entry(8, 56)}, "expected 1"),
        ({"v": entry(0, 16, (4,)), "w": entry(24, 40, (4,))}, "w: expected its bytes from 16, found 24 to 40"),
        ({"w": entry(48, 0)}, "w: expected its bytes from 0, found 48 to 0"),
        ({"w": entry(-48, 0)}, "w: expected its bytes from 0, found -48 to 0"),
        ({"w": entry(0, 48, "4x3")}, "expected a header of safetensors: ValidationError"),
        ({"w": entry(0, 48, dtype=7)}, "expected a header of safetensors"),
        ({"w": {"dtype": "F32"}}, "expected a header of safetensors"),
        ({"w": 3}, "expected a header of safetensors"),
        ([1], "expected a header of safetensors"),
    ],
)
def test_a_header_whose_places_cant_be_is_refused(tmp_path: Path, header: object, words: str) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"w": ROWS}, header)
    with pytest.raises(FormatError) as error:
        read_header(path)
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "expected a header of safetensors, found a length of 0 bytes in 0"),
        (b"\x10\0\0", "expected a header of safetensors, found a length of 16 bytes in 3"),
        (b"\xff" * 8 + b"{}", "found a length of 18446744073709551615 bytes in 10"),
        ((200_000_000).to_bytes(8, "little") + b"{}", "found a length of 200000000 bytes in 10"),
        ((9).to_bytes(8, "little") + b'{"w": [1]', "expected a header of safetensors"),
        ((4).to_bytes(8, "little") + b"\xff\xfe\x00\x00", "expected a header of safetensors"),
        ((200_000).to_bytes(8, "little") + b"[" * 200_000, "expected a header of safetensors"),
        ((100_005).to_bytes(8, "little") + b'{"w":' + b"[" * 100_000, "expected a header of safetensors"),
    ],
)
def test_what_is_no_safetensors_file_says_so(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(FormatError) as error:
        read_header(path)
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


def test_every_way_to_cut_a_file_off_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, w=ROWS, v=ROWS[0]) / "model.safetensors"
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(FormatError):
            read_header(path)


def test_tensors_without_end_are_refused_by_their_number(tmp_path: Path) -> None:
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{i}": entry for i in range((1 << 18) + 1)}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FormatError, match="expected at most 262,144 tensors in a file, found 262,145"):
        read_header(path)


def test_a_file_that_has_nothing_to_give_yet_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc/kmsg looks like a plain file, and would be waited for; here a pipe stands for it."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    monkeypatch.setattr(safetensors_header, "open_plain", lambda _: os.fdopen(reading, "rb"))
    with pytest.raises(FormatError, match="expected a header of safetensors, found a length of 0 bytes in 0"):
        read_header(tmp_path / "model.safetensors")
    os.close(writing)
