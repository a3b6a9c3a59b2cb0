"""Renders one benchmark run as JSON, complete, and as Markdown, to read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.answers import Answer
from benchmarks.bars import MIB, Verdict
from benchmarks.cases import Case
from benchmarks.growth import find_growths, find_ratios, growth_data, growth_lines, ratio_lines
from benchmarks.processes import Measurement
from benchmarks.suite import Suite
from benchmarks.trace_files import TraceFile

_NOTES = """\
- Each run is a whole process, from start to exit, with a fresh interpreter; CPU is user plus system time of all its
  threads and processes; the peak is the greatest resident memory of its largest process in any run. Times are
  medians (least to greatest).
- The page cache is warm: before each run the harness reads the file once, and each command ran once before, untimed.
  Runs are interleaved. What `import` wrote is in the page cache when it ends, perhaps not yet on disk.
"""
_GROWTH_NOTES = """\
Exponents of cost against the file's bytes, with standard errors: cost = a · bytes^exponent, 1 is linear. They are
fitted to every timed run on each size but the smallest, the start. "Above start" is the cost less the median of the
same command on that smallest file. –: too little of the cost grows, or there are too few sizes. "Within its error":
less than two standard errors above. Of `compare` the bytes are the base's.
"""
_RATIO_NOTES = """\
The peer's cost as a multiple of ours, on the same file. In brackets: its quickest run over our slowest, and its slowest
over our quickest.
"""


@dataclass(frozen=True)
class Benchmark:
    """All that one run of a suite found. `results` and `answers` go by a case's name."""

    suite: Suite
    date: str
    size: str
    repeat: str
    machine: Mapping[str, object]
    versions: Mapping[str, Mapping[str, str | None]]
    source_changed: bool
    harness_peak_bytes: int
    took_s: int
    files: Sequence[TraceFile]
    cases: Sequence[Case]
    answers: Mapping[str, Answer]
    results: Mapping[str, Measurement]
    verdicts: Sequence[Verdict]


