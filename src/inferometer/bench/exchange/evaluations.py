"""A result as flashinfer-bench's Evaluation: status, errors, times, machine.

What differs from that tool's own numbers is reported in `log` and `extra`. Errors here are norms
(`bench/comparison.py`), there the greatest of all numbers; an absolute error isn't measured. The reference's time is
that of the candidate that ours was timed against, not of the definition's slow reference.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from inferometer.bench.exchange.schema import Correctness, Definition, Environment, Evaluation, Performance, Status
from inferometer.bench.results import Run, ShapeResult, Timing, Versus
from inferometer.operators.operator import TOLERANCE, Operator

FUNCTIONAL_ONLY = "CPU, functional only: its times show that the kernels run, not how fast they are"

_KINDS: tuple[tuple[str, Status], ...] = (
    (r"took longer than", "TIMEOUT"),
    (
        r"expected a function \w+ or a class|expected a Python file|SyntaxError|ImportError|ModuleNotFoundError",
        "COMPILE_ERROR",
    ),
    (r"\w+: (expected dtype)", "INCORRECT_DTYPE"),
    (r"\w+: expected (shape|\d+ outputs)", "INCORRECT_SHAPE"),
)
_WRONG = re.compile(  # as bench/comparison.py words it
    r"\w+: (the error is|row [\d,]+ is|number [\d,]+ of|\S+ in row [\d,]+, the|[\d,]+ of [\d,]+ values|"
    r"a value is|[\d.]+% of the values)"
)
_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
_MS = 1e6  # ns
_MEASURE: Mapping[str, str] = {
    "max_relative_error": "norm of the error over norm of the answer, the greatest of all outputs and cases",
    "max_absolute_error": "not measured",
}

_WHERE = re.compile(r"(?:with \w+ inputs: |with rows that lie apart: |a timed call was wrong: |refused: |wrong: )*")
"""Which case it was: the reason follows."""


def evaluate_result(run: Run, result: ShapeResult, operator: Operator, definition: Definition) -> Evaluation | None:
    """None where it is right but wasn't timed: the format wants a time of what passed."""
    if result.is_right:
        status: Status = "PASSED"
        timing = result.timing("cold") or result.timing("warm")
        if timing is None:
            return None
        performance, notes = _performance(run, result, timing)
    else:
        assert result.failure is not None
        reason = result.failure.removeprefix(f"{result.hard_case}: ")
        status, performance, notes = status_of(reason), None, [result.failure]
    shown = status in ("PASSED", "INCORRECT_NUMERICAL")
    hardware = f"{run.device} ({FUNCTIONAL_ONLY})" if run.functional_only else run.device
    return Evaluation(
        status=status,
        environment=Environment(hardware=hardware, libs={**run.versions, "inferometer": run.inferometer}),
        timestamp=run.date,
        log="\n".join([*notes, *result.concerns]),
        correctness=_correctness(result, operator, definition) if shown else None,
        performance=performance,
    )


def status_of(failure: str) -> Status:
    """Which of the format's statuses the reason of a failure is; what is none of the others is RUNTIME_ERROR."""
    reason = _WHERE.sub("", failure)
    for pattern, status in _KINDS:
        if re.match(pattern, reason):
            return status
    return "INCORRECT_NUMERICAL" if _WRONG.match(reason) else "RUNTIME_ERROR"


def _correctness(result: ShapeResult, operator: Operator, definition: Definition) -> Correctness:
    """Errors of results are shares of what is allowed: times the tolerance, where the outputs have one and the same."""
    allowed = _tolerances(operator, definition)
    relative: float | Literal["NaN"] = "NaN"
    absolute: float | Literal["NaN"] = "NaN"
    if result.error is not None and len(allowed) == 1:
        relative = result.error * allowed.pop()
    elif result.is_right and not allowed:  # all outputs are the reference's to the bit
        relative = absolute = 0.0
    extra: dict[str, Any] = {**_MEASURE, "error_of_allowed": result.error, "row_error_of_allowed": result.row_error}
    if not absolute:
        extra |= dict.fromkeys(_MEASURE, "all outputs are the reference's to the bit")
    return Correctness(max_relative_error=relative, max_absolute_error=absolute, extra={**extra, "cases": result.cases})


def _tolerances(operator: Operator, definition: Definition) -> set[float]:
    """Tolerances of the outputs that need not be exact."""
    allowed = set()
    for name, spec in zip(operator.outputs, definition.outputs.values(), strict=True):
        if name not in operator.exact and spec.dtype.startswith(("float", "bfloat")):
            allowed.add(operator.tolerance.get(name, TOLERANCE[_SHORT.get(spec.dtype, "fp8")]))
    return allowed


def _performance(run: Run, result: ShapeResult, timing: Timing) -> tuple[Performance, list[str]]:
    """Times, and what they are in words."""
    own_ms = timing.median_ns / _MS
    interval = f"95 % interval {timing.low_ns / _MS:.6g} to {timing.high_ns / _MS:.6g}"
    notes = [f"latency_ms: median of {timing.samples} calls, caches {timing.mode}, timer {timing.timer}, {interval}"]
    held = [each for each in result.versus if each.mode == timing.mode]
    if held:
        base_ms, base = _base_ms(run, result, held[0]), held[0]
        notes.append(
            f"reference_latency_ms: {base.base}; speedup_factor {base.low:.4g} to {base.high:.4g}, from calls in turns"
        )
        return Performance(latency_ms=own_ms, reference_latency_ms=base_ms, speedup_factor=base.speedup), notes
    if any(result.candidate == versus.base for each in _beside(run, result) for versus in each.versus):
        notes.append("reference_latency_ms: this is what the others were held against")
        return Performance(latency_ms=own_ms, reference_latency_ms=own_ms, speedup_factor=1.0), notes
    notes.append("reference_latency_ms and speedup_factor: not measured")
    return Performance(latency_ms=own_ms, reference_latency_ms=0.0, speedup_factor=0.0), notes


def _base_ms(run: Run, result: ShapeResult, versus: Versus) -> float:
    """The base's own median; 0 where the run doesn't have it."""
    times = [each.timing(versus.mode) for each in _beside(run, result) if each.candidate == versus.base]
    return next((each.median_ns / _MS for each in times if each is not None), 0.0)


def _beside(run: Run, result: ShapeResult) -> list[ShapeResult]:
    """The same shape, all candidates."""
    same = (result.operator, result.shape, result.args)
    return [each for each in run.results if (each.operator, each.shape, each.args) == same]
