"""Damages 100,000 inputs of all formats and looks what becomes of them.

    python -m tests.fuzz                     run the campaign, write its results and docs/robustness.md
    python -m tests.fuzz --cases 2000        a part of it; writes nothing
    python -m tests.fuzz --case 1234 [--keep FOLDER]   one case again, with its traceback; its files in FOLDER
    python -m tests.fuzz --amend             run the defects of the last campaign again, and amend its results
    python -m tests.fuzz --page              docs/robustness.md from the results that are there

Exits 1 when there is a defect: anything but an answer or an `InputError`, in the time and memory that a case has.
"""

import argparse
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # inputs are small: threads would only cost time
os.environ["RUST_BACKTRACE"] = "0"

from tests.fuzz.campaign import Limits, run_cases
from tests.fuzz.results import Tally, amend_results, defective_cases, write_page, write_results

CASES = 100_000
SEED = 20_261_122
_TELL_EVERY_S = 30.0


def main() -> int:
    """The exit code."""
    asked = _arguments()
    if asked.page:
        write_page()
        return 0
    if asked.amend:
        found = list(run_cases(asked.seed, defective_cases(), processes=1, limits=Limits()))
        amend_results(found)
        write_page()
        return 1 if defective_cases() else 0
    if asked.case is not None:
        return _again(asked.seed, asked.case, asked.keep)
    tally = Tally()
    with suppress(KeyboardInterrupt):  # the results so far are results
        _run(asked, tally)
    print(tally.table(), f"\n{tally.cases:,} cases, {tally.defects} defects")
    return 1 if tally.defects else 0


def _run(asked: argparse.Namespace, tally: Tally) -> None:
    """Run the cases; those of the whole campaign are written down as they come."""
    began = told = time.monotonic()
    numbers = range(asked.first, asked.first + asked.cases)
    for result in run_cases(asked.seed, numbers, processes=asked.processes, limits=Limits()):
        if tally.add(result):
            print(f"case {result.number} ({result.subject}): {result.where}", file=sys.stderr, flush=True)
        now = time.monotonic()
        if now - told > _TELL_EVERY_S or tally.cases == asked.cases:
            told = now
            so_far = f"{tally.cases:,} cases, {now - began:.0f} s, {tally.defects} defects"
            print(so_far, file=sys.stderr, flush=True)
            if numbers == range(CASES):
                write_results(tally, seed=asked.seed, seconds=now - began, processes=asked.processes)
                write_page()


def _again(seed: int, number: int, keep: Path | None) -> int:
    from tests.fuzz.case import keep_case, make_case, run_case

    case, rng = make_case(seed, number)
    print(case)
    if keep:
        print(keep_case(case, keep))
    outcome = run_case(case, rng)
    print(f"{outcome.kind}, {outcome.seconds:.3f} s, asked: {outcome.asked}\n{outcome.where}\n{outcome.text}")
    return 1 if outcome.kind == "defect" else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--case", type=int, help="run one case again")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="with --case: keep the damaged files there")
    parser.add_argument("--amend", action="store_true", help="run the defects of the results again")
    parser.add_argument("--page", action="store_true", help="only write the page")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
