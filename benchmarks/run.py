"""Measures one suite, ours and the peers', in one run; `make benchmark` runs all.

    python -m benchmarks.run                                         Kineto files of 504 MB and 2 GB: ours, json.load
    python -m benchmarks.run --peer-python .venv-bench/bin/python    HolisticTraceAnalysis too
    python -m benchmarks.run --suite nsys --peer-python PATH         Nsight Systems exports: ours and sqlite3
    python -m benchmarks.run --suite scaling --peer-python PATH      every command on growing files: how cost grows
    python -m benchmarks.run --suite scaling --only export steps     some commands alone
    python -m benchmarks.run --size small --repetitions 1            tries the harness in seconds

Order: make the files, pass the correctness gate, time, write `SUITE-DATE.json` and `SUITE.md`. A wrong answer ends
the run with exit code 1 before any time is reported. Progress goes to stderr, the tables to stdout.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import ingest, nsys, scaling
from benchmarks.answers import Answer, WrongAnswer
from benchmarks.bars import judge
from benchmarks.cases import Case, schedule
from benchmarks.machine import describe_machine, fingerprint_source, our_versions, peer_versions, use_cores
from benchmarks.processes import Measurement, ProcessFailed, Run, measure_process, own_peak_bytes
from benchmarks.report import Benchmark, render_answers, render_json, render_markdown
from benchmarks.suite import SIZES
from benchmarks.trace_files import ROOT, size_of

SUITES: Final = {suite.name: suite for suite in (ingest.SUITE, nsys.SUITE, scaling.SUITE)}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    suite = SUITES[options.suite]
    cores_used = use_cores(options.cores)
    machine = describe_machine(cores_used)
    peer_python = None if options.peer_python is None else options.peer_python.absolute()  # a link into its environment
    cases, files = suite.make_cases(options.size, options.cache.absolute(), peer_python)
    if options.only:
        cases = [case for case in cases if _is_of(case, options.only)]
        if not cases:
            print(f"no case has a part named {' or '.join(options.only)}", file=sys.stderr)
            return 2
    if options.repetitions is not None:
        cases = [replace(case, repetitions=options.repetitions) for case in cases]
    versions: dict[str, Mapping[str, str | None]] = {"ours": our_versions(suite.libraries)}
    if peer_python is not None:
        versions["peers"] = peer_versions(peer_python, suite.peers)
    source = fingerprint_source()
    began_s = time.monotonic()
    try:
        answers = pass_gate(cases)
        print(render_answers(cases, answers), flush=True)
        results = time_cases(cases)
    except (WrongAnswer, ProcessFailed) as error:
        print(f"refused: {error}\n  No time is reported before every answer is right.", file=sys.stderr)
        return 1
    benchmark = Benchmark(
        suite=suite,
        date=datetime.now(UTC).date().isoformat(),
        size=options.size,
        repeat=_repeat(options),
        machine=machine,
        versions=versions,
        source_changed=fingerprint_source() != source,
        harness_peak_bytes=own_peak_bytes(),
        took_s=round(time.monotonic() - began_s),
        files=files,
        cases=cases,
        answers=answers,
        results=results,
        verdicts=judge(suite.bars, results, _sizes(cases), binding=options.size == "full"),
    )
    _write(benchmark, options.results)
    return 1 if options.check and any(verdict.met is False for verdict in benchmark.verdicts) else 0


def pass_gate(cases: Sequence[Case]) -> dict[str, Answer]:
    """Runs every case once, untimed, and checks what it says.

    Raises:
        WrongAnswer: An output differs from the truth.
        ProcessFailed: A command failed.
    """
    answers = {}
    for case in cases:
        print(f"gate: {case.command}", file=sys.stderr)
        _, answers[case.name] = _run(case)
    return answers


def time_cases(cases: Sequence[Case]) -> dict[str, Measurement]:
    """Times every case, interleaved, and checks what each run says. Raises as `pass_gate` does."""
    runs: dict[str, list[Run]] = {case.name: [] for case in cases}
    rounds = max(case.repetitions for case in cases)
    for turn, case in schedule(cases):
        print(f"round {turn + 1} of {rounds}: {case.command}", file=sys.stderr)
        run, _ = _run(case)
        runs[case.name].append(run)
    return {name: Measurement(tuple(some)) for name, some in runs.items()}


def _run(case: Case) -> tuple[Run, Answer]:
    case.prepare()
    os.sync()  # so that nobody pays for writing back what an earlier run left
    run, output = measure_process(case.argv, ROOT, case.stdin)
    try:
        return run, case.check(output)
    except WrongAnswer as error:
        raise WrongAnswer(f"{case.command}: {error}") from error


def _is_of(case: Case, words: Sequence[str]) -> bool:
    """Whether one of these words is a part of its name."""
    return any(word in case.name.split("/") for word in words)


def _sizes(cases: Sequence[Case]) -> dict[str, int]:
    return {case.name: size_of(case.source) for case in cases if case.source is not None}


def _write(benchmark: Benchmark, results: Path) -> None:
    results.mkdir(parents=True, exist_ok=True)
    page, name = render_markdown(benchmark), benchmark.suite.name
    (results / f"{name}-{benchmark.date}.json").write_text(render_json(benchmark), "utf-8")
    (results / f"{name}.md").write_text(page, "utf-8")
    print(f"\n{page}", end="")


def _repeat(options: argparse.Namespace) -> str:
    if options.size == "full" and options.peer_python is not None and not (options.repetitions or options.only):
        return "make benchmark"
    words = ["python -m benchmarks.run", f"--suite {options.suite}", f"--size {options.size}"]
    if options.peer_python is not None:
        words.append("--peer-python .venv-bench/bin/python")
    if options.repetitions is not None:
        words.append(f"--repetitions {options.repetitions}")
    if options.only:
        words.extend(("--only", *options.only))
    return " ".join(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", choices=list(SUITES), default="ingest", help="what to measure (%(default)s)")
    parser.add_argument("--size", choices=SIZES, default="full", help="of the files (%(default)s)")
    parser.add_argument(
        "--peer-python",
        type=Path,
        metavar="PATH",
        help="interpreter of the peers' environment; without it they are left out",
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="of every case, instead of each case's own number")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="cases with such a part in their name: export, eager")
    parser.add_argument("--cores", type=int, default=2, metavar="N", help="bind all to N cores (%(default)s; Linux)")
    parser.add_argument(
        "--cache", type=Path, default=ROOT / ".bench", metavar="DIR", help="of generated files (.bench)"
    )
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks" / "results", metavar="DIR", help="(benchmarks/results)"
    )
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar isn't met")
    return parser


if __name__ == "__main__":
    sys.exit(main())
