"""How often `compare` names the right cause, on the synthetic labelled pairs of tests/faults, as Markdown.

    python -m benchmarks.faults [--split held_out] [--only fault/cpu_clock] [--jobs 2] [--misses]

Top-1: the first of the ranked causes is of the injected class, whatever the verdict says. False alarm: a null whose
verdict names a cause. Nothing is tuned here: cases, seeds, splits and right answers come from tests/faults/grid.py.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.faults.case import HARDWARE_FAULTS, SEVERITIES, Case
from tests.faults.grid import CASES
from tests.faults.pairs import make_pair

NAMED = "cause named"
Compare = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Outcome:
    """What was answered to one case; `first` is the class of the first ranked cause."""

    case: Case
    verdict: str
    first: str | None

    @property
    def top1(self) -> bool:
        """The first ranked cause is an injected one; where none may be named, none is."""
        return self.first in self.case.classes if self.case.classes else self.verdict != NAMED

    @property
    def wrong_cause(self) -> bool:
        """A cause was claimed that is none of the injected ones."""
        return self.verdict == NAMED and self.first not in self.case.classes

    @property
    def right(self) -> bool:
        """The verdict is one of the right ones and claims no other cause."""
        return self.verdict in self.case.verdicts and not self.wrong_cause


def judge(case: Case, compare: Compare) -> Outcome:
    """Make the pair of a case, compare, and keep the answer."""
    base, candidate = make_pair(case, case.seed)
    with base, candidate:
        result = compare(base, candidate)
        return Outcome(case, result.verdict, result.causes[0].cause_class if result.causes else None)


def faults_table(outcomes: Iterable[Outcome]) -> list[str]:
    """Class x severity of the `fault` group, then each severity over all classes."""
    groups: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if _group(outcome.case) == "fault":
            groups[outcome.case.faults[0], outcome.case.severity].append(outcome)
            groups["all", outcome.case.severity].append(outcome)
    head = ["class", "severity", "pairs", "top-1", "named right", "named wrong", "other verdicts"]
    keys = [(fault, severity) for fault in (*HARDWARE_FAULTS, "all") for severity in SEVERITIES]
    return _markdown(head, ([*key, *_shares(groups[key])] for key in keys if groups[key]))


def _shares(found: Sequence[Outcome]) -> list[str]:
    named = [outcome for outcome in found if outcome.verdict == NAMED]
    wrong = sum(outcome.wrong_cause for outcome in named)
    others = Counter(outcome.verdict for outcome in found if outcome.verdict != NAMED)
    counts = [_percent(sum(outcome.top1 for outcome in found), len(found)), str(len(named) - wrong), str(wrong)]
    return [str(len(found)), *counts, _listed(others)]


def nulls_table(outcomes: Iterable[Outcome]) -> list[str]:
    """False alarms of the `null` group by setting, and over all."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if _group(outcome.case) == "null":
            groups[outcome.case.name.split("/")[1]].append(outcome)
    groups["all"] = [outcome for found in list(groups.values()) for outcome in found]
    rows = []
    for setting, found in groups.items():
        alarms = sum(outcome.verdict == NAMED for outcome in found)
        others = Counter(outcome.verdict for outcome in found if outcome.verdict != NAMED)
        rows.append([setting, str(len(found)), _percent(alarms, len(found)), _listed(others)])
    return _markdown(["null", "pairs", "false alarms", "other verdicts"], rows)


def others_table(outcomes: Iterable[Outcome]) -> list[str]:
    """Every other group: how many answers are among the right ones, and how many wrong causes were named."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if _group(outcome.case) not in ("fault", "null"):
            groups[_group(outcome.case)].append(outcome)
    rows = []
    for group, found in groups.items():
        right, wrong = (sum(getattr(o, name) for o in found) for name in ("right", "wrong_cause"))
        verdicts = _listed(Counter(outcome.verdict for outcome in found))
        rows.append([group, str(len(found)), _percent(right, len(found)), str(wrong), verdicts])
    return _markdown(["group", "pairs", "right", "wrong cause", "verdicts"], rows)


def misses(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """One line for each answer that is not right."""
    for outcome in outcomes:
        if not outcome.right:
            wanted = ", ".join(sorted(outcome.case.verdicts))
            yield f"- {outcome.case.name}: {outcome.verdict}, first {outcome.first}; right: {wanted}"


def _group(case: Case) -> str:
    return case.name.split("/")[0]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} % ({part}/{whole})" if whole else "none"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _ours(case: Case) -> Outcome:
    from inferometer.analyses.compare.comparison import compare  # type: ignore[import-not-found, unused-ignore]

    return judge(case, compare)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", choices=("development", "held_out"), help="one split only; both by default")
    parser.add_argument("--only", default="", help="names that begin so")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--misses", action="store_true", help="list every answer that is not right")
    options = parser.parse_args()
    chosen = [c for c in CASES if options.split in (None, c.split) and c.name.startswith(options.only)]
    if options.jobs > 1:
        with ProcessPoolExecutor(options.jobs) as pool:
            outcomes = list(pool.map(_ours, chosen, chunksize=4))
    else:
        outcomes = [_ours(case) for case in chosen]
    for table in (faults_table(outcomes), nulls_table(outcomes), others_table(outcomes)):
        print("\n".join(table), end="\n\n")
    if options.misses:
        print("\n".join(misses(outcomes)))


if __name__ == "__main__":
    main()