def render_json(run: Benchmark) -> str:
    """Everything, with every repetition; no path of the machine."""
    data = {
        "suite": run.suite.name,
        "date": run.date,
        "size": run.size,
        "repeat": run.repeat,
        "took_s": run.took_s,
        "machine": run.machine,
        "versions": run.versions,
        "source_changed": run.source_changed,
        "page_cache": "warm",
        "harness_peak_bytes": run.harness_peak_bytes,
        "files": [
            {
                "name": file.path.name,
                "bytes": file.bytes,
                "made_with": file.made_with,
                "kernel_launches": file.truth.launches,
                "kernel_ns": file.truth.kernel_ns,
                "events": file.truth.events,
            }
            for file in run.files
        ],
        "cases": [_case_data(run, case) for case in run.cases],
        "bars": [
            {"bar": verdict.title, "limit": verdict.limit, "value": verdict.value, "met": verdict.met}
            for verdict in run.verdicts
        ],
        "growth": [growth_data(growth) for growth in find_growths(run.cases, run.results)],
        "ratios": [asdict(ratio) for ratio in find_ratios(run.cases, run.results, run.suite.beside)],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def render_markdown(run: Benchmark) -> str:
    """The page that people read: bars first, then times, answers, and how it was done."""
    parts = [f"# {run.suite.title}\n\n{_opening(run)}"]
    if run.source_changed:
        parts.append("**Our source changed during this run: its times are of no one version. Run it again.**")
    if run.size != "full":
        parts.append("These files only try the harness; they are too small for the bars, and no verdict is given.")
    if run.verdicts:
        parts.append("## Bars\n\n" + "\n".join(_bar_lines(run)))
    parts.extend(_series(run))
    parts.append("## Measured\n\n" + "\n".join(_result_lines(run)))
    parts.append("## Answers\n\n" + render_answers(_largest(run.cases), run.answers))
    parts.append("## How\n\n" + _NOTES + run.suite.notes)
    return "\n\n".join(parts) + "\n"


def render_answers(cases: Sequence[Case], answers: Mapping[str, Answer]) -> str:
    """Ours and the peers' sums of kernel time next to the truth."""
    lines = ["| command | kernel time found, ns | truth, ns | off by | checked |", "| --- | ---: | ---: | ---: | --- |"]
    for case in cases:
        answer = answers[case.name]
        found = truth = off = "–"
        if answer.kernel_ns is not None and case.truth is not None:
            found, truth = f"{answer.kernel_ns:,}", f"{case.truth.kernel_ns:,}"
            off = f"{100 * (answer.kernel_ns / case.truth.kernel_ns - 1):+.2f} %"
            off = "0" if answer.kernel_ns == case.truth.kernel_ns else off
        lines.append(f"| {_code(case)} | {found} | {truth} | {off} | {answer.agreed} |")
    return "\n".join(lines)


def _series(run: Benchmark) -> Iterator[str]:
    """Growth and ratios, where the suite has series."""
    if growths := find_growths(run.cases, run.results):
        yield "## Growth\n\n" + _GROWTH_NOTES + "\n" + "\n".join(growth_lines(growths))
    if ratios := find_ratios(run.cases, run.results, run.suite.beside):
        yield "## Beside peers\n\n" + _RATIO_NOTES + "\n" + "\n".join(ratio_lines(ratios))


def _largest(cases: Sequence[Case]) -> list[Case]:
    """Of each series the case on the largest file, and all cases that stand in none."""
    largest: dict[tuple[str, str, bool], int] = defaultdict(int)
    for case in cases:
        if case.point is not None:
            key = case.point.kind, case.point.what, case.peer
            largest[key] = max(largest[key], case.point.bytes)
    return [
        case
        for case in cases
        if case.point is None or case.point.bytes == largest[case.point.kind, case.point.what, case.peer]
    ]


def _opening(run: Benchmark) -> str:
    machine = run.machine
    cores = f"{machine['cores_used']} of {machine['cores']} cores used"
    memory = f"{int(str(machine['memory_bytes'])) / 2**30:.0f} GiB of memory"
    load = f"load average before: {machine['load_average_1min']}"
    lines = [
        f"- Date: {run.date}; repeat: `{run.repeat}` (this run took {run.took_s / 60:.1f} min)",
        f"- Machine: {machine['cpu']}, {cores}, {memory}, {machine['system']}; {load}",
    ]
    for who, versions in run.versions.items():
        lines.append(f"- {who}: " + ", ".join(f"{name} {version or 'unknown'}" for name, version in versions.items()))
    for file in run.files:
        size = f"{file.bytes / 1e6:,.1f} MB, {file.truth.events:,} events, {file.truth.launches:,} kernel launches"
        lines.append(f"- `{file.path.name}`: {size}")
    return "\n".join(lines)


def _bar_lines(run: Benchmark) -> Iterator[str]:
    yield "| bar | limit | measured | |"
    yield "| --- | ---: | ---: | --- |"
    for verdict in run.verdicts:
        yield f"| {verdict.title} | {verdict.limit or '–'} | {verdict.shown} | {verdict.word} |"


def _result_lines(run: Benchmark) -> Iterator[str]:
    yield "| command | runs | wall, s | CPU, s | peak, MiB |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for case in run.cases:
        result = run.results[case.name]
        least, most = result.wall_range_ns
        wall = f"{result.wall_ns / 1e9:.2f} ({least / 1e9:.2f} to {most / 1e9:.2f})"
        peak = result.peak_bytes / MIB
        shown = f"{peak:,.0f}" if result.peak_bytes > run.harness_peak_bytes else f"below {peak:,.0f}"
        yield f"| {_code(case)} | {len(result.runs)} | {wall} | {result.cpu_ns / 1e9:.2f} | {shown} |"


def _case_data(run: Benchmark, case: Case) -> dict[str, object]:
    result, answer = run.results[case.name], run.answers[case.name]
    least, most = result.wall_range_ns
    return {
        "name": case.name,
        "command": case.command,
        "peer": case.peer,
        "point": None if case.point is None else asdict(case.point),
        "kernel_ns": answer.kernel_ns,
        "true_kernel_ns": None if case.truth is None else case.truth.kernel_ns,
        "wall_ns": {"median": result.wall_ns, "min": least, "max": most},
        "cpu_ns": {"median": result.cpu_ns},
        "peak_bytes": {"max": result.peak_bytes},
        "runs": [asdict(one) for one in result.runs],
    }


def _code(case: Case) -> str:
    title, separator, command = case.command.rpartition(": ")
    return f"{title}{separator}`{command}`"
