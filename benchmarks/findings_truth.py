"""Whether `inferometer findings` names planted faults first, stays quiet about healthy runs, and is true of real ones.

    python -m benchmarks.findings_truth                              all traces, in some minutes
    python -m benchmarks.findings_truth --only casts --misses
    python -m benchmarks.findings_truth --only healthy --layers 4
    python -m benchmarks.findings_truth --only real

Faulty traces are those of `tools/make_kineto.py --fault`, each fault in several traces: graphs or eager, other batches,
models, seeds, marks. Counted is the place of the rule that should name the fault among all findings, as they are
listed; `info`, which asks for nothing, counts as not found. Healthy traces are of engines that keep the device busy;
every finding above `info` in one is listed as false. A run of `inferometer findings` on each file is timed, loading
apart. What is reported of real traces was judged by a person, text by text (`benchmarks.real_sentences`). JSON goes to
stdout, Markdown tables to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks import real_sentences
from benchmarks.nsys_of_run import write_nsys
from tools.kineto_maker import Options, write_trace
from tools.kineto_maker.faults import FAULTS, Fault, rule_of

import inferometer
from inferometer.findings.engine import find_findings
from inferometer.findings.finding import Finding
from inferometer.findings.rule import NEEDED

HIGH_ENOUGH: Final = 2  # a fault is found if it is first or second
_LEAST_FOUND, _MOST_FALSE = 0.9, 1

_GRAPH: Final = Options(steps=24, mode="graph", lean=True)
_SMALL: Final = replace(_GRAPH, model="llama-3.2-1b", batch=128, seed=11)
_EAGER: Final = replace(_GRAPH, mode="eager", batch=64, seed=13)
_VARIANTS: Final = {
    "graph": _GRAPH,
    "graph, vLLM's marks, 32 and 64 requests": replace(_GRAPH, marks="vllm", batches=(32, 64), seed=3),
    "graph, no marks, no stacks, 64 requests": replace(_GRAPH, marks="none", stack=False, batch=64, seed=5),
    "graph, 1B model, 128 requests": _SMALL,
    "eager, 64 requests": _EAGER,
    "Nsight Systems, graph": replace(_GRAPH, batch=64, seed=31),
    "Nsight Systems, eager": replace(_EAGER, seed=37),
}
_IN_NSYS: Final = ("Nsight Systems, graph", "Nsight Systems, eager")  # of one rank: it has one file


@dataclass(frozen=True, slots=True)
class Case:
    """A trace: one file per rank; `nsys`: an export of Nsight Systems, not of PyTorch's profiler."""

    name: str
    traces: tuple[Options, ...]
    nsys: bool = False

    @property
    def fault(self) -> Fault:
        """What is planted."""
        return self.traces[0].fault


def _of_ranks(options: Options) -> tuple[Options, ...]:
    return tuple(replace(options, rank=rank) for rank in range(options.world))


