"""How exactly steps are found in traces without marks, on synthetic Kineto traces of which every step is known.

    python -m benchmarks.steps_truth                             all cases, in about a minute
    python -m benchmarks.steps_truth --only graph --layers 2 --misses

A step is exact if the launches found in it are exactly those that its engine queued in it, of all streams but a second
thread's, which knows no steps. Extra are steps that aren't there. A phase is held against that of the step that most of
the launches were found in; missing is one that isn't known. Some traces are changed before: `squeezed` takes the pauses
out, as if the host were never late; `no copies` takes these out; `no sampler` hides the names of sampler and embedding,
`no attention` those of attention, `no names` all; `cut` begins and ends within steps. Cases with marks are read from
these: a step is then exact if its times are the mark's. JSON goes to stdout, a Markdown table to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import numpy as np
import polars as pl
from tools.kineto_maker import Options, Truth, write_trace

import inferometer
from inferometer.analyses.steps.found.finding import FoundSteps, find_steps
from inferometer.analyses.steps.sources import NEEDED, read_steps
from inferometer.trace.builder import TraceBuilder
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace

Change = Literal["squeezed", "no copies", "no sampler", "no attention", "no names", "cut"]
_VERDICTS: Final = ("right", "wrong", "missing")
_MOST_MISSES: Final = 5
_PAUSE_NS: Final = 1_000  # what squeezing leaves
_HIDDEN: Final = {"no sampler": "TopKTopP|indexSelect|vectorized_gather", "no attention": "BatchDecode|FlashAttnFwd"}
_CUT: Final = 0.031  # of the launches at either end
_NONE: Final = -1

_EAGER: Final = Options(steps=24, prefill_every=6, marks="none", lean=True, stack=False, shapes=False)
_GRAPH: Final = replace(_EAGER, steps=60, mode="graph")
_BATCHES: Final = (1, 8, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class Case:
    """A trace whose steps are to be found, or read where it marks them."""

    name: str
    trace: Options
    changes: tuple[Change, ...] = ()


CASES: Final = (
    Case("eager", _EAGER),
    Case("eager, 5 batch sizes", replace(_EAGER, batches=_BATCHES)),
    Case("eager, two threads", replace(_EAGER, threads=2)),
    Case("eager, compiled", replace(_EAGER, compiled=True)),
    Case("eager, rank 0 of 2", replace(_EAGER, world=2)),
    Case("eager, rank 1 of 2, two threads", replace(_EAGER, world=2, rank=1, threads=2)),
    Case("eager, host late", replace(_EAGER, fault="host-late")),
    Case("eager, warming up", replace(_EAGER, fault="warm-up")),
    Case("eager, work on two streams in turn", replace(_EAGER, fault="serial-stream")),
    Case("eager, decode only", replace(_EAGER, prefill_every=0)),
    Case("eager, every other a prefill", replace(_EAGER, prefill_every=2)),
    Case("eager, prefill only", replace(_EAGER, prefill_every=1, steps=8)),
    Case("graph", _GRAPH),
    Case("graph, 5 batch sizes", replace(_GRAPH, batches=_BATCHES)),
    Case("graph, two threads", replace(_GRAPH, threads=2)),
    Case("graph, compiled", replace(_GRAPH, compiled=True)),
    Case("graph, rank 0 of 2, 5 batch sizes", replace(_GRAPH, world=2, batches=_BATCHES)),
    Case("graph, decode only", replace(_GRAPH, prefill_every=0)),
    Case("graph, every third a prefill", replace(_GRAPH, prefill_every=3, seed=23)),
    Case("graph, 5 % of records lost", replace(_GRAPH, drop_kernels=0.05)),
    Case("graph, 5 % of kernels added", replace(_GRAPH, add_kernels=0.05)),
    Case("eager, cut", _EAGER, ("cut",)),
    Case("eager, no copies", _EAGER, ("no copies",)),
    Case("eager, no sampler", _EAGER, ("no sampler",)),
    Case("eager, no sampler, squeezed", _EAGER, ("no sampler", "squeezed")),
    Case("eager, no sampler, no copies", _EAGER, ("no sampler", "no copies")),
    Case("eager, no attention, no sampler", _EAGER, ("no attention", "no sampler")),
    Case("eager, no names", _EAGER, ("no names",)),
    Case("eager, decode only, no names", replace(_EAGER, prefill_every=0), ("no names",)),
    Case("eager, squeezed", _EAGER, ("squeezed",)),
    Case("eager, no copies, squeezed", _EAGER, ("no copies", "squeezed")),
    Case("eager, squeezed, no names", _EAGER, ("squeezed", "no names")),
    Case("eager, no copies, squeezed, cut", _EAGER, ("no copies", "squeezed", "cut")),
    Case("graph, 5 batch sizes, cut", replace(_GRAPH, batches=_BATCHES), ("cut",)),
    Case("graph, 5 batch sizes, no copies", replace(_GRAPH, batches=_BATCHES), ("no copies",)),
    Case("graph, 5 batch sizes, no sampler, squeezed", replace(_GRAPH, batches=_BATCHES), ("no sampler", "squeezed")),
    Case("graph, 5 batch sizes, no names", replace(_GRAPH, batches=_BATCHES), ("no names",)),
    Case("graph, 5 batch sizes, squeezed", replace(_GRAPH, batches=_BATCHES), ("squeezed",)),
    Case("graph, 5 batch sizes, squeezed, cut", replace(_GRAPH, batches=_BATCHES), ("squeezed", "cut")),
    Case("graph, 5 batch sizes, no copies, squeezed", replace(_GRAPH, batches=_BATCHES), ("no copies", "squeezed")),
    Case("graph, rank 0 of 2, squeezed", replace(_GRAPH, world=2), ("squeezed",)),
    Case("eager, SGLang's marks", replace(_EAGER, marks="sglang")),
    Case("graph, vLLM's marks", replace(_GRAPH, marks="vllm")),
    Case("graph, ProfilerStep", replace(_GRAPH, marks="profiler")),
)


@dataclass(slots=True)
class Score:
    """One case: its steps, those found exactly, steps too many, verdicts on phases, the confidence, some misses."""

    case: str
    steps: int
    exact: int = 0
    extra: int = 0
    confidence: float | None = None
    anchor: str | None = None
    verdicts: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    def miss(self, words: str) -> None:
        """Remember a few."""
        if len(self.misses) < _MOST_MISSES:
            self.misses.append(words)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "verdicts": {verdict: self.verdicts[verdict] for verdict in _VERDICTS}}


def run_case(case: Case) -> Score:
    """Makes the case's trace, finds its steps, and judges each."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        with path.open("wb") as file:
            truth = write_trace(case.trace, file, launches=True)
        with inferometer.open(path, NEEDED) as trace:
            if case.trace.marks != "none":
                return judge_marks(case.name, truth, read_steps(trace).steps)
            launches = with_steps(truth, trace.launches.collect())
            for change in case.changes:
                launches = changed(launches, change)
            return judge(case.name, truth, launches, find_steps(_trace_of(launches, trace.facts)))


