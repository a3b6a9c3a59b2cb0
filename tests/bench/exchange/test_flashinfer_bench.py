"""What we write, read by flashinfer-bench itself: its models accept every file, and its inputs fit the definitions."""

from pathlib import Path
from typing import Any

import pytest
from tests.bench.exchange.samples import result, run_of, tiny_run

from inferometer.bench.exchange import read_workloads, write_exchange

torch = pytest.importorskip("torch", reason="torch isn't installed")
data: Any = pytest.importorskip(
    "flashinfer_bench.data", reason="flashinfer-bench isn't installed", exc_type=ImportError
)

CANDIDATE = "def rms_norm(x, weight, *, eps):\n    return x\n"


def test_its_trace_set_has_all_of_ours(tmp_path: Path) -> None:
    paths = write_exchange(tiny_run(), tmp_path, force=False, sources={"mine.py": CANDIDATE})
    found = data.TraceSet.from_path(str(tmp_path))
    assert len(found.definitions) == sum(path.parts[-3] == "definitions" for path in paths)
    assert set(found.workloads) == set(found.definitions) == set(found.traces)
    assert len(found.solutions) == 3  # the sizes of rms_norm
    for traces in found.traces.values():
        assert all(trace.is_successful() for trace in traces)


def test_failures_are_evaluations_too(tmp_path: Path) -> None:
    wrong = [
        result(candidate=f"{place}.py", failure=failure, error=error)
        for place, (failure, error) in enumerate(
            [
                ("out: the error is 0.5 of the answer", 50.0),
                ("took longer than 1 s", None),
                ("out: expected nan where", None),
            ]
        )
    ]
    write_exchange(run_of(*wrong), tmp_path, force=False)
    (traces,) = data.TraceSet.from_path(str(tmp_path)).traces.values()
    assert sorted(trace.evaluation.status.value for trace in traces) == [
        "INCORRECT_NUMERICAL",
        "INCORRECT_NUMERICAL",
        "TIMEOUT",
    ]


def test_a_trace_that_it_writes_again_is_read_by_its_definition(tmp_path: Path) -> None:
    write_exchange(run_of(result()), tmp_path, force=False)
    (path,) = (tmp_path / "traces").glob("*/*/*.jsonl")
    data.save_jsonl_file(data.load_jsonl_file(data.Trace, path), path)
    assert b'"inferometer":{' not in path.read_bytes()
    (asked,) = read_workloads(path)
    assert asked.shapes[0][1] == {"token_count": 5, "hidden_size": 64, "eps": 1e-6}


def test_references_run_on_the_inputs_that_it_makes(tmp_path: Path) -> None:
    benchmark = pytest.importorskip("flashinfer_bench.bench.utils", exc_type=ImportError)
    write_exchange(tiny_run(), tmp_path, force=False)
    found = data.TraceSet.from_path(str(tmp_path))
    for name, definition in found.definitions.items():
        names: dict[str, Any] = {}
        exec(definition.reference, names)  # as it does
        for trace in found.workloads[name]:
            files = benchmark.load_safetensors(definition, trace.workload, tmp_path)
            inputs = benchmark.gen_inputs(definition, trace.workload, "cpu", files)
            answer = names["run"](*inputs)
            outputs = answer if isinstance(answer, tuple) else (answer,)
            assert [each.dtype for each in outputs] == definition.torch_output_dtypes
