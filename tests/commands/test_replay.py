"""`inferometer replay` as users meet it."""

import ast
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import Event, call, event, kernel, write_file


def op(name: str, ts: str, dims: str, correlation: int) -> list[Event]:
    """A call of an op on one tensor, with the launch that it makes."""
    begin = int(ts)
    shapes = {"Input_Dims": [[int(dims)]], "Input_type": ["float"], "Input_Strides": [[1]], "Concrete_Inputs": [""]}
    return [
        event("cpu_op", name, ts, "8", **shapes),
        call(ts=str(begin + 1), dur="2", correlation=correlation),
        kernel(f"kernel of {name}", str(begin + 10), dims, correlation=correlation),
    ]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    events = [*op("aten::tanh", "100", "3", 1), *op("aten::cos", "200", "7", 2), *op('x"""\nimport os', "300", "5", 3)]
    path.write_bytes(write_file(events))
    return path


def replayed(script: str) -> str:
    """The op and its inputs."""
    (found,) = (node for node in ast.parse(script).body if isinstance(node, ast.Assign))
    assert isinstance(found.value, ast.Call)
    return ", ".join(ast.unparse(each) for each in found.value.args[:2])


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (("--op", "1"), "'aten::cos', (Strided((7,), (1,), 'float32'),)"),
        (("--op", "3"), "'aten::tanh', (Strided((3,), (1,), 'float32'),)"),
        (("--match", "tan"), "'aten::tanh', (Strided((3,), (1,), 'float32'),)"),
    ],
)
def test_the_script_is_printed(
    choice: tuple[str, str], wanted: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("replay", trace_file, *choice, capsys=capsys)
    assert (code, err) == (0, "")
    assert replayed(out) == wanted
    assert "1 call, " in out.partition("import")[0]


def test_of_several_matches_the_longest_is_written_and_their_number_is_said(
    trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("replay", trace_file, "--match", "aten", capsys=capsys)
    assert (code, err) == (0, "2 ops match: the longest is number 1.\n")
    assert replayed(out).startswith("'aten::cos'")


def test_a_hostile_name_is_refused_on_one_line(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("replay", trace_file, "--op", "2", capsys=capsys)
    assert (code, out) == (3, "")
    assert 'x""" import os can\'t be replayed: that isn\'t the name of a registered op' in err


def test_a_file_is_written_once_and_replaced_when_asked(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "replay.py"
    asked = ("replay", trace_file, "--op", "1", "-o", target)
    code, out, err = run(*asked, capsys=capsys)
    assert (code, out) == (0, "")
    assert err.startswith("written: ")
    code, _, err = run(*asked, capsys=capsys)
    assert code == 3
    assert "already exists" in err
    assert run(*asked, "--force", capsys=capsys)[0] == 0
    target.write_text("print('mine')")
    code, _, err = run(*asked, "--force", capsys=capsys)
    assert code == 3
    assert "is no replay script" in err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 2, "Name the op by --op or by --match."),
        (("--op", "1", "--match", "cos"), 2, "Name the op by --op or by --match."),
        (("--op", "9"), 3, "there is no op with the number 9"),
        (("--match", "sin"), 3, 'no op matches "sin"'),
        (("--match", "("), 3, "expected a regular expression"),
    ],
)
def test_what_names_no_op_is_refused(
    options: tuple[str, ...], code: int, words: str, trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run("replay", trace_file, *options, capsys=capsys)
    assert (found, out) == (code, "")
    assert words in err
