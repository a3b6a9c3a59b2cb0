"""Steps of the log and of the recordings among the samples, as plain rows, and which of them took unusually long.

The log is read line by line; of a recording the columns are taken as they stand in its files. What a class of kernels
or a step should take is drawn anew through all pairs of steps.
"""

import gzip
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import polars as pl
from tests.truth.raw import duration

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
_REPORT = re.compile(
    r"\[(?P<end>[\d.]+)ms\]\[Profile\] (?P<what>Prefill|Batch decode) \((?:N=(?P<tokens>\d+)|prefill)\):"
)
_ROW = re.compile(r"(?P<label>\S+) +(?P<ms>[\d.]+) +[\d.]+")


@dataclass(frozen=True)
class Step:
    """Times in ns; `context`: what the time may grow with."""

    number: int
    tokens: int
    context: float
    wall: int
    busy: int
    classes: dict[str, int]

    @property
    def gap(self) -> int:
        return self.wall - self.busy


@dataclass(frozen=True)
class Unusual:
    """What a step took beyond the expected, and what did, in words."""

    step: Step
    excess: float
    gap_excess: float
    why: str

    @property
    def lost(self) -> int:
        return max(round(self.excess), 0) + max(round(self.gap_excess), 0)


def log_steps(path: Path) -> tuple[Step, list[Step]]:
    """The prefill and the steps of the log: a step ends when its report is printed, and begins when the one before did.

    The prefill took 47.5 ms of the 49 ms to the first token, after which the next step begins.
    """
    text = gzip.decompress(path.read_bytes()).decode()
    assert "[metrics] ttft=49.0ms prefill=47.5ms" in text
    steps: list[Step] = []
    begun, context = 0, 21  # tokens of the prompt
    for number, found in enumerate(_REPORT.finditer(text)):
        classes: dict[str, int] = defaultdict(int)
        total = _ROW.match(text, text.index("TOTAL", found.end()))
        assert total is not None
        for row in _ROW.finditer(text, found.end(), total.start()):
            classes[re.sub(r":L\d+$|(?<=:)L\d+\.", "", row["label"])] += _ns(row["ms"])
        busy = _ns(total["ms"])
        end, tokens = _ns(found["end"]), int(found["tokens"] or 0)
        if not tokens:
            steps.append(Step(number, context, 0, _ns("47.5"), busy, classes))
            begun = end - _ns("47.5") + _ns("49.0")
            continue
        steps.append(Step(number, tokens, context + (tokens + 1) / 2, end - begun, busy, classes))
        begun, context = end, context + tokens
    return steps[0], steps[1:]


def recorded_steps(path: Path) -> list[Step]:
    """Steps of one token each, on a CPU; an op belongs to the step that it lies in."""
    marks = pl.read_parquet(path / "steps-*.parquet").sort("start_ns").select("step", "start_ns", "dur_ns").rows()
    ops = pl.read_parquet(path / "launches-*.parquet").sort("start_ns").select("kernel", "start_ns", "dur_ns").rows()
    steps: list[Step] = []
    at = 0
    for number, start, wall in marks:
        classes: dict[str, int] = defaultdict(int)
        while at < len(ops) and ops[at][1] < start + wall:
            name, begun, took = ops[at]
            assert start <= begun
            assert begun + took <= start + wall
            classes[name] += took
            at += 1
        steps.append(Step(number, 1, len(steps) + 1, wall, sum(classes.values()), classes))
    assert at == len(ops)
    return steps


def _ns(ms: str) -> int:
    whole, _, part = ms.partition(".")
    return int(whole) * 1_000_000 + int(part.ljust(6, "0"))


@dataclass(frozen=True)
class Line:
    """What times of steps should have been, how far beyond that each is, and from when on this is far."""

    expected: list[float]
    least: list[float]
    far: float

    def beyond(self, at: int, part: float, of: float) -> bool:
        return self.least[at] > self.far and self.least[at] > part * of


def draw_line(steps: list[Step], times: list[int], *, grows: bool = True) -> Line:
    tokens = [each.tokens for each in steps]
    usual = max(tokens, key=tokens.count)
    own = [(each.context, time / each.tokens) for each, time in zip(steps, times, strict=True) if each.tokens == usual]
    middle, slope, start = median(y for _, y in own), 0.0, 0.0
    if grows:
        rises = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(own, 2) if x2 != x1]
        slope = median(rises)
    if abs(slope) * (max(x for x, _ in own) - min(x for x, _ in own)) <= 0.1 * middle:
        slope, start = 0.0, middle
    else:
        start = median(y - slope * x for x, y in own)
    each_token = [start + slope * each.context for each in steps]
    expected = [one * each.tokens for one, each in zip(each_token, steps, strict=True)]
    least = [time - max(one, per * usual) for time, one, per in zip(times, expected, each_token, strict=True)]
    spread = median(abs(value) for value, each in zip(least, steps, strict=True) if each.tokens == usual)
    return Line(expected, least, 5 * spread)


def find_unusual(steps: list[Step]) -> list[Unusual]:
    """Steps of one phase that took longer than their work explains."""
    busy = draw_line(steps, [each.busy for each in steps])
    gaps = draw_line(steps, [each.gap for each in steps], grows=False)
    whole = sum(sum(each.classes.values()) for each in steps)
    names = sorted({name for each in steps for name in each.classes})
    sums = {name: [each.classes.get(name, 0) for each in steps] for name in names}
    lines = {name: draw_line(steps, times) for name, times in sums.items() if sum(times) >= 0.001 * whole}
    found, before = [], False
    for at, step in enumerate(steps):
        slow = [name for name, line in lines.items() if line.beyond(at, 0.5, line.expected[at])]
        wall = busy.expected[at] + gaps.expected[at]
        behind, late = busy.beyond(at, 0.01, busy.expected[at]), gaps.beyond(at, 0.01, wall)
        together = len(slow) >= max(3, 0.25 * len(lines))
        begins = busy.beyond(at, 0.05, busy.expected[at]) or (together and behind)
        before = begins or (at > 0 and gaps.beyond(at, 0.1, wall)) or (before and (behind or late))
        if before:
            ratios = {name: sums[name][at] / line.expected[at] for name, line in lines.items()}
            beyond = {name: sums[name][at] - line.expected[at] for name, line in lines.items()}
            excess, gap = step.busy - busy.expected[at], step.gap - gaps.expected[at]
            words = [_slowest(slow, ratios, beyond, excess, step.busy / busy.expected[at])] if behind else []
            words += [f"host gap +{duration(gap)}"] if late else []
            found.append(Unusual(step, excess, gap, "; ".join(words)))
    return found


def _slowest(slow: list[str], ratios: dict[str, float], beyond: dict[str, float], excess: float, whole: float) -> str:
    if not slow:
        largest = max(beyond, key=lambda name: beyond[name])
        told = f"{largest} {ratios[largest]:.2f}×"
        return told if beyond[largest] > excess / 2 else f"GPU busy {whole:.2f}×"
    named = sorted(slow, key=lambda name: -ratios[name])
    more = f" and {len(slow) - 3} more" if len(slow) > 3 else ""
    return ", ".join(f"{name} {ratios[name]:.1f}×" for name in named[:3]) + more
