"""Which wrong kernels the check of every operator refuses, and which right ones it accepts: docs/kernel-checks.md.

python -m tests.bench.kills             write the page
python -m tests.bench.kills NAME...     print what is found of these operators; exit 1 where the check fails
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.mutants.shared import KINDS
from tests.bench.mutants.trials import SEEDS, Result, Trial, result_of

from inferometer.bench.comparison import ROW
from inferometer.operators import operators

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kernel-checks.md"
_TOP = f"""# What the check of a kernel catches

A benchmark that accepts a wrong kernel is worse than none, and one that refuses a right kernel is no better. So the
check of every operator is tested itself. Wrong kernels, each with one fault, must be refused on at least one of the
operator's tiny shapes, with usual inputs or with the [hard ones](guide/is-my-kernel-right.md#hard-inputs) that it
declares. Right kernels, which sum in another order, round as matrix units do, or multiply by a reciprocal, must be
accepted on all of them, and in bf16, fp16 and fp32 where they round to the type of their inputs.
`tests/conformance/test_mutants.py` sees to it; the kernels are in `tests/bench/mutants`, one file an operator.

Figures are errors in tolerances: above 1× a kernel is refused. An error is the norm of the whole output's, or that of
a row's in units of {ROW} tolerances, whichever is nearer to its limit; of FP8 values that round an exactly defined
number, how many are its neighbours. It is the largest of all tiny shapes and {len(SEEDS)} seeds; of wrong kernels the
hard inputs are tried where the usual ones find nothing, and are named then. No figure: refused for its kind, for NaN,
or for a value that must be exact. *Spoilt outputs* are the same for all operators: one output of a right answer is
zeroed, stale, shifted, swapped, cut off, rounded, of another dtype or shape. *Inputs read wrong* are, too: one input is
taken for zeros, for that of another call, shifted, cut off, rounded, or held in a type of a smaller range. The least of
their errors is shown.

<!-- Made by python -m tests.bench.kills: do not edit. -->
"""
_HEADS = (
    "Operator",
    "Wrong kernels refused",
    "Of these by hard inputs alone",
    "Right ones accepted",
    "Largest error of those",
    "Smallest of the others",
)


def main(names: Sequence[str]) -> int:
    """The exit code."""
    if not names:
        PAGE.write_text(render_page(), encoding="utf-8")
        return 0
    results = [result_of(name) for name in names]
    print("\n".join(line for result in results for line in _details(result)))
    return int(any(result.survivors or result.rejected for result in results))


def _details(result: Result) -> Iterator[str]:
    yield f"{result.operator.name}: {len(result.wrong)} wrong, {len(result.right)} right"
    for told, trials in (("wrong", result.wrong), ("right", result.right)):
        for trial in trials:
            shapes = f"{len(trial.refused)} of {len(trial.shapes)} shapes"
            yield f"  {told} {trial.name}: refused on {shapes}, {trial.margin}, {list(trial.reasons)[:1]}"
    for name in (*result.survivors, *result.rejected):
        yield f"  FAILED {name}"


def render_page() -> str:
    """The whole page."""
    results = [result_of(name) for name in operators()]
    return "\n".join([_TOP, *_overview(results), *(line for result in results for line in _section(result))])


def _overview(results: Sequence[Result]) -> Iterator[str]:
    yield f"| {' | '.join(_HEADS)} |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for result in results:
        refused, accepted = _counts(result)
        alone = str(len(result.only_hard))
        cells = (f"`{result.operator.name}`", refused, alone, accepted, _largest(result.right), _smallest(result.wrong))
        yield f"| {' | '.join(cells)} |"
    wrong, right = (sum(len(getattr(result, side)) for result in results) for side in ("wrong", "right"))
    survivors = sum(len(result.survivors) for result in results)
    rejected = sum(bool(trial.refused) for result in results for trial in result.right)
    by_hard = sum(len(result.only_hard) for result in results)
    yield f"| all | {wrong - survivors:,} / {wrong:,} | {by_hard:,} | {right - rejected} / {right} | | |"


def _counts(result: Result) -> tuple[str, str]:
    accepted = sum(not trial.refused for trial in result.right)
    refused = sum(bool(trial.refused) for trial in result.wrong)
    return f"{refused} / {len(result.wrong)}", f"{accepted} / {len(result.right)}"


def _section(result: Result) -> Iterator[str]:
    yield f"\n## {result.operator.name}\n"
    refused, accepted = _counts(result)
    yield (
        f"Wrong kernels refused: {refused}; right ones accepted: {accepted}; "
        f"{len(result.own)} of the wrong ones are this operator's own, "
        f"{len(result.only_hard)} are right with usual inputs.\n"
    )
    yield "| Fault | Refused | Kernels, with the largest error of each |"
    yield "| --- | ---: | --- |"
    for kind in KINDS:
        yield _row(result, kind)
    right = "; ".join(f"{trial.name} {_figure(trial.margin) or 'exact'}" for trial in result.right)
    yield f"| *none: right* | 0 / {len(result.right)} | {right} |"
    yield "\n| Hard inputs | Wanted |\n| --- | --- |"
    for case in result.operator.hard.cases:
        yield f"| {case.name} | {case.wanted} |"
    for kind, reason in result.operator.hard.left_out.items():
        yield f"| *{kind}: left out* | {reason} |"


def _row(result: Result, kind: str) -> str:
    trials = [trial for trial in result.wrong if trial.kind == kind]
    refused = sum(bool(trial.refused) for trial in trials)
    own = [_named(trial) for trial in trials if trial.group == "own"]
    for group, words in (("spoilt", "spoilt output"), ("input", "input")):
        rest = [trial for trial in trials if trial.group == group]
        if rest:
            least = f" from {_smallest(rest)}" if _smallest(rest) else ""
            wrong = " read wrong" if group == "input" else ""
            own.append(f"*{len(rest)} {words}{'s' * (len(rest) > 1)}{wrong}*{least}")
    text = "; ".join(own) or f"not applicable: {result.inapplicable[kind]}"
    return f"| {kind} | {f'{refused} / {len(trials)}' if trials else ''} | {text} |"


def _named(trial: Trial) -> str:
    name = trial.name.partition(": ")[2]
    figure = _figure(trial.margin) if trial.margin and trial.margin > 1 else ""
    if trial.hard:
        figure = f"({next(iter(trial.hard))})"
    return f"{name} {figure}".rstrip() + ("" if trial.refused else " (**not refused**)")


def _largest(trials: Sequence[Trial]) -> str:
    measured = [trial.margin for trial in trials if trial.margin is not None]
    return _figure(max(measured)) if measured else "exact"


def _smallest(trials: Sequence[Trial]) -> str:
    """Of those that were refused for their error."""
    measured = [trial.margin for trial in trials if trial.margin is not None and trial.margin > 1]
    return _figure(min(measured)) if measured else ""


def _figure(margin: float | None) -> str:
    """One or two digits: the same on any CPU, or nearly so."""
    if margin is None:
        return ""
    if margin < 0.01 or margin > 100:
        return "<0.01×" if margin < 1 else ">100×"
    return f"{float(f'{margin:.2g}' if 1 < margin < 10 else f'{margin:.1g}'):g}×"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
