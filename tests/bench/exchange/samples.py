"""Runs of the evaluator as its file of results has them, without running anything."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from inferometer.bench.results import CandidateRecord, Run, ShapeResult, Timing, Versus
from inferometer.operators import operators
from inferometer.operators.operator import Operator

NORM = {"token_count": 5, "hidden_size": 64}
LACKING = "float8_e4m3fnuz"


def timing(mode: Literal["cold", "warm"], median_ns: float) -> Timing:
    """50 steady samples."""
    return Timing(
        mode=mode, timer="cupti", median_ns=median_ns, p10_ns=median_ns, p90_ns=median_ns,
        low_ns=0.9 * median_ns, high_ns=1.1 * median_ns, samples=50, steady=True,
    )  # fmt: skip


def result(operator: str = "rms_norm", args: Mapping[str, Any] | None = None, **fields: Any) -> ShapeResult:
    """A shape that is right and timed, where `fields` say nothing else."""
    usual: dict[str, Any] = {"candidate": "torch", "cases": 3, "shape": "0: a norm", "error": 0.25, "row_error": 0.5}
    usual["timings"] = (timing("warm", 10_000), timing("cold", 20_000))
    return ShapeResult(operator=operator, args=dict(NORM if args is None else args), **{**usual, **fields})


def against(base: str, speedup: float = 2.0) -> tuple[Versus, ...]:
    """Held against `base`, cold."""
    return (Versus(base=base, mode="cold", speedup=speedup, low=0.9 * speedup, high=1.1 * speedup, verdict="faster"),)


def run_of(*results: ShapeResult, **fields: Any) -> Run:
    """A run on a GPU."""
    names = dict.fromkeys(each.candidate for each in results)
    candidates = tuple(CandidateRecord(name=name, kind="file" if name.endswith(".py") else "backend") for name in names)
    usual: dict[str, Any] = {"device": "NVIDIA H200", "on": "cuda:0", "functional_only": False, "stage": "fast"}
    usual |= {"versions": {"torch": "2.13.0"}, "settings": {}, "date": "2026-11-22T10:00:00+00:00"}
    return Run(inferometer="1.0", candidates=candidates, results=results, **{**usual, **fields})


def every_shape(operator: Operator) -> Iterator[tuple[str, dict[str, Any]]]:
    """Labels and arguments, of tiny shapes and of published ones."""
    yield from ((f"tiny {place}", dict(args)) for place, args in enumerate(operator.tiny))
    yield from ((f"{shape.index}: {shape.label}", dict(shape.args)) for shape in operator.catalogue().shapes)


def tiny_run() -> Run:
    """Every tiny shape of every operator, by two candidates."""
    found = []
    for name, operator in operators().items():
        for place, args in enumerate(operator.tiny):
            found.append(result(name, args, shape=f"tiny {place}"))
            found.append(result(name, args, shape=f"tiny {place}", candidate="mine.py", versus=against("torch")))
    return run_of(*found)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A file of JSON lines."""
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
