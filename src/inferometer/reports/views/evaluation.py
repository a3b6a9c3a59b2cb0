"""What the evaluator found: one row per kernel and shape, and what makes it doubtful."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from inferometer.bench.comparison import ROW
from inferometer.bench.evaluation import Evaluation
from inferometer.bench.hard_inputs import MOST_BYTES
from inferometer.bench.results import REFUSED, Interpreted, ShapeResult
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_counted

_FUNCTIONAL = "functional only: a CPU's times show that kernels run, not how fast they are"
_INTERPRETED: Mapping[Interpreted, str] = {
    "bf16 dot": "tl.dot of bf16 in float32 (its own multiplies the bits)",
    "bf16 math": "other operations of bf16 in float32, rounded to nearest",
    "first configuration": "only the first configuration of @triton.autotune",
}
_CORRECT = (
    Field("operator", "Operator", "text"),
    Field("contender", "Kernel", "text"),
    Field("verdict", "Verdict", "text"),
    Field("cases", "Cases", "count", spare=3),
    Field("error", "Error", "share", spare=1),
    Field("row_error", "Worst row", "share", spare=1),
    Field("hard", "Hard inputs", "text", spare=2),
    Field("strided", "Rows apart", "text", spare=3),
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


def _facts(found: Evaluation) -> Sequence[tuple[str, str]]:
    right = sum(result.is_right for result in found.run.results)
    run, settings = found.run, found.run.settings
    what = "shapes" if len(run.candidates) == 1 else "kernels and shapes"
    timed = [("Times", _FUNCTIONAL)] if run.functional_only and run.stage == "fast" else []
    base = [("Base", str(settings["base"])), ("Timer", str(settings["timer"]))] if run.stage == "fast" else []
    return [
        ("Kernels", ", ".join(each.name for each in run.candidates)),
        ("Device", f"{run.device} ({run.on})"),
        ("Verdict", f"{'right' if found.is_right else 'wrong'}: {right} of {len(run.results)} {what}"),
        *base,
        *timed,
    ]


def _sections(found: Evaluation) -> Sequence[Section]:
    frame = found.to_polars()
    if found.run.stage == "fast":
        notes = ["Speedup: time of the base over that of the kernel, cold, from calls side by side."]
        if any(result.bound for result in found.run.results):
            notes.append("S: bound over cold time. What a launch takes is in no bound.")
        return [Section("Shapes", _FAST, frame.with_columns(_interval(frame)), notes)]
    words = f"Error: of what is allowed. A row may be off {ROW} times as much as the whole."
    return [Section("Shapes", _CORRECT, frame, (words,) if found.is_right else ())]


def _remarks(found: Evaluation) -> Sequence[str]:
    lines = [f"{name} didn't take part: {why}." for name, why in found.refused.items()]
    apart = [each for each in found.run.results if (each.strided or "").startswith("wrong")]
    if apart:
        words = f"{apart[0].candidate} is wrong where rows lie apart, and doesn't refuse them"
        lines.append(f"{words} ({len(apart)} shapes): engines pass slices. --strided makes that a fault.")
    lines += _hard(found.run.results)
    lines += _interpreted(found.run.results)
    return (*lines, *_grouped(found.run.results), *found.run.conditions.remarks)


def _hard(results: Sequence[ShapeResult]) -> Iterator[str]:
    """What else than the first was wrong, what was refused, and what didn't run: by kernel, operator and cases."""
    unknown: dict[tuple[str, str, str], int] = {}
    wrong: dict[tuple[str, str, str], int] = {}
    refused: dict[tuple[str, str, str], int] = {}
    for each in results:
        if each.hard_left_out:
            _count(unknown, each, f"weights of more than {MOST_BYTES >> 30} GiB")
        if len(each.wrong_hard) > 1:
            _count(wrong, each, ", ".join(each.wrong_hard))
        for name, words in each.hard.items():
            if words.startswith(REFUSED):
                _count(refused, each, name)
    for (who, operator, cases), shapes in wrong.items():
        yield f"{who} is wrong on these hard inputs of {operator} ({format_counted(shapes, 'shape')}): {cases}."
    for (who, operator, case), shapes in refused.items():
        of = format_counted(shapes, "shape")
        yield f"{who} refuses a hard case of {operator} with an exception, and may ({of}): {case}."
    for (who, operator, why), shapes in unknown.items():
        yield f"{who} was given no hard inputs of {operator} ({format_counted(shapes, 'shape')}): {why}."


def _interpreted(results: Sequence[ShapeResult]) -> Iterator[str]:
    """What Triton's interpreter was made to do, by kernel: its verdicts are the kernel's then."""
    done: dict[str, dict[Interpreted, None]] = {}
    for each in results:
        done.setdefault(each.candidate, {}).update(dict.fromkeys(each.interpreted))
    for who, kinds in done.items():
        if kinds:
            words = ", and ".join(words for kind, words in _INTERPRETED.items() if kind in kinds)
            yield f"{who} ran in Triton's interpreter, which was made to compute {words}."


def _count(counts: dict[tuple[str, str, str], int], result: ShapeResult, cases: str) -> None:
    key = (result.candidate, result.operator, cases)
    counts[key] = counts.get(key, 0) + 1


def _interval(frame: pl.DataFrame) -> pl.Series:
    ends = frame.select("speedup_low", "speedup_high").iter_rows()
    texts = [None if low is None else f"{low:.3g} to {high:.3g}" for low, high in ends]
    return pl.Series("interval", texts, dtype=pl.String)


def _grouped(results: Sequence[ShapeResult]) -> Sequence[str]:
    """Concerns in words, each once."""
    by_concern: dict[str, list[ShapeResult]] = {}
    for result in results:
        for concern in result.concerns:
            by_concern.setdefault(concern, []).append(result)
    return [
        f"{concern}: {those[0].candidate} for {those[0].operator}, {those[0].shape}"
        + (f", and {len(those) - 1} more." if len(those) > 1 else ".")
        for concern, those in by_concern.items()
    ]


VIEW = View(schema=Schema("bench", 1), facts=_facts, sections=_sections, remarks=_remarks)
