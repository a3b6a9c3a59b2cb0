"""Every number that `first_step_warm_up` prints of planted faults, by loops over the files' own events.

Steps that nothing marks are taken as `inferometer steps` finds them.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median

import pytest
from tests.findings.rule_traces import called, launched, marked
from tests.truth.host import Span, host, union
from tests.truth.planted import add_early, in_order, steps_of, write_planted, write_rows
from tests.truth.raw import ask, duration, share

import inferometer
from inferometer.analyses.steps.table import step_table
from inferometer.findings.finding import Finding
from inferometer.names.compilers import is_compiling

RULE = "first_step_warm_up"
LOADS = re.compile(r"(cuda|cu)(Module|Library)(Load|GetFunction|GetKernel)")
ALLOCATES = re.compile(r"(cuda|cu)(Malloc|Mem(Host)?Alloc|HostAlloc)")


@dataclass(frozen=True)
class Row:
    """A step; what runs before the first one has no number."""

    number: int | None
    phase: str | None
    tokens: int | None
    start_ns: int
    wall_ns: int

    def holds(self, span: Span) -> bool:
        return self.start_ns <= span.start_ns < self.start_ns + self.wall_ns

    def open_ns(self, spans: list[Span]) -> int:
        end_ns = self.start_ns + self.wall_ns
        return sum(b - a for a, b in union((each.start_ns, min(each.end_ns, end_ns)) for each in spans))


def preparing(path: Path) -> dict[str, list[Span]]:
    """What a warm engine doesn't call, without what lies in the same on its thread."""
    found: dict[str, list[Span]] = defaultdict(list)
    told = [("compiling or tuning", each) for each in host(path).frames if is_compiling(each.name)]
    told += [("loading code", each) for each in host(path).calls if LOADS.match(each.name)]
    told += [("allocating memory", each) for each in host(path).calls if ALLOCATES.match(each.name)]
    for what, each in sorted(told, key=lambda row: (row[1].start_ns, -row[1].end_ns)):
        same = [outer for outer in found[what] if outer.thread == each.thread]
        if all(each.start_ns >= outer.end_ns for outer in same):
            found[what].append(each)
    return found


def slow(first: list[Row], later: list[Row], prepared: list[Span]) -> list[tuple[Row, float, str]]:
    """The slow first steps, what each takes beyond the usual, and the sentence about it."""
    found: list[tuple[Row, float, str]] = []
    for each in first:
        took = f"Step {each.number} ({each.phase or 'phase not known'}) takes {duration(each.wall_ns)}"
        like = [row.wall_ns for row in later if (row.phase, row.tokens) == (each.phase, each.tokens)]
        busy_ns = each.open_ns([span for span in prepared if each.holds(span)])
        if each.number is None:
            before = f"{duration(each.wall_ns)} pass before the first step, with launches that are of no step."
            found.append((each, each.wall_ns, before))
        elif len(like) > 1:
            usual_ns = median(like)
            spread_ns = 8 * 1.4826 * median(abs(row - usual_ns) for row in like)
            if each.wall_ns < 1.5 * max(like) or each.wall_ns <= usual_ns + spread_ns:
                break
            ratio = f"{each.wall_ns / usual_ns:.1f}x the median of {len(like)} like steps after the first 5."
            found.append((each, each.wall_ns - usual_ns, f"{took}, {ratio}"))
        elif busy_ns >= 0.2 * each.wall_ns:
            outside = (
                f"{duration(each.wall_ns - busy_ns)} of it outside of compiling, tuning, loading code and allocating "
                "memory; too few later steps are like it."
            )
            found.append((each, busy_ns, f"{took}, {outside}"))
    return found