def with_steps(truth: Truth, launches: pl.DataFrame) -> pl.DataFrame:
    """`launches` with the `step` of each, null for those of a second thread."""
    known = truth.by_launch
    assert known is not None
    rows = [(each.stream, each.start_ns, each.step) for each in known.launches if each.thread == 0]
    steps = pl.DataFrame(rows, schema=["stream", "start_ns", "step"], orient="row")
    return launches.join(steps, on=["stream", "start_ns"], how="left", maintain_order="left")


def changed(launches: pl.DataFrame, change: Change) -> pl.DataFrame:
    """The launches made harder to read. A hidden name says nothing, and a copy is a kernel there."""
    if change == "no copies":
        return launches.filter(pl.col("kind") == "kernel")
    if change in _HIDDEN:
        is_hidden = pl.col("kernel").str.contains(_HIDDEN[change])
        return launches.with_columns(pl.when(is_hidden).then(_hidden()).otherwise("kernel").alias("kernel"))
    if change == "no names":
        return launches.with_columns(_hidden(), pl.lit("kernel").alias("kind"))
    ordered = launches.sort("start_ns", "dur_ns")
    if change == "cut":
        return ordered.slice(int(_CUT * ordered.height), int((1 - 2 * _CUT) * ordered.height))
    end = (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1)
    late = (pl.col("start_ns") - end - _PAUSE_NS).clip(lower_bound=0).fill_null(0)
    return ordered.with_columns(pl.col("start_ns") - late.cum_sum())


def _hidden() -> pl.Expr:
    return pl.col("kernel").rank("dense").cast(pl.Int64).map_elements(_word, return_dtype=pl.String)


def _word(number: int) -> str:
    """Letters alone, and none that mean anything."""
    return "".join("qxzjvk"[int(digit)] for digit in np.base_repr(number, 6)) + "_unit"


