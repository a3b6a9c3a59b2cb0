"""Changes modules in small ways, one at a time, and asks whether their tests notice.

    python -m tests.mutants                  all modules of `subjects.py`
    python -m tests.mutants gaps store       those with such a word in their path
    python -m tests.mutants gaps --list      the changes that would be made
    python -m tests.mutants --minutes 5      stops then; what was not tried is counted

`verdicts.toml` lists survivors that were looked at, each with why: those that are equivalent (no test could notice) are
not counted. Exits 1 when a module's tests kill less than 90 % of the others, a verdict fits no mutant, or time ran out.
"""

import argparse
import os
import sys
import time

from tests.mutants.changes import make_mutants
from tests.mutants.running import CannotRun, run_mutants, time_unchanged, warm_up
from tests.mutants.subjects import SUBJECTS, Subject
from tests.mutants.tally import Tally, read_verdicts

LEAST_KILLED = 0.9
_THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def main() -> int:
    """The exit code."""
    asked = _arguments()
    subjects = [each for each in SUBJECTS if not asked.words or any(word in each.module for word in asked.words)]
    if asked.list:
        for subject in subjects:
            for mutant in make_mutants(subject.source()):
                print(f"{subject.module}:{mutant.line}: {mutant.change}")
        return 0
    os.environ.update(
        dict.fromkeys(_THREADS, "1")
    )  # before their libraries: inputs are small, and forks run side by side
    warm_up()
    until = time.monotonic() + 60 * asked.minutes
    tallies = [_run(subject, asked.jobs, until) for subject in subjects]
    print(Tally.heading(), *tallies, sep="\n")
    return 0 if subjects and all(tally.is_enough(LEAST_KILLED) for tally in tallies) else 1


def _run(subject: Subject, jobs: int, until: float) -> Tally:
    """Try a module's mutants while there is time, and name the survivors."""
    verdicts, mutants = read_verdicts(subject), make_mutants(subject.source())
    tally = Tally(subject.module, mutants=len(mutants))
    stale = verdicts.keys() - {mutant.change for mutant in mutants}
    for change in sorted(stale):
        tally.stale += 1
        print(f"{subject.module}: a verdict fits no mutant: {change}")
    wanted = [mutant for mutant in mutants if verdicts.get(mutant.change) != "equivalent"]
    tally.equivalent = len(mutants) - len(wanted)
    try:
        usual_s = time_unchanged(subject)
    except CannotRun as error:
        print(error.reason)
        return tally
    in_time = (mutant for mutant in wanted if time.monotonic() < until)
    for mutant, outcome in run_mutants(subject, in_time, usual_s=usual_s, jobs=jobs):
        tally.add(outcome)
        if outcome != "killed" and mutant.change not in verdicts:
            print(f"{subject.module}:{mutant.line}: {outcome}: {mutant.change}", flush=True)
    return tally


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("words", nargs="*", help="parts of paths of modules")
    parser.add_argument("--list", action="store_true", help="print the changes, run nothing")
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
