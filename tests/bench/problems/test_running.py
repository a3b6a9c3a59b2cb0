"""Definitions run with their solutions, from files to traces that flashinfer-bench reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.bench.problems.datasets import (
    GEMM,
    INDEXER,
    NORM,
    SAMPLING,
    solution,
    write,
    write_dataset,
    write_solution,
)

from inferometer.bench.correct import Plan
from inferometer.bench.problems.running import SuiteOutcome, run_suite
from inferometer.bench.problems.suite import Preparation, find_problems
from inferometer.bench.problems.traces import traces_of, write_traces
from inferometer.bench.race import Pace
from inferometer.bench.session import ProcessLimits
from inferometer.errors import InputError

pytest.importorskip("torch", reason="torch isn't installed")
pytestmark = pytest.mark.usefixtures("warm")

LIMITS = ProcessLimits(seconds=120)
RIGHT = "def run(A, B):\n    return (A.float() @ B.float().T).half()\n"
SOLUTIONS: Mapping[str, tuple[dict[str, Any], str | Mapping[str, str], dict[str, Any], str]] = {
    "right": (GEMM, RIGHT, {}, "right"),
    "named": (GEMM, RIGHT.replace("return", "return {'C': ").rstrip() + "}\n", {}, "right"),
    "filling": (
        GEMM, "def run(A, B, C):\n    C.copy_(A.float() @ B.float().T)\n", {"destination_passing_style": True}, "right"
    ),
    "packed": (
        GEMM,
        {"src/main.py": "from .inner import product\n\ndef go(A, B):\n    return product(A, B)\n",
         "src/inner.py": "import helper\n\ndef product(A, B):\n    return helper.half(A.float() @ B.float().T)\n",
         "helper.py": "def half(x):\n    return x.half()\n"},
        {"entry_point": "src/main.py::go"}, "right",
    ),
    "unwritten": (GEMM, "def run(A, B, C):\n    pass\n", {"destination_passing_style": True}, "C: NaN in row"),
    "scaled": (GEMM, RIGHT.replace("@", "* 1.1 @"), {}, "C: the error is 0.1 of the answer"),
    "single": (GEMM, RIGHT.replace(".half()", ""), {}, "C: expected dtype float16, found float32"),
    "turned": (GEMM, RIGHT.replace("half()", "half().T"), {}, "C: expected shape"),
    "raising": (GEMM, "def run(A, B):\n    raise ValueError('no')\n", {}, "ValueError: no (line 2 of"),
    "reaching": (GEMM, "import inferometer\n" + RIGHT, {}, "a candidate can't import inferometer"),
    "nameless": (GEMM, "def ran(A, B): pass\n", {}, "expected a function run in main.py, found none"),
    "drawing": (SAMPLING, SAMPLING["reference"], {}, "right"),
    "greedy": (
        SAMPLING, "def run(probs, top_k, top_p):\n    return probs.argmax(-1)\n", {},
        "a value is drawn too often or too rarely",
    ),
    "other_order": (
        INDEXER, INDEXER["reference"].replace("return {'topk_indices': found}", "return found.flip(1)"), {}, "right"
    ),
}  # fmt: skip


def suite(root: Path, folder: Path, names: tuple[str, ...], *, shapes: str | None = None, pace: Pace | None = None,
          candidate: Path | None = None, left_out: list[str] | None = None) -> SuiteOutcome:  # fmt: skip
    lines = [] if left_out is None else left_out
    preparation = Preparation(folder, Plan(1, "cpu", LIMITS), shapes, candidate, lines.append)
    return run_suite(find_problems(root, names), preparation, pace=pace)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteOutcome, list[str]]:
    """Every solution on the workloads of its definition; and what was left out."""
    root = write_dataset(tmp_path_factory.mktemp("dataset"), (GEMM, SAMPLING, INDEXER))
    for name, (of, text, spec, _) in SOLUTIONS.items():
        write_solution(root, of, solution(of, text, name, **spec))
    write_solution(root, GEMM, solution(GEMM, {"k.cu": "", "main.py": ""}, "compiled", language="cuda"))
    left_out: list[str] = []
    return suite(root, tmp_path_factory.mktemp("files") / "a", (), left_out=left_out), left_out


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_solution_is_judged_as_any_candidate(name: str, tried: tuple[SuiteOutcome, list[str]]) -> None:
    outcome, _ = tried
    found = [result for result in outcome.evaluation.run.results if result.candidate == name]
    assert len(found) == {GEMM["name"]: 2, SAMPLING["name"]: 2, INDEXER["name"]: 1}[SOLUTIONS[name][0]["name"]]
    expected = SOLUTIONS[name][3]
    if expected == "right":
        assert [result.failure for result in found] == [None] * len(found)
    else:
        assert any(expected in (result.failure or "") for result in found), [result.failure for result in found]


def test_sources_that_are_to_be_compiled_are_left_out_by_name(tried: tuple[SuiteOutcome, list[str]]) -> None:
    _, left_out = tried
    assert [line.partition("spec.")[2] for line in left_out] == [
        "language: cuda isn't run here: expected python or triton"
    ]


def test_failures_are_traces_without_times_and_right_ones_need_them(tried: tuple[SuiteOutcome, list[str]]) -> None:
    outcome, _ = tried
    found = traces_of(outcome.outcomes)
    statuses = {}
    for path, data in found.files.items():
        if path.startswith("traces/"):
            for line in data.splitlines():
                trace = json.loads(line)
                statuses[trace["solution"]] = trace["evaluation"]["status"]
                assert trace["workload"]["uuid"] in {"00000000", "00000001"}
    assert statuses == {
        "unwritten": "INCORRECT_NUMERICAL", "scaled": "INCORRECT_NUMERICAL", "single": "INCORRECT_DTYPE",
        "turned": "INCORRECT_SHAPE", "raising": "RUNTIME_ERROR", "reaching": "COMPILE_ERROR",
        "nameless": "COMPILE_ERROR", "greedy": "INCORRECT_NUMERICAL",
    }  # fmt: skip
    assert sum("it is right, but wasn't timed" in line for line in found.left_out) == 4 * 2 + 1 + 1


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SuiteOutcome, Path]:
    """Right kernels of two definitions, timed; and the folder of their traces."""
    root = write_dataset(tmp_path_factory.mktemp("dataset"), (GEMM, SAMPLING))
    write_solution(root, GEMM, solution(GEMM, RIGHT, "right"))
    write_solution(root, SAMPLING, solution(SAMPLING, SAMPLING["reference"], "drawing"))
    outcome = suite(root, tmp_path_factory.mktemp("files") / "a", (), shapes="0", pace=Pace("host", 0.02))
    out = tmp_path_factory.mktemp("out")
    write_traces(outcome.outcomes, out, force=False)
    write_traces(outcome.outcomes, out, force=False)  # the same again
    return outcome, out


def test_times_are_held_against_the_reference(timed: tuple[SuiteOutcome, Path]) -> None:
    outcome, out = timed
    assert outcome.evaluation.is_right, [each.failure for each in outcome.evaluation.run.results]
    assert {each.base for result in outcome.evaluation.run.results for each in result.versus} == {"reference"}
    (path,) = out.glob("traces/tests/gemm/*.jsonl")
    trace = json.loads(path.read_text())
    (result,) = [
        each for each in outcome.evaluation.run.results if (each.candidate, each.operator) == ("right", GEMM["name"])
    ]
    timing = result.timing("cold")
    assert timing is not None
    assert trace["evaluation"]["status"] == "PASSED"
    assert trace["evaluation"]["performance"]["latency_ms"] == timing.median_ns / 1e6
    assert trace["evaluation"]["performance"]["speedup_factor"] == result.versus[0].speedup


def test_flashinfer_bench_reads_what_is_written(timed: tuple[SuiteOutcome, Path]) -> None:
    data: Any = pytest.importorskip(
        "flashinfer_bench.data", reason="flashinfer-bench isn't installed", exc_type=ImportError
    )
    found = data.TraceSet.from_path(str(timed[1]))
    assert set(found.definitions) == set(found.traces) == {GEMM["name"], SAMPLING["name"]}
    assert all(trace.is_successful() for traces in found.traces.values() for trace in traces)
    assert {solution.name for solutions in found.solutions.values() for solution in solutions} == {"right", "drawing"}


def test_other_results_are_replaced_by_force_only_and_other_files_never(timed: tuple[SuiteOutcome, Path]) -> None:
    outcome, out = timed
    (path,) = out.glob("traces/tests/gemm/*.jsonl")
    path.write_text('{"definition": "other"}')
    with pytest.raises(InputError, match="is there already"):
        write_traces(outcome.outcomes, out, force=False)
    write_traces(outcome.outcomes, out, force=True)
    written = path.read_text()
    assert written != '{"definition": "other"}'
    path.write_text("my notes")
    with pytest.raises(InputError, match="is no file of flashinfer-bench"):
        write_traces(outcome.outcomes, out, force=True)
    assert path.read_text() == "my notes"
    path.write_text(written)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("def run(hidden_states, weight):\n    raise KeyError('x')\n", "its reference failed: KeyError: 'x' (line 2"),
        ("def run(hidden_states, weight):\n    return hidden_states.float()\n", "expected bfloat16 [7, 48] as the"),
        ("def run(hidden_states, weight):\n    return hidden_states, weight\n", "expected outputs output, found 2"),
        ("import inferometer\n\ndef run(hidden_states, weight):\n    pass\n", "can't import inferometer"),
    ],
)
def test_a_reference_that_fails_is_said_to(reference: str, words: str, tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "dataset", ({**NORM, "reference": reference},))
    with pytest.raises(InputError) as error:
        suite(root, tmp_path / "files", ())
    assert words in str(error.value)
    assert NORM["name"] in str(error.value)


def test_a_problem_that_cannot_run_doesnt_end_the_others(tmp_path: Path) -> None:
    broken = {**NORM, "reference": "def run(hidden_states, weight):\n    return 1 / 0\n"}
    root = write_dataset(tmp_path / "dataset", (GEMM, broken))
    candidate = write(tmp_path / f"{GEMM['name']}.py", RIGHT)
    outcome = suite(root, tmp_path / "files", (), shapes="0", candidate=tmp_path)
    assert {result.candidate for result in outcome.evaluation.run.results} == {candidate.name}
    assert outcome.evaluation.is_right
    assert list(outcome.evaluation.refused) == [NORM["name"]]


def test_sizes_that_no_memory_holds_are_refused_before_anything_runs(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "dataset", (GEMM,))
    (file,) = (root / "workloads").glob("*/*.jsonl")
    file.write_text(file.read_text().replace('"M": 65', '"M": 99000000000'))
    with pytest.raises(InputError, match=r"jsonl:2: axes: its tensors take [\d,]+ bytes, expected at most"):
        suite(root, tmp_path / "files", ())
