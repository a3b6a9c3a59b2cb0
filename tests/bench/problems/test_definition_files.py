"""What is wrong with a definition is said with its place, what was expected and what was found."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.bench.problems.datasets import ALL, DECODE, GDN, GEMM, write

from inferometer.bench.exchange.schema import Workload
from inferometer.bench.problems.definition_files import bytes_of, holds, read_definition, sizes_of
from inferometer.errors import FormatError, InputError


def written(folder: Path, changed: dict[str, Any]) -> Path:
    return write(folder / "definition.json", json.dumps({**GEMM, **changed}))


@pytest.mark.parametrize("given", ALL, ids=lambda each: each["op_type"])
def test_every_kind_is_read_and_nothing_of_it_is_lost(given: dict[str, Any], tmp_path: Path) -> None:
    found = read_definition(write(tmp_path / "a.json", json.dumps(given)))
    assert (found.name, found.op_type, list(found.inputs)) == (given["name"], given["op_type"], list(given["inputs"]))
    assert list(found.constraints) == given["constraints"]
    assert {name for name, spec in found.inputs.items() if spec.optional} == {
        name for name, spec in given["inputs"].items() if spec.get("optional")
    }


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "../gemm"}, 'name: expected letters, digits and _.+-, found "../gemm"'),
        ({"name": "g\u202eemm"}, r"found \"g\u202eemm\""),
        ({"name": ""}, "name: expected letters"),
        ({"axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 0}}}, "axes.N: expected a size above 0"),
        ({"axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 1 << 50}}}, "axes.N: expected a size above 0"),
        ({"axes": {"M": {"type": "list"}}}, "axes"),
        ({"inputs": {}}, "inputs: expected a tensor at least, found none"),
        ({"inputs": {"a b": {"shape": ["M"], "dtype": "float16"}}}, "expected a name of Python"),
        ({"inputs": {"A": {"shape": ["M"], "dtype": "fp17"}}}, 'inputs.A.dtype: expected one of'),
        ({"inputs": {"A": {"shape": ["Q"], "dtype": "float16"}}}, 'of the definition (M, N, K), found "Q"'),
        ({"inputs": {"A": {"shape": [3], "dtype": "float16"}}}, "inputs"),
        ({"inputs": {"A": {"shape": ["K"], "dtype": "float16"}}}, "outputs.C.shape: M is var, and no input has it"),
        ({"reference": "def run(A, B:\n"}, "reference: line 1: expected Python"),
        ({"reference": "def go(A, B): pass"}, "reference: expected a function run, found none"),
        ({"reference": "def run(A): pass"}, "reference: expected run(A, B), found run(A)"),
        ({"reference": "x" * 5 + "\0"}, "reference:"),
    ],
)  # fmt: skip
def test_a_bad_definition_is_refused(changed: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        read_definition(written(tmp_path, changed))
    message = str(error.value)
    assert "definition.json" in message
    assert words.replace('\\"', '"') in message


@pytest.mark.parametrize("text", ["", "{", '{"name": "x"}', "[1]", '{"name": 3}', "\xff", json.dumps(GEMM)[:200]])
def test_what_is_no_json_of_a_definition_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.json"):
        read_definition(write(tmp_path / "a.json", text))
    with pytest.raises(InputError, match="No such file"):
        read_definition(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, "axes: expected a size of M, found none"),
        ({"M": 3, "Q": 4}, "axes.Q: gemm_n24_k40 has no such axis; var are: M"),
        ({"M": 3, "N": 25}, "axes.N: expected 24 as the definition has it, found 25"),
        ({"M": -1}, "axes.M: expected a size of 0 to"),
    ],
)
def test_axes_of_a_workload_must_resolve(axes: dict[str, int], words: str, tmp_path: Path) -> None:
    found = read_definition(written(tmp_path, {}))
    with pytest.raises(FormatError) as error:
        sizes_of("file.jsonl:3", found, Workload(axes=axes, inputs={}, uuid="a"))
    assert f"file.jsonl:3: {words}" in str(error.value)


def test_constraints_between_axes_are_held(tmp_path: Path) -> None:
    found = read_definition(write(tmp_path / "a.json", json.dumps(DECODE)))
    axes = {"batch_size": 3, "num_pages": 20, "len_indptr": 5, "num_kv_indices": 11}
    with pytest.raises(FormatError, match=r'expected "len_indptr == batch_size \+ 1" to hold, found .*batch_size=3'):
        sizes_of("here", found, Workload(axes=axes, inputs={}, uuid="a"))
    assert sizes_of("here", found, Workload(axes={**axes, "len_indptr": 4}, inputs={}, uuid="a"))["head_dim"] == 8


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("a == b + 1", True),
        ("a == b", False),
        ("b < a <= 4", True),
        ("a // 2 == 2 and b == 3", None),  # a conjunction is passed over
        ("a == c[-1].item()", None),
        ("__import__('os').system('x') == 1", None),
        ("a ==", None),
        ("a == " + "1 + " * 400 + "1", None),
        ("a == 2 ** 99", None),
    ],
)
def test_constraints_are_arithmetic_of_axes_or_passed_over(constraint: str, expected: bool | None) -> None:
    assert holds(constraint, {"a": 4, "b": 3}) is expected


def test_bytes_are_those_of_all_tensors(tmp_path: Path) -> None:
    found = read_definition(write(tmp_path / "a.json", json.dumps(GDN)))
    sizes = {**dict.fromkeys(found.axes, 2), "head_size": 8}
    assert bytes_of(found.outputs, sizes) == 2 * 2 * 8 * 2 + 2 * 2 * 8 * 8 * 4
