"""What the evaluator found, for people and programs: a row for every contender on every shape, and what to doubt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.analyses.result import Field, Result, Section, frame_of
from inferometer.bench.comparison import ROW
from inferometer.bench.results import Run, ShapeResult
from inferometer.trace.losses import Losses

FUNCTIONAL = "functional only: a CPU's times show that kernels run, not how fast they are"
_CORRECT = (
    Field("operator", "Operator", "text"),
    Field("contender", "Kernel", "text"),
    Field("verdict", "Verdict", "text"),
    Field("cases", "Cases", "count", spare=3),
    Field("error", "Error", "share", spare=1),
    Field("row_error", "Worst row", "share", spare=1),
    Field("strided", "Rows apart", "text", spare=2),
    Field("failure", "Wrong", "text", spare=1),
    Field("shape", "Shape", "name"),
)
_FAST = (
    Field("operator", "Operator", "text"),
    Field("contender", "Kernel", "text"),
    Field("verdict", "Verdict", "text"),
    Field("cold_ns", "Cold", "ns"),
    Field("warm_ns", "Warm", "ns", spare=1),
    Field("spread", "± cold", "share", spare=3),
    Field("samples", "Calls", "count", spare=4),
    Field("speedup", "Speedup", "ratio"),
    Field("interval", "95 %", "text", spare=2),
    Field("sol_fraction", "S", "share", spare=1),
    Field("own", "Own kernels", "share", spare=2),
    Field("failure", "Wrong", "text", spare=1),
    Field("shape", "Shape", "name"),
)


@dataclass(frozen=True)
class Evaluation(Result):
    """Results for every kernel on every shape; `refused`: why other backends didn't take part."""

    run: Run
    refused: Mapping[str, str]
    losses: Losses

    @property
    def is_right(self) -> bool:
        """Whether every contender has every shape right."""
        return all(result.is_right for result in self.run.results)

    def facts(self) -> Sequence[tuple[str, str]]:
        right = sum(result.is_right for result in self.run.results)
        run, settings = self.run, self.run.settings
        what = "shapes" if len(run.contenders) == 1 else "kernels and shapes"
        timed = [("Times", FUNCTIONAL)] if run.functional_only and run.stage == "fast" else []
        base = [("Base", str(settings["base"])), ("Timer", str(settings["timer"]))] if run.stage == "fast" else []
        return [
            ("Kernels", ", ".join(each.name for each in run.contenders)),
            ("Device", f"{run.device} ({run.on})"),
            ("Verdict", f"{'right' if self.is_right else 'wrong'}: {right} of {len(run.results)} {what}"),
            *base,
            *timed,
        ]

    def sections(self) -> Sequence[Section]:
        if self.run.stage == "fast":
            notes = ["Speedup: time of the base over that of the kernel, cold, from calls side by side."]
            if any(result.bound for result in self.run.results):
                notes.append("S: bound over cold time; none where the launch is what binds.")
            return [Section("Shapes", _FAST, frame_of([_fast_row(each) for each in self.run.results], _FAST), notes)]
        words = f"Error: of what is allowed. A row may be off {ROW} times as much as the whole."
        frame = frame_of([_row(each) for each in self.run.results], _CORRECT)
        return [Section("Shapes", _CORRECT, frame, (words,) if self.is_right else ())]

    def remarks(self) -> Sequence[str]:
        lines = [f"{name} didn't take part: {why}." for name, why in self.refused.items()]
        apart = [each for each in self.run.results if (each.strided or "").startswith("wrong")]
        if apart:
            words = f"{apart[0].contender} is wrong where rows lie apart, and doesn't refuse them"
            lines.append(f"{words} ({len(apart)} shapes): engines pass slices. --strided makes that a fault.")
        return (*lines, *_grouped(self.run.results), *self.run.conditions.remarks)

    def as_json(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self.run), "right": self.is_right, "refused": dict(self.refused)}


def _grouped(results: Sequence[ShapeResult]) -> Sequence[str]:
    """Concerns in words, each once."""
    by_concern: dict[str, list[ShapeResult]] = {}
    for result in results:
        for concern in result.concerns:
            by_concern.setdefault(concern, []).append(result)
    return [
        f"{concern}: {those[0].contender} for {those[0].operator}, {those[0].shape}"
        + (f", and {len(those) - 1} more." if len(those) > 1 else ".")
        for concern, those in by_concern.items()
    ]


def _row(result: ShapeResult) -> dict[str, Any]:
    return {
        "operator": result.operator,
        "contender": result.contender,
        "verdict": result.verdict,
        "cases": result.cases,
        "error": result.error,
        "row_error": result.row_error,
        "strided": None if result.strided is None else result.strided.partition(":")[0],
        "failure": result.failure,
        "shape": result.shape,
    }


def _fast_row(result: ShapeResult) -> dict[str, Any]:
    cold, warm = result.timing("cold"), result.timing("warm")
    versus = next((each for each in result.versus if each.mode == "cold"), None)
    bound = result.bound if result.bound is not None and result.bound.binding != "launch" else None
    return {
        "operator": result.operator,
        "contender": result.contender,
        "verdict": result.verdict if versus is None or not result.is_right else versus.verdict,
        "cold_ns": None if cold is None else cold.median_ns,
        "warm_ns": None if warm is None else warm.median_ns,
        "spread": None if cold is None else (cold.high_ns - cold.low_ns) / 2 / cold.median_ns,
        "samples": None if cold is None else cold.samples,
        "speedup": None if versus is None else versus.speedup,
        "interval": None if versus is None else f"{versus.low:.3g} to {versus.high:.3g}",
        "sol_fraction": None if bound is None or cold is None else bound.bound_ns / cold.median_ns,
        "own": None if result.attribution is None else result.attribution.own,
        "failure": result.failure,
        "shape": result.shape,
    }
