"""The gap of a run on a CPU is between ops: no GPU waits there."""

from pathlib import Path

import inferometer

RECORDED = Path(__file__).resolve().parents[4] / "samples" / "recorded" / "cpu_quota" / "normal.ifm"


def test_a_run_on_a_cpu_has_no_gpu_that_waits() -> None:
    with inferometer.open(RECORDED) as trace:
        found = {each.rule: each for each in inferometer.find_findings(trace).findings}["host_gap"]
    text = " ".join((found.title, *found.evidence, found.next))
    assert "of decode's wall time is between the CPU's ops" in found.title
    assert "Outside ops: median" in text
    assert "GPU" not in text


def test_a_gap_that_differs_from_step_to_step_is_not_called_the_same_in_each() -> None:
    """A disk was busy: gaps of 2 to 18 ms, whose cause nobody knows from ops alone."""
    with inferometer.open(RECORDED.parents[1] / "disk" / "fault.ifm") as trace:
        found = {each.rule: each for each in inferometer.find_findings(trace).findings}["host_gap"]
    assert "is not the same in each step: the middle half have 1.951 ms to 17.997 ms" in found.evidence[-1]
    assert "Python" not in found.next