def _planted() -> Iterator[Case]:
    for fault, planted in FAULTS.items():
        for name, options in _VARIANTS.items():
            if options.mode not in planted.modes or (name in _IN_NSYS and planted.world > 1):
                continue
            faulty = replace(options, world=planted.world, lockstep=planted.world > 1)
            if fault == "graph-breaks":  # where the host has more work than the device: else a break costs nothing
                batches = (2, 4, 8, 16) if options.batches else (options.batch // 16, options.batch // 8)
                faulty = replace(faulty, model="llama-3.2-1b", lean=False, batches=batches)
            elif fault == "warm-up":  # one step is no usual one
                faulty = replace(faulty, prefill_every=0)
            yield Case(name, _of_ranks(replace(faulty, fault=fault)), nsys=name in _IN_NSYS)
        if planted.modes == ("eager",):
            yield Case("eager, no marks, 32 requests", (replace(_EAGER, marks="none", batch=32, fault=fault),))
            yield Case("eager, 1B model, 128 requests", (replace(_SMALL, mode="eager", fault=fault),))


PLANTED: Final = tuple(_planted())
HEALTHY: Final = (
    Case("8B, 32 requests", (_GRAPH,)),
    Case("8B, 64 requests, vLLM's marks", (replace(_GRAPH, batch=64, marks="vllm", seed=3),)),
    Case("8B, 128 requests, no marks", (replace(_GRAPH, batch=128, marks="none", seed=5),)),
    Case("8B, 32, 64 and 128 requests, profiler steps", (replace(_GRAPH, batches=(32, 64, 128), marks="profiler"),)),
    Case("8B, compiled, no marks", (replace(_GRAPH, compiled=True, marks="none", seed=17),)),
    Case("8B, no stacks, node ids, no prefill", (replace(_GRAPH, stack=False, graph_node_ids=True, prefill_every=0),)),
    Case("1B, 128 requests", (_SMALL,)),
    Case("1B, 256 requests, vLLM's marks", (replace(_SMALL, batch=256, marks="vllm", seed=19),)),
    Case("8B, two ranks in lockstep", _of_ranks(replace(_GRAPH, world=2, lockstep=True, batch=64, seed=23))),
    Case("8B, Nsight Systems", (replace(_GRAPH, marks="vllm", seed=29),), nsys=True),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a trace. `place` is the right rule's, from 1; None where it isn't found or none is planted."""

    case: str
    fault: Fault
    rule: str | None
    place: int | None
    findings: tuple[dict[str, Any], ...]
    launches: int
    found_s: float

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.rule is None:
            return f"{len(false_findings(self))} false findings"
        if self.place is None:
            return "not found"
        return {1: "first", 2: "second", 3: "third"}.get(self.place, f"{self.place}th")


def run_case(case: Case) -> Found:
    """Makes the case's files, and asks all rules."""
    with TemporaryDirectory() as folder, inferometer.open(_write(case, Path(folder)), NEEDED) as trace:
        launches = trace.count_rows()["launches"]
        began = time.perf_counter()
        findings = find_findings(trace).findings
        found_s = time.perf_counter() - began
    rule = rule_of(case.fault)
    told = tuple({"place": place, **finding.as_json()} for place, finding in enumerate(findings, start=1))
    return Found(case.name, case.fault, rule, place_of(rule, findings), told, launches, found_s)


def place_of(rule: str | None, findings: Sequence[Finding]) -> int | None:
    """The place of the first finding of a rule, from 1; None where there is none above `info`."""
    places = (n for n, each in enumerate(findings, start=1) if each.rule == rule and each.severity != "info")
    return next(places, None)


def false_findings(found: Found) -> list[str]:
    """Of a healthy trace: what is above `info`, in words."""
    return [_told(each) for each in found.findings if each["severity"] != "info"]


def planted_table(found: Iterable[Found]) -> list[str]:
    """A Markdown table, one row a trace."""
    lines = ["| fault | trace | rule | place | first finding | s |", "| --- | --- | --- | --- | --- | ---: |"]
    for each in found:
        first = _told(each.findings[0]) if each.findings else "none"
        lines.append(f"| {each.fault} | {each.case} | {each.rule} | {each.verdict} | {first} | {each.found_s:.2f} |")
    return lines


def healthy_table(found: Iterable[Found]) -> list[str]:
    """A Markdown table, one row a trace."""
    lines = ["| healthy trace | launches | false findings | s |", "| --- | ---: | --- | ---: |"]
    for each in found:
        told = "; ".join(false_findings(each)) or "none"
        lines.append(f"| {each.case} | {each.launches:,} | {told} | {each.found_s:.2f} |")
    return lines


def bars(planted: Sequence[Found], healthy: Sequence[Found]) -> list[str]:
    """What the issue asks for, with what was reached: by trace, and by fault (all its traces)."""
    lines = []
    if planted:
        good = [each for each in planted if each.place is not None and each.place <= HIGH_ENOUGH]
        faults = {each.fault for each in planted}
        whole = faults - {each.fault for each in planted if each not in good}
        share, by_fault = len(good) / len(planted), len(whole) / len(faults)
        met = "met" if min(share, by_fault) >= _LEAST_FOUND else "NOT met"
        lines.append(
            f"Planted faults first or second: {len(good)} of {len(planted)} traces ({100 * share:.0f} %), in all of "
            f"their traces {len(whole)} of {len(faults)} faults; at least {100 * _LEAST_FOUND:.0f} %: {met}."
        )
    if healthy:
        false = sum(len(false_findings(each)) for each in healthy)
        met = "met" if false <= _MOST_FALSE else "NOT met"
        lines.append(
            f"False findings above info in {len(healthy)} healthy traces: {false}; at most {_MOST_FALSE}: {met}."
        )
    return lines


def _write(case: Case, folder: Path) -> Path:
    if case.nsys:
        write_nsys(case.traces[0], folder / "run.sqlite")
        return folder / "run.sqlite"
    paths = [folder / f"rank{options.rank}.json" for options in case.traces]
    for options, path in zip(case.traces, paths, strict=True):
        with path.open("wb") as file:
            write_trace(options, file)
    return folder if len(paths) > 1 else paths[0]


def _told(finding: dict[str, Any]) -> str:
    share = "" if finding["share"] is None else f", {100 * finding['share']:.1f} %"
    explained = f", explained by {finding['explained_by']}" if finding["explained_by"] else ""
    return f"{finding['rule']} ({finding['severity']}{share}{explained}): {finding['title']}".replace("|", "/")


def _layered(case: Case, layers: int | None) -> Case:
    return replace(case, traces=tuple(replace(options, layers=layers) for options in case.traces))


def _run(cases: Iterable[Case], layers: int | None) -> Iterator[Found]:
    for case in cases:
        found = run_case(_layered(case, layers))
        print(f"{case.fault}, {case.name}: {found.verdict}", file=sys.stderr, flush=True)
        yield found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORDS", help="a fault, words of a trace's name, healthy or real")
    parser.add_argument("--layers", type=int, metavar="N", help="decoder layers (the model's own number)")
    parser.add_argument("--misses", action="store_true", help="tell all that was found where a fault isn't at the top")
    options = parser.parse_args(arguments)
    planted = [case for case in PLANTED if options.only in (case.fault, "") or options.only in case.name]
    healthy = [case for case in HEALTHY if options.only in ("healthy", "") or options.only in case.name]
    found, quiet = list(_run(planted, options.layers)), list(_run(healthy, options.layers))
    real, good = real_sentences.judge() if options.only in ("real", "") else ([], True)
    answers = {"planted": [asdict(each) for each in found], "healthy": [asdict(each) for each in quiet], "real": real}
    print(json.dumps(answers, indent=1))
    tables = [*(planted_table(found) if found else ()), "", *(healthy_table(quiet) if quiet else ()), ""]
    print("\n".join([*tables, *bars(found, quiet), *real]), file=sys.stderr)
    if options.misses:
        print("\n".join(_misses(found)), file=sys.stderr)
    return 0 if good else 1


def _misses(found: Iterable[Found]) -> Iterator[str]:
    for each in found:
        if each.place is None or each.place > HIGH_ENOUGH:
            yield f"{each.fault}, {each.case}: expected {each.rule}"
            yield from (f"  {finding['place']}. {_told(finding)}" for finding in each.findings)


if __name__ == "__main__":
    raise SystemExit(main())
