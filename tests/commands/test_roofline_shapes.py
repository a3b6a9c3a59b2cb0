"""`inferometer roofline --to-bench`: the shapes of a trace, as `bench` runs them."""

import json
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import Event, call, event, kernel, write_file

from inferometer.bench.exchange import read_workloads

BF16 = "c10::BFloat16"


def op(name: str, begin: int, dims: list[list[int]], kinds: list[str], values: list[str]) -> list[Event]:
    """A call of an op, with the launch of 5 us that it makes."""
    recorded = {"Input_Dims": dims, "Input_type": kinds, "Concrete_Inputs": values}
    return [
        event("cpu_op", name, str(begin), "8", **recorded),
        call(ts=str(begin + 1), dur="2", correlation=begin),
        kernel("a kernel", str(begin + 10), "5", correlation=begin),
    ]


def norm(begin: int, kind: str = BF16) -> list[Event]:
    return op("_C::rms_norm", begin, [[3, 64], [3, 64], [64], []], [*[kind] * 3, "Scalar"], [*[""] * 3, "1e-05"])


EVENTS = [
    *op("_C::silu_and_mul", 100, [[2, 8], [2, 16]], [BF16, BF16], ["", ""]),
    *norm(200),
    *norm(300),
    *norm(400, "c10::Half"),
    *op("aten::mm", 500, [[2, 3], [3, 4]], [BF16, BF16], ["", ""]),
]


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file(EVENTS))
    return path


def test_each_shape_stands_once_and_what_has_no_operator_is_named(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "shapes.jsonl"
    code, out, err = run("roofline", trace_file, "--json", "--to-bench", target, capsys=capsys)
    assert code == 0
    written, others = err.splitlines()
    assert written == f"written: {target}: 2 shapes of rms_norm, silu_and_mul"
    assert others == "no operator: _C::rms_norm (5.000 μs), aten::mm (5.000 μs)"
    rows = {(row["op"], row["input_dtypes"]): row for row in json.loads(out)["rows"]}
    assert rows["aten::mm", json.dumps([BF16, BF16])]["operator"] is None
    assert sorted(row["operator"] for row in rows.values() if row["operator"]) == ["rms_norm", "silu_and_mul"]
    first, second = read_workloads(target)
    assert (first.operator.name, second.operator.name) == ("rms_norm", "silu_and_mul")
    assert first.shapes == (
        ("_C::rms_norm [3,64] [3,64] [64] bf16: 2 calls, 10.000 μs",
         {"token_count": 3, "hidden_size": 64, "eps": 1e-05}),
    )  # fmt: skip
    assert second.shapes == (("_C::silu_and_mul [2,8] [2,16] bf16: 1 call, 5.000 μs", {"shape": [2, 16]}),)


def test_a_trace_without_any_operator_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.json").write_bytes(write_file(norm(400, "c10::Half")))
    target = tmp_path / "shapes.jsonl"
    code, out, err = run("roofline", tmp_path / "trace.json", "--to-bench", target, capsys=capsys)
    assert (code, out) == (3, "")
    assert "no op is an operator of the catalogue" in err
    assert not target.exists()


def test_another_file_is_not_replaced(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "shapes.jsonl"
    target.write_text("mine")
    assert run("roofline", trace_file, "--to-bench", target, capsys=capsys)[0] == 3
    code, _, err = run("roofline", trace_file, "--to-bench", target, "--force", capsys=capsys)
    assert code == 3
    assert "is no file of workloads" in err
    code, _, err = run("roofline", trace_file, "--to-bench", tmp_path / "shapes.csv", capsys=capsys)
    assert code == 2
    assert "a name that ends in .jsonl" in err


@pytest.mark.usefixtures("warm")
def test_bench_runs_the_shapes(trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "shapes.jsonl"
    assert run("roofline", trace_file, "--to-bench", target, capsys=capsys)[0] == 0
    code, out, err = run("bench", "all", "--shapes", target, "--cases", "1", "--json", "--check", capsys=capsys)
    assert code == 0, err
    results = json.loads(out)["results"]
    assert [(result["operator"], result["failure"]) for result in results] == [
        ("rms_norm", None),
        ("silu_and_mul", None),
    ]


def test_bench_runs_those_of_the_named_operator_alone(
    trace_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="needs torch")
    target = tmp_path / "shapes.jsonl"
    assert run("roofline", trace_file, "--to-bench", target, capsys=capsys)[0] == 0
    code, _, err = run("bench", "l2_norm", "--shapes", target, capsys=capsys)
    assert code == 3
    assert "no workload of l2_norm" in err
    assert "It has: rms_norm, silu_and_mul." in err
