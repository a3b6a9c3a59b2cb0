"""How often `compare` is right on pairs that were recorded, with a fault that was really there, as Markdown.

    python tools/record_faults.py campaign --out FOLDER        records them; 40 minutes on two cores
    python -m benchmarks.recorded_faults FOLDER                asks `inferometer compare --check` about each
    python -m benchmarks.recorded_faults --read RESULTS.json   the tables of earlier answers

Right: the fault is what the verdict names, and its sentence holds the word that tells it. Unnamed: neither a cause nor
a change of software is named. Wrong: another is. A false alarm is a cause, a change of software or host time that is
named in two runs without a fault. `--check` must fail on every pair whose step is more than 5 % longer with an
interval above 1. `--json OUT` keeps the answers.

While a run is recorded other programs may run: whoever records the pair measures their processor time. Where it
differs by more than 0.25 cores between the runs, or leaves the program no core of its own, load of the CPU is a right
cause, too, and the pair none of two normal runs: chance decides who waits.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

NAMED, SOFTWARE, HOST, IMPROVED = "cause named", "software change", "host time", "improvement"
NULL = "none"
LONGER = 1.05
UNEVEN_CORES, LOAD = 0.25, "cpu_contention"
MOST_WRONG, LEAST_RIGHT = 1, 45 / 48

Judged = Literal["right", "unnamed", "wrong"]


@dataclass(frozen=True)
class Answer:
    """What was recorded, and what was answered. `truth`: of the pair's `truth.json`; `cause`: class of the first cause.

    `ratio` and `interval` of the step, None where it isn't known; `failed`: whether `--check` did.
    """

    pair: str
    truth: dict[str, Any]
    verdict: str
    why: str
    cause: str | None
    ratio: float | None
    interval: tuple[float, float] | None
    failed: bool

    @property
    def fault(self) -> str:
        """Its name."""
        return str(self.truth["fault"])

    @property
    def is_disturbed(self) -> bool:
        """Whether the program had to share its core with others, or they used more of the machine during one run."""
        normal, fault = (self.truth["others_cores"][run] for run in ("normal", "fault"))
        return bool(abs(fault - normal) > UNEVEN_CORES or max(normal, fault) > self.truth["cores"] - 1)

    @property
    def is_null(self) -> bool:
        """Whether nothing is known to differ."""
        return self.fault == NULL and not self.is_disturbed

    @property
    def judged(self) -> Judged:
        """Whether the verdict is the fault."""
        if self.verdict == NAMED:
            right = [*self.truth["causes"], *([LOAD] if self.is_disturbed else [])]
            return "right" if self.cause in right else "wrong"
        names_it = self.verdict not in (SOFTWARE, HOST) or re.search(self.truth["names"], self.why)
        if self.verdict in self.truth["verdicts"] and names_it:
            return "right"
        return "wrong" if self.verdict == SOFTWARE else "unnamed"

    @property
    def is_false_alarm(self) -> bool:
        """Of two normal runs: something is named that isn't there."""
        return self.is_null and self.verdict in (NAMED, SOFTWARE, HOST)

    @property
    def slipped_through(self) -> bool:
        """Clearly longer, and `--check` passes it."""
        return not self.failed and bool(self.ratio and self.interval and self.ratio > LONGER and self.interval[0] > 1)


