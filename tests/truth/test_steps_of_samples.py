"""Every number that findings about steps print of the log and the recordings, by loops over what these hold."""

from itertools import groupby
from pathlib import Path
from statistics import correlation, linear_regression, median, quantiles

import pytest
from tests.truth.raw import duration, share
from tests.truth.samples import SAMPLES, Step, Unusual, find_unusual, log_steps, recorded_steps

import inferometer
from inferometer.findings.finding import Finding

RULES = ("disturbed_steps", "host_gap", "tail_step")
LOG = SAMPLES / "webgpu.log.gz"
RECORDED = sorted((SAMPLES / "recorded").glob("*/*.ifm"))
NAMES = [f"{path.parent.name}-{path.stem}" for path in RECORDED]


def ask(path: Path) -> dict[str, Finding]:
    with inferometer.open(path) as trace:
        found = inferometer.find_findings(trace, rules=RULES).findings
    return {each.rule: each for each in found}


def ranges(numbers: list[int]) -> str:
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0])]
    return ", ".join(f"{run[0][1]}-{run[-1][1]}" if len(run) > 1 else str(run[0][1]) for run in runs)


def check_unusual(finding: Finding | None, unusual: list[Unusual], steps: list[Step]) -> None:
    lost, whole = sum(each.lost for each in unusual), sum(each.wall for each in steps)
    if lost < 0.001 * whole:
        assert finding is None
        return
    assert finding is not None
    listed = ", ".join(f"{each.step.number}: +{duration(each.lost)}" for each in unusual[:8])
    more = f" and {len(unusual) - 8} more" if len(unusual) > 8 else ""
    assert finding.title == (
        f"{len(unusual)} of {len(steps)} steps took longer than their work explains: "
        f"{ranges([each.step.number for each in unusual])}"
    )
    assert list(finding.evidence) == [
        (
            f"Beyond what a step of its kind takes, by step: {listed}{more}; together {duration(lost)}, "
            f"{share(lost / whole)} of the time of all steps."
        ),
        *(f"Step {each.step.number}: {each.why}." for each in unusual[:3]),
        "Medians and slopes of the steps leave them out.",
    ]
    assert finding.size_ns == lost


def check_gap(finding: Finding | None, unusual: list[Unusual], steps: list[Step], words: tuple[str, str, str]) -> None:
    title, outside, whose = words
    gap, wall = sum(each.gap for each in steps), sum(each.wall for each in steps)
    if gap < 0.03 * wall:
        assert finding is None
        return
    assert finding is not None
    odd = [each.step for each in unusual]
    quiet = [each for each in steps if each not in odd]
    gaps = [each.gap for each in quiet]
    r = correlation(gaps, [each.busy for each in quiet])
    low, middle, high = quantiles(gaps, method="inclusive")
    same = "is about the same" if high - low <= 0.25 * middle else "is not the same"
    half = f"in each step: the middle half have {duration(low)} to {duration(high)}"
    assert finding.title == title.format(share(gap / wall))
    assert list(finding.evidence) == [
        (
            f"{outside}: median {duration(median(gaps))} per step ({duration(min(gaps))} to {duration(max(gaps))} over "
            f"{len(quiet)} undisturbed decode steps), {duration(median(each.gap / each.tokens for each in quiet))} "
            "per token."
        ),
        f"Together {duration(gap)} of {duration(wall)} over all {len(steps)} steps.",
        f"It varies with {whose} (r = {r:.2f})."
        if abs(r) >= 0.5
        else f"It doesn't vary with {whose} (r = {r:.2f}) and {same} {half}.",
    ]
    assert finding.size_ns == gap


@pytest.mark.parametrize("path", RECORDED, ids=NAMES)
def test_what_is_said_of_recorded_steps_is_what_the_recording_holds(path: Path) -> None:
    steps, found = recorded_steps(path), ask(path)
    unusual = find_unusual(steps)
    check_unusual(found.get("disturbed_steps"), unusual, steps)
    words = ("{} of decode's wall time is between the CPU's ops", "Outside ops", "the ops' time")
    check_gap(found.get("host_gap"), unusual, steps, words)
    assert "tail_step" not in found  # all steps have one token


def test_what_is_said_of_the_steps_of_a_log_is_what_the_log_prints() -> None:
    (prefill, steps), found = log_steps(LOG), ask(LOG)
    unusual = find_unusual(steps)
    check_unusual(found.get("disturbed_steps"), unusual, [prefill, *steps])
    words = ("{} of decode's wall time is outside GPU work", "Outside GPU work", "the GPU's work")
    check_gap(found.get("host_gap"), unusual, steps, words)

    odd, last = [each.step for each in unusual], steps[-1]
    alike = [each for each in steps if each not in odd and each.tokens == 4]
    slope, start = linear_regression([each.context for each in alike], [each.busy / 4 for each in alike])
    expected, took = start + slope * last.context, last.busy / last.tokens
    assert (last.tokens, abs(took / expected - 1) < 0.1) == (3, True)
    assert found["tail_step"].title == "the last step, of 3 tokens, takes about as long as expected per token"
    assert list(found["tail_step"].evidence) == [
        (
            f"Step {last.number}: {duration(took)} of GPU time per token against {duration(expected)} (expected at "
            f"{last.context:.1f} KV positions), {share(abs(took / expected - 1))} "
            f"{'more' if took > expected else 'less'}; most steps have 4 tokens."
        )
    ]