def _trace_of(launches: pl.DataFrame, facts: Facts) -> Trace:
    out = TraceBuilder({"launches"})
    out.add("launches", launches.height, {name: launches[name] for name in launches.columns if name != "step"})
    return out.finish(facts)


def judge(name: str, truth: Truth, launches: pl.DataFrame, found: FoundSteps) -> Score:
    """Launch by launch: `launches` has `start_ns` and `step`. Steps that no launch is left of are not asked for."""
    own = launches.filter(pl.col("step").is_not_null())
    start, step = own["start_ns"].to_numpy(), own["step"].to_numpy()
    place = _placed(start, found.steps)
    asked = [known for known in truth.steps if (step == known.step).any()]
    score = Score(name, len(asked), confidence=found.confidence, anchor=found.anchor)
    sizes = Counter(place.tolist())
    phases = found.steps["phase"].to_list()
    taken: set[int] = set()
    for known in asked:
        places = Counter(place[step == known.step].tolist())
        most, count = places.most_common(1)[0]
        taken.add(most)
        is_exact = most != _NONE and count == places.total() == sizes[most]
        score.exact += is_exact
        if not is_exact:
            score.miss(f"step {known.step} ({known.phase}): {dict(places)} of found sizes {[sizes[p] for p in places]}")
        _judge_phase(score, known.step, known.phase, None if most == _NONE else phases[most])
    score.extra = found.steps.height - len(taken - {_NONE})
    return score


def judge_marks(name: str, truth: Truth, steps: pl.DataFrame) -> Score:
    """By the times of the marks; ProfilerStep tells no phase, so that it is missing there."""
    score = Score(name, len(truth.steps), extra=max(0, steps.height - len(truth.steps)))
    found = {row["start_ns"]: row for row in steps.iter_rows(named=True)}
    for known in truth.steps:
        row = found.get(known.start_ns)
        is_exact = row is not None and row["wall_ns"] == known.end_ns - known.start_ns
        score.exact += is_exact
        if not is_exact:
            score.miss(f"step {known.step} ({known.phase}): expected it at {known.start_ns}")
        _judge_phase(score, known.step, known.phase, None if row is None else row["phase"])
    return score


def _judge_phase(score: Score, step: int, wanted: str, found: str | None) -> None:
    verdict = "missing" if found is None else "right" if found == wanted else "wrong"
    score.verdicts[verdict] += 1
    if verdict == "wrong":
        score.miss(f"step {step}: expected {wanted}, found {found}")


def _placed(start: np.ndarray[tuple[int], np.dtype[np.int64]], steps: pl.DataFrame) -> Any:
    """The row of the found step in which each launch began; -1 for none."""
    if steps.is_empty():
        return np.full(len(start), _NONE)
    begins, ends = steps["start_ns"].to_numpy(), (steps["start_ns"] + steps["dur_ns"]).to_numpy()
    row = np.searchsorted(begins, start, side="right") - 1
    return np.where((row >= 0) & (start < ends[row]), row, _NONE)


def table(scores: Iterable[Score]) -> list[str]:
    """A Markdown table, one row per case."""
    head = ("case", "steps", "exact", "too many", "phases", "confidence", "anchor")
    lines = [f"| {' | '.join(head)} |", "| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for score in scores:
        rest = ", ".join(f"{score.verdicts[name]:,} {name}" for name in _VERDICTS[1:] if score.verdicts[name])
        phases = f"{100 * score.verdicts['right'] / score.steps:.1f} %" + (f" ({rest})" if rest else "")
        shares = (f"{score.steps:,}", f"{100 * score.exact / score.steps:.1f} %", f"{score.extra:,}", phases)
        confidence = "" if score.confidence is None else f"{score.confidence:.2f}"
        lines.append(f"| {' | '.join((score.case, *shares, confidence, score.anchor or ''))} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORDS", help="cases whose name has these words")
    parser.add_argument("--layers", type=int, metavar="N", help="decoder layers of the model (32)")
    parser.add_argument("--misses", action="store_true", help="tell some of what is not right")
    options = parser.parse_args(arguments)
    chosen = [case for case in CASES if options.only in case.name]
    scores = [run_case(replace(case, trace=replace(case.trace, layers=options.layers))) for case in chosen]
    print(json.dumps([score.as_json() for score in scores], indent=1))
    print("\n".join(table(scores)), file=sys.stderr)
    if options.misses:
        print("\n".join(f"- {score.case}: {miss}" for score in scores for miss in score.misses), file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