def ask(pair: Path) -> Answer:
    """Ask the command line, as CI would."""
    words = [sys.executable, "-m", "inferometer", "compare", str(pair / "normal.ifm"), str(pair / "fault.ifm")]
    done = subprocess.run([*words, "--check", "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{pair}: {done.stderr}")
    found = json.loads(done.stdout)
    comparable = found["comparable"]
    interval = comparable["step_ratio_interval"]
    return Answer(
        pair=pair.name,
        truth=json.loads((pair / "truth.json").read_text()),
        verdict=found["verdict"],
        why=found["why"],
        cause=found["causes"][0]["class"] if found["causes"] else None,
        ratio=comparable["step_ratio"],
        interval=None if interval is None else (interval[0], interval[1]),
        failed=done.returncode == 1,
    )


def faults_table(answers: Sequence[Answer]) -> list[str]:
    """A row per fault, in the order of their names, then all."""
    faulty = [answer for answer in answers if not answer.is_null]
    head = ["fault", "what was done", "pairs", "step, fault over normal", "right", "unnamed", "wrong", "verdicts"]
    groups = {name: [each for each in faulty if each.fault == name] for name in sorted({a.fault for a in faulty})}
    rows = [[name, _done(own[0]), *_counts(own)] for name, own in groups.items()]
    return _markdown(head, [*rows, ["all", "", *_counts(faulty)]])


def nulls_table(answers: Sequence[Answer]) -> list[str]:
    """Pairs of normal runs, and the verdicts on them."""
    nulls = [answer for answer in answers if answer.is_null]
    alarms = sum(answer.is_false_alarm for answer in nulls)
    head = ["pairs of normal runs", "step, second over first", "false alarms", "verdicts"]
    return _markdown(head, [[str(len(nulls)), _range(nulls), str(alarms), _verdicts(nulls)]])


def _done(answer: Answer) -> str:
    return (
        "nothing; other programs left the program no core of its own, or ran during one of the runs"
        if answer.fault == NULL
        else str(answer.truth["done"])
    )


def _counts(answers: Sequence[Answer]) -> list[str]:
    judged = Counter(answer.judged for answer in answers)
    counts = [str(judged[each]) for each in ("right", "unnamed", "wrong")]
    return [str(len(answers)), _range(answers), *counts, _verdicts(answers)]


def _range(answers: Sequence[Answer]) -> str:
    ratios = sorted(answer.ratio for answer in answers if answer.ratio is not None)
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f}" if ratios else ""


def _verdicts(answers: Iterable[Answer]) -> str:
    named = (f"{each.verdict}: {each.cause}" if each.verdict == NAMED else each.verdict for each in answers)
    return ", ".join(f"{verdict} {count}" for verdict, count in sorted(Counter(named).items()))


def missed(answers: Iterable[Answer]) -> Iterator[str]:
    """What breaks a bar, in sentences."""
    for answer in answers:
        if answer.judged == "wrong" or answer.is_false_alarm or answer.slipped_through:
            passed = " `--check` passes it." if answer.slipped_through else ""
            yield f"- {answer.pair}: {answer.verdict}. {answer.why}{passed}"


def summary(answers: Sequence[Answer]) -> str:
    """The bars, in one line."""
    faulty = [answer for answer in answers if not answer.is_null]
    honest = sum(answer.judged != "wrong" for answer in faulty)
    longer = [each for each in answers if each.ratio and each.interval and each.ratio > LONGER and each.interval[0] > 1]
    passed = sum(answer.slipped_through for answer in longer)
    alarms = sum(answer.is_false_alarm for answer in answers)
    return (
        f"{honest} of {len(faulty)} pairs with a fault right or unnamed, {len(faulty) - honest} wrong; {alarms} false "
        f"alarms in {len(answers) - len(faulty)} pairs without one; of {len(longer)} pairs whose step is more than 5 % "
        f"longer, with an interval above 1, `--check` passes {passed}."
    )


def page(answers: Sequence[Answer]) -> list[str]:
    """Both tables, the bars, and what breaks them."""
    wrong = [*missed(answers)]
    return [summary(answers), "", *faults_table(answers), "", *nulls_table(answers), *([""] if wrong else []), *wrong]


def read_answers(path: Path) -> list[Answer]:
    """Answers that `--json` kept."""
    return [Answer(**{**each, "interval": _pair(each["interval"])}) for each in json.loads(path.read_text("utf-8"))]


def _pair(interval: list[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def main() -> int:
    """Prints the tables. Exits 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="recorded pairs")
    parser.add_argument("--read", type=Path, metavar="RESULTS.json", help="answers of an earlier run")
    parser.add_argument("--json", type=Path, metavar="OUT", help="keep the answers")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if (given.folder is None) == (given.read is None):
        parser.error("expected a folder of pairs or --read RESULTS.json")
    if given.read:
        answers = read_answers(given.read)
    else:
        pairs = sorted(path.parent for path in given.folder.glob("*/truth.json"))
        with ThreadPoolExecutor(given.jobs) as pool:
            answers = [*pool.map(ask, pairs)]
    if given.json:
        given.json.write_text(json.dumps([asdict(answer) for answer in answers], indent=1) + "\n")
    print(*page(answers), sep="\n")
    faulty = [answer for answer in answers if not answer.is_null]
    wrong = sum(answer.judged == "wrong" for answer in faulty)
    is_met = wrong <= MOST_WRONG and len(faulty) - wrong >= LEAST_RIGHT * len(faulty)
    return 0 if is_met and not any(each.is_false_alarm or each.slipped_through for each in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