def check(path: Path, rows: list[Row], before: list[Row]) -> Finding:
    prepared = preparing(path)
    found = slow([*before, *rows[:5]], rows[5:], list(chain.from_iterable(prepared.values())))
    extra_ns = sum(ns for _, ns, _ in found)
    own = [row for row, *_ in found]
    whole_ns = sum(row.wall_ns for row in (*rows, *(row for row in own if row.number is None)))
    which = f"{len(found)} of the first steps take"
    if len(found) == 1:
        odd = f"step {own[0].number}, one of the first, takes"
        which = "the first step takes" if own[0].number == rows[0].number else odd
        which = "what runs before the first step takes" if own[0].number is None else which
    reasons = []
    for what, spans in sorted(prepared.items()):
        inside = [each for each in spans if any(row.holds(each) for row in own)]
        if not inside:
            continue
        open_ns = sum(row.open_ns([each for each in spans if row.holds(each)]) for row in own)
        longest = max(inside, key=lambda each: each.dur_ns)
        calls = f"1 call of {longest.name}"
        if len(inside) > 1:
            calls = f"{len(inside)} outermost calls; the longest, {longest.name}, takes {duration(longest.dur_ns)}"
        of = "it" if len(own) == 1 else "these steps"
        reasons.append(f"{duration(open_ns)} of {of} went to {what}, in {calls}.")
    finding = ask(path, RULE)
    assert finding is not None
    assert finding.title == f"{which} {duration(extra_ns)} beyond the usual"
    and_before = " and of what runs before them" if own[0].number is None else ""
    assert list(finding.evidence) == [
        *(sentence for *_, sentence in found),
        *reasons,
        (
            f"The {duration(extra_ns)} are {share(extra_ns / whole_ns)} of the wall time of all {len(rows)} steps"
            f"{and_before}."
        ),
    ]
    assert (finding.size_ns, finding.share) == (round(extra_ns), extra_ns / whole_ns)
    assert finding.next == "Leave this out of measurements, or warm the engine up before the profiler starts."
    return finding


def rows_of(path: Path) -> list[Row]:
    return [
        Row(number, each.phase, each.tokens, each.start_ns, each.wall_ns) for number, each in enumerate(steps_of(path))
    ]


@pytest.mark.parametrize("prefill_every", [0, 10], ids=["like steps follow", "none is like it"])
def test_each_sentence_is_what_the_file_says(prefill_every: int, tmp_path: Path) -> None:
    path = write_planted(tmp_path, "warm-up", steps=12, prefill_every=prefill_every)
    finding = check(path, rows_of(path), [])
    assert ("like steps after the first 5" in finding.evidence[0]) is not prefill_every


def test_two_slow_steps_with_calls_of_several_kinds(tmp_path: Path) -> None:
    """Allocations on two threads overlap, one call lasts beyond its step, and one begins after both."""
    starts = [0, 30_000, *range(50_000, 100_000, 5_000)]
    rows = [launched(at + 10, at + 20, 1_000) for at in starts]
    spans = [*marked(starts[:1], 30_000), *marked(starts[1:2], 20_000), *marked(starts[2:], 4_900)]
    calls = [
        called("cudaMalloc", 2_000, 5_000),
        called("cudaMalloc", 3_000, 7_000) | {"thread": 3},
        called("cuModuleLoadData", 8_000, 9_000),
        called("cudaFree", 10_000, 11_000),
        called("cudaMalloc", 49_000, 51_000),
        called("cudaMalloc", 60_100, 60_200),
    ]
    path = write_rows(tmp_path / "two.json.gz", rows, calls=calls, spans=spans)
    finding = check(path, rows_of(path), [])
    assert finding.title == "2 of the first steps take 40.200 ms beyond the usual"
    assert finding.evidence[2] == (
        "6.000 ms of these steps went to allocating memory, in 3 outermost calls; the longest, cudaMalloc, takes "
        "4.000 ms."
    )


def found_rows(path: Path) -> list[Row]:
    with inferometer.open(path) as trace:
        table = step_table(trace).steps.sort("start_ns")
    return [Row(*row) for row in table.select("step", "phase", "tokens", "start_ns", "wall_ns").iter_rows()]


def test_steps_that_nothing_marks(tmp_path: Path) -> None:
    path = write_planted(tmp_path, "warm-up", steps=16, marks="none", stack=False)
    check(path, found_rows(path), [])


def test_what_runs_before_steps_that_nothing_marks(tmp_path: Path) -> None:
    source = write_planted(tmp_path, "none", steps=16, marks="none", stack=False)
    add_early(source, before_ns=50_000_000)
    path = source.rename(tmp_path / "early.json.gz")
    rows, began_ns = found_rows(path), in_order(path)[0].start_ns
    finding = check(path, rows, [Row(None, None, None, began_ns, rows[0].start_ns - began_ns)])
    assert finding.title == "what runs before the first step takes 50.000 ms beyond the usual"
