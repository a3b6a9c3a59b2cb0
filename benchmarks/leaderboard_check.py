"""How often `leaderboard --check` raises a false alarm, and how often it finds a slower operator, on simulated runs.

    python -m benchmarks.leaderboard_check --json OUT.json                 simulates; some 10 minutes on two cores
    python -m benchmarks.leaderboard_check --read RESULTS.json             the table of an earlier simulation
    python -m benchmarks.leaderboard_check --read RESULTS.json --page PAGE.md     writes it between the page's marks

A run has all shapes of the catalogue, a kernel and, but for some cases, a base that took turns with it: 60 calls of
each whose times spread by 4 %, their median, and the interval that bench gives of it. What changes between the two runs
of a pair is drift: of each shape and kernel (1 %), of operators, of all at once. Its distributions aren't those that
the method fits. In other pairs one operator, drawn evenly, takes 5 % longer in the second run: found is what the
verdict of that operator says, and a false alarm is `--check` failing on a pair where nothing did. What is judged are
arrays of changes, by the functions that `leaderboard` calls; `find_pair` makes the files' content of a pair, and a test
holds that both say the same.

Leaves out what a simulation can't have: that a real device drifts as this does.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from inferometer.bench.ranking.changes import SMALLEST, Judged, error_of, judge_changes
from inferometer.bench.ranking.differences import Differences, find_differences
from inferometer.bench.ranking.pairs import take_base, take_common
from inferometer.bench.results import Run, ShapeResult, Timing, Versus
from inferometer.operators import operators

Kind = Literal["normal", "lognormal", "heavy", "bimodal", "rare", "operators", "half"]
Values = NDArray[np.float64]

CALLS: Final = 60
NOISE: Final = 0.04
PLANTED: Final = 0.05
MOST_FALSE: Final = 0.05
LEAST_FOUND: Final = 0.95
BEGIN, END = "<!-- figures of benchmarks/leaderboard_check.py -->", "<!-- end of the figures -->"


@dataclass(frozen=True)
class Case:
    """What a pair of runs is like.

    `calls`: how times of calls spread. `drift`: how medians of a shape drift, by `size` in each run; `shared`: the base
    with the kernel. `session`: drift of a whole run, standard deviation. `only`: this operator alone.
    """

    words: str
    calls: Kind = "normal"
    drift: Kind = "normal"
    size: float = 0.01
    shared: bool = False
    session: float = 0.0
    base: bool = True
    only: str | None = None


CASES: Final = (
    Case("normal noise and drift"),
    Case("lognormal noise", calls="lognormal"),
    Case("heavy tails: t with 3 degrees of freedom, noise and drift", calls="heavy", drift="heavy"),
    Case("lognormal drift, of kernel and base alike", drift="lognormal", shared=True),
    Case("a session 5 % slower or faster, both kernels", session=0.05),
    Case("one shape in ten 3 % slower in a run", drift="rare", size=0.03),
    Case("no base", base=False),
    Case("no base, sessions drift by 1 %", base=False, session=0.01),
    Case("one operator alone, all of it slower", only="rms_norm"),
    Case("drift half of operators, half of shapes", drift="half"),
    Case("drift of whole operators", drift="operators"),
    Case("2 % of drift a shape", size=0.02),
    Case("calls of two speeds, 8 % apart", calls="bimodal"),
    Case("no base, sessions drift by 5 %", base=False, session=0.05),
)


@dataclass(frozen=True)
class Outcome:
    """Of a case: pairs without a change and those that failed; pairs with one and those where it was found."""

    case: Case
    unchanged: int
    false: int
    changed: int
    found: int

    @property
    def false_share(self) -> float:
        """Of pairs where nothing changed."""
        return self.false / self.unchanged

    @property
    def found_share(self) -> float:
        """Of operators that were made slower."""
        return self.found / self.changed


@dataclass(frozen=True)
class Shapes:
    """All shapes of a run: names, places and, by number, operators."""

    operators: tuple[str, ...]
    indices: tuple[int, ...]
    numbers: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True)
class Pair:
    """Of each shape median, low and high, shape (shapes, 3), of a kernel and its base in two runs.

    `chosen`: the operator that takes longer in the second, where one does.
    """

    before: Values
    after: Values
    base_before: Values | None
    base_after: Values | None
    chosen: int


def simulate(case: Case, runs: int, first_seed: int = 0) -> Outcome:
    """So many pairs without a change, and a third as many with one; the same seeds give the same outcome anywhere."""
    shapes = shapes_of(case)
    seeds = range(first_seed, first_seed + runs)
    false = sum(is_slower(judge_pair(draw_pair(case, shapes, seed, planted=False), shapes)) for seed in seeds)
    planted = [draw_pair(case, shapes, seed, planted=True) for seed in seeds[: max(1, runs // 3)]]
    found = sum(judge_pair(pair, shapes).operators.verdicts[pair.chosen] == "slower" for pair in planted)
    return Outcome(case, runs, false, len(planted), found)


def is_slower(judged: Judged) -> bool:
    """Whether `--check` fails."""
    return any("slower" in level.verdicts for level in (judged.shapes, judged.operators, judged.candidates))


def judge_pair(pair: Pair, shapes: Shapes) -> Judged:
    """Its changes, as `leaderboard` judges them."""
    own = _changed(pair.before, pair.after)
    if pair.base_before is None or pair.base_after is None:
        paired = take_common(*own, "no base", smallest=SMALLEST)
    else:
        of_base = _changed(pair.base_before, pair.base_after)
        turns = own[0] - of_base[0], np.hypot(own[1], of_base[1])
        paired = take_base(own, turns, of_base, "torch")
    whole = np.zeros(int(shapes.numbers.max()) + 1, dtype=np.int64)
    return judge_changes(paired.change, paired.error, shapes.numbers, whole, base_spread=paired.base_spread)


def _changed(before: Values, after: Values) -> tuple[Values, Values]:
    errors = [error_of(each[:, 1], each[:, 2]) for each in (before, after)]
    return np.log(after[:, 0] / before[:, 0]), np.hypot(*errors)


def find_pair(pair: Pair, shapes: Shapes) -> Differences:
    """The same by way of what two files hold."""
    before, after = _run(shapes, pair.before, pair.base_before), _run(shapes, pair.after, pair.base_after)
    return find_differences(("before.json", before), ("after.json", after))


def shapes_of(case: Case) -> Shapes:
    known = {name: len(each.catalogue().shapes) for name, each in operators().items() if case.only in (None, name)}
    names = tuple(name for name, count in known.items() for _ in range(count))
    numbers = np.repeat(np.arange(len(known)), list(known.values()))
    return Shapes(names, tuple(i for count in known.values() for i in range(count)), numbers)


def draw_pair(case: Case, shapes: Shapes, seed: int, *, planted: bool) -> Pair:
    """Times of two runs; in the second one operator takes longer, where one is to be planted."""
    rng = np.random.default_rng([seed, planted])
    chosen = int(rng.integers(shapes.numbers.max() + 1))
    longer = np.where(shapes.numbers == chosen, 1 + PLANTED, 1.0) if planted else np.ones(len(shapes.numbers))
    before, base_before = _times(case, shapes, rng)
    after, base_after = _times(case, shapes, rng)
    return Pair(before, after * longer[:, None], base_before, base_after, chosen)


def _times(case: Case, shapes: Shapes, rng: np.random.Generator) -> tuple[Values, Values | None]:
    session = np.exp(case.session * rng.normal())
    own, other = (session * (1 + case.size * _drift(case.drift, shapes, rng)) for _ in range(2))
    mine = _timed(case, rng, 10_000 * own)
    return mine, _timed(case, rng, 15_000 * (own if case.shared else other)) if case.base else None


def _run(shapes: Shapes, mine: Values, base: Values | None) -> Run:
    results = []
    for place in range(len(mine)):
        if base is not None:
            results.append(_result(shapes, place, "torch", base[place], ()))
        versus = () if base is None else (_versus(base[place], mine[place]),)
        results.append(_result(shapes, place, "mine", mine[place], versus))
    return Run(
        date="2026-11-20T10:00:00Z",
        inferometer="0",
        device="simulated",
        on="cuda:0",
        functional_only=False,
        stage="fast",
        versions={},
        settings={},
        candidates=(),
        results=tuple(results),
    )


def _drift(kind: Kind, shapes: Shapes, rng: np.random.Generator) -> Values:
    count = int(shapes.numbers.max()) + 1
    if kind == "operators":
        return np.asarray(rng.normal(size=count)[shapes.numbers])
    if kind == "half":
        both = rng.normal(size=count)[shapes.numbers] + rng.normal(size=len(shapes.numbers))
        return np.asarray(both / np.sqrt(2))
    if kind == "rare":
        return (rng.random(len(shapes.numbers)) < 0.1).astype(float)
    return _drawn(kind, rng, (len(shapes.numbers),))


def _drawn(kind: Kind, rng: np.random.Generator, size: tuple[int, ...]) -> Values:
    """Of mean 0 and standard deviation 1."""
    if kind == "lognormal":
        skewed: Values = (np.exp(rng.normal(size=size)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
        return skewed
    if kind == "heavy":
        return np.asarray(rng.standard_t(3, size) / np.sqrt(3))
    if kind == "bimodal":
        return np.where(rng.random(size) < 0.5, -1.0, 1.0) + 0.2 * rng.normal(size=size)
    return rng.normal(size=size)


def _timed(case: Case, rng: np.random.Generator, ns: Values) -> Values:
    """Median, and the ends of its interval as bench has it, from order statistics: shape (shapes, 3)."""
    times = np.sort(np.maximum(0.5, 1 + NOISE * _drawn(case.calls, rng, (len(ns), CALLS))), axis=1) * ns[:, None]
    lowest = int((CALLS - 1.96 * np.sqrt(CALLS)) / 2)
    return np.stack([np.median(times, axis=1), times[:, lowest], times[:, CALLS - 1 - lowest]], axis=1)


def _versus(base: Values, mine: Values) -> Versus:
    """The interval of a ratio of independent medians, where bench resamples."""
    logs = np.log(np.stack([base, mine]))
    half = float(np.hypot(logs[0, 2] - logs[0, 1], logs[1, 2] - logs[1, 1])) / 2
    ratio = float(base[0] / mine[0])
    low, high = ratio * np.exp(-half), ratio * np.exp(half)
    return Versus(base="torch", mode="cold", speedup=ratio, low=low, high=high, verdict="unclear")


def _result(shapes: Shapes, place: int, name: str, times: Values, versus: tuple[Versus, ...]) -> ShapeResult:
    median, low, high = map(float, times)
    timing = Timing(
        mode="cold",
        timer="cupti",
        median_ns=median,
        p10_ns=low,
        p90_ns=high,
        low_ns=low,
        high_ns=high,
        samples=CALLS,
        steady=True,
    )
    index = shapes.indices[place]
    return ShapeResult(
        operator=shapes.operators[place],
        shape=f"{index}",
        args={},
        candidate=name,
        cases=1,
        index=index,
        timings=(timing,),
        versus=versus,
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """As Markdown; what misses a bar is in bold."""
    heads = ("Between two runs of one kernel", "Pairs", "False alarms", "With a change", "Found")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for each in outcomes:
        false, found = f"{100 * each.false_share:.1f} %", f"{100 * each.found_share:.1f} %"
        false = f"**{false}**" if each.false_share > MOST_FALSE else false
        found = f"**{found}**" if each.found_share < LEAST_FOUND else found
        lines.append(f"| {each.case.words} | {each.unchanged:,} | {false} | {each.changed:,} | {found} |")
    words = (
        f"Pairs without a change, and pairs with one: an operator that takes {100 * PLANTED:.0f} % longer. {CALLS} "
        f"calls per shape that spread by {100 * NOISE:.0f} %, with 1 % of drift per shape and run where nothing else "
        f"is said. In bold what misses the bars, at most {100 * MOST_FALSE:.0f} % and at least "
        f"{100 * LEAST_FOUND:.0f} %."
    )
    return "\n".join([*lines, "", words])


def write_outcomes(outcomes: Sequence[Outcome]) -> str:
    """As JSON, a line a case."""
    return json.dumps([asdict(each) for each in outcomes], indent=1) + "\n"


def read_outcomes(path: Path) -> list[Outcome]:
    """What `write_outcomes` wrote."""
    return [Outcome(**{**each, "case": Case(**each["case"])}) for each in json.loads(path.read_text("utf-8"))]


def with_table(page: str, outcomes: Sequence[Outcome]) -> str:
    """A page with the table between its marks.

    Raises:
        SystemExit: The page has no marks.
    """
    if BEGIN not in page or END not in page:
        raise SystemExit(f"expected the lines {BEGIN} and {END} in the page, found none")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(outcomes)}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="pairs of the first case; a third as many with a change")
    parser.add_argument("--others", type=int, default=1000, help="the same of each other case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="OUT", help="keep the outcomes")
    parser.add_argument("--read", type=Path, metavar="RESULTS", help="show earlier outcomes; simulate nothing")
    parser.add_argument("--page", type=Path, metavar="PAGE", help="write the table into this page")
    given = parser.parse_args(arguments)
    if min(given.runs, given.others) < 1:
        parser.error(f"--runs, --others: expected 1 or more, found {given.runs}, {given.others}")
    if given.read:
        outcomes = read_outcomes(given.read)
    else:
        with ProcessPoolExecutor(given.processes) as pool:
            outcomes = list(pool.map(simulate, CASES, [given.runs, *[given.others] * (len(CASES) - 1)]))
    if given.json:
        given.json.write_text(write_outcomes(outcomes), "utf-8")
    if given.page:
        given.page.write_text(with_table(given.page.read_text("utf-8"), outcomes), "utf-8")
    print(table(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
