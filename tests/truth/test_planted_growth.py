"""Every number that `attention_growth` prints of planted faults, by loops over the files' own events."""

from collections import defaultdict
from itertools import combinations
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import pytest
from tests.findings.kernel_traces import KERNELS
from tests.findings.rule_traces import launched
from tests.truth.planted import Step, in_order, steps_of, write_planted, write_rows
from tests.truth.raw import Launch, ask, capture, duration, places, share

from inferometer.names import decode

RULE = "attention_growth"
STRETCHES = 64


def cut(values: list[float]) -> list[float]:
    """Medians of so many stretches; the first ones have one more where they don't come out even."""
    size, more = divmod(len(values), STRETCHES)
    if not size:
        return values
    medians, at = [], 0
    for number in range(STRETCHES):
        end = at + size + (number < more)
        medians.append(median(values[at:end]))
        at = end
    return medians


def draw_line(times: list[int]) -> tuple[float, float, float, float]:
    """Start, slope and the 99 % interval of the slope: Theil's, by the ranks of Kendall's test."""
    at, stretches = cut([float(number) for number in range(len(times))]), cut([float(each) for each in times])
    slopes = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(zip(at, stretches, strict=True), 2))
    n = len(at)
    reach = NormalDist().inv_cdf(0.995) * (n * (n - 1) * (2 * n + 5) / 18) ** 0.5
    low = int((len(slopes) - reach) // 2) - 1
    slope = median(slopes)
    start = median(time - slope * number for number, time in enumerate(times))
    return start, slope, slopes[low], slopes[-1 - low]


def growing(path: Path) -> list[tuple[float, list[Launch]]]:
    """Alike launches of attention with what growth adds on their line, the most first."""
    alike: dict[Any, list[Launch]] = defaultdict(list)
    for each in in_order(path):
        if decode(each.name).family in ("attention", "attention_decode"):
            alike[each.name, str(each.args.get("grid")), str(each.args.get("block"))].append(each)
    groups = []
    for own in alike.values():
        start, slope, low, _ = draw_line([each.dur_ns for each in own])
        if low > 0 and slope * (len(own) - 1) >= 0.05 * start:
            groups.append((slope * sum(range(len(own))), own))
    return sorted(groups, key=lambda each: -each[0])


def sentences(own: list[Launch], steps: list[Step]) -> list[str]:
    start, slope, low, high = draw_line([each.dur_ns for each in own])
    end = start + slope * (len(own) - 1)
    doubled = "On this line" if end >= 2 * start else "If it goes on so"
    doubled += ", a launch takes twice as long as at first after"
    some = sum(any(each in own for each in step.launches) for step in steps)
    after = f"{doubled} {start / slope:,.0f} launches."
    if steps:
        a_step = len(own) / some
        after = (
            f"{doubled} {start / slope / a_step:,.0f} steps with such launches; the run has {some}, and from one to "
            f"the next a launch takes {duration(slope * a_step)} longer on average."
        )
    return [
        (
            f"{decode(own[0].name).short_name}: a line through {len(own):,} alike launches rises from "
            f"{duration(start)} to {duration(end)}, by {duration(1000 * slope)} every 1,000 launches "
            f"({duration(1000 * low)} to {duration(1000 * high)}, 99 %)."
        ),
        after,
    ]


def check(path: Path, steps: list[Step], lines: str, *more: str) -> None:
    finding, groups = ask(path, RULE), growing(path)
    assert finding is not None
    extra_ns = sum(each for each, _ in groups)
    part = extra_ns / capture(path).summed_ns
    first = groups[0][1]
    start, slope, *_ = draw_line([each.dur_ns for each in first])
    rises = share(slope * (len(first) - 1) / start)
    assert finding.title == f"attention grows over the run, by {rises}: {decode(first[0].name).short_name}"
    assert list(finding.evidence) == [
        *(sentence for _, own in groups[:2] for sentence in sentences(own, steps)),
        (
            f"On {lines} {duration(extra_ns)} longer in all than if each took as long as at first: {share(part)} of "
            "the GPU time."
        ),
        *more,
    ]
    place = places(path).get((first[0].name, first[0].stream, first[0].start_ns))
    where = f" in {place}" if place else ""
    assert finding.next == (
        "Compare the growth with that of the context: see whether attention reads more of the KV cache than a step "
        f"needs, and whether its kernel splits the cache over the GPU{where}."
    )
    assert finding.size_ns == round(extra_ns)
    assert finding.share == pytest.approx(part)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_each_sentence_is_what_the_file_says(mode: str, tmp_path: Path) -> None:
    path = write_planted(tmp_path, "attention-growth", mode=mode, steps=24, layers=2, batch=128, prefill_every=12)
    check(path, steps_of(path), "this line the launches take")


def test_kernels_that_grow_by_turns_have_lines_of_their_own(tmp_path: Path) -> None:
    path = write_planted(tmp_path, "attention-growth", batches=(32, 64), steps=24)
    check(path, steps_of(path), "these two lines the launches take")


def test_without_steps_launches_are_counted(tmp_path: Path) -> None:
    """Four kinds of launches that take turns, and grow by a seventh to a fifth."""
    rows = []
    for n in range(1_640):
        grid: dict[str, Any] = {"grid": (1 + n % 4, 1, 1)}
        rows.append(launched(50 * n, 50 * n + 5, 20 + n / (600 - 50 * (n % 4)), kernel=KERNELS["attention"], **grid))
    path = write_rows(tmp_path / "grows.json.gz", rows)
    check(path, [], "their lines, all 4 kinds of attention launches that grow take")


def test_where_marks_tell_the_context_growth_with_it_is_told(tmp_path: Path) -> None:
    """A step a request of one token: its attention takes 20 μs, and 10 ns for each of 1,000 positions and on."""
    rows, spans = [], []
    for n in range(30):
        name = f"execute_0_context_0(sq0sk0sqsq0sqsk0)_generation_1(sq1sk{1_000 + 50 * n}sqsq1sqsk{1_000 + 50 * n})"
        spans.append({"span": name, "start_ns": 100_000 * n, "dur_ns": 90_000})
        rows.append(launched(100 * n + 1, 100 * n + 6, 20 + 0.01 * (1_000 + 50 * n), kernel=KERNELS["attention"]))
    path = write_rows(tmp_path / "context.json.gz", rows, spans=spans)
    steps = [Step("decode", 1, 100_000 * n, 100_000 * n + 90_000, [each]) for n, each in enumerate(in_order(path))]
    grows = "With the context, it takes 10 ns more per token for each KV position (10 to 10, 95 %)."
    check(path, steps, "this line the launches take", grows)
