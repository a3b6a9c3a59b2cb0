"""Idle time in which the host launches a graph: how much it is, by loops over the file's own events, and what helps."""

from pathlib import Path

from tests.kineto_files import exact_ns
from tests.truth.raw import capture, duration, timed_events

import inferometer
from inferometer.findings.engine import find_findings

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "h200" / "kineto_graph.json.gz"


def test_who_waits_for_each_replay_is_told_to_launch_the_next_one_before() -> None:
    launches = capture(SAMPLE).launches
    gaps, until_ns = [], launches[0].start_ns
    for each in launches:
        if each.start_ns > until_ns:
            gaps.append((until_ns, each.start_ns))
        until_ns = max(until_ns, each.end_ns)
    calls = [each for each in timed_events(SAMPLE) if each["name"] == "cudaGraphLaunch"]
    spans = [(exact_ns(each["ts"]), exact_ns(each["ts"]) + exact_ns(each["dur"])) for each in calls]
    long = [gap for gap in gaps if gap[1] - gap[0] > 50_000]
    in_launches = sum(
        max(0, min(end, gap_end) - max(start, gap_start)) for start, end in spans for gap_start, gap_end in long
    )
    idle_ns = sum(end - start for start, end in long)
    assert in_launches > 0.9 * idle_ns
    (found,) = [each for each in find_findings(inferometer.open(SAMPLE)).findings if each.rule == "idle_device"]
    assert found.title.endswith("for the host, which is mostly in cudaGraphLaunch")
    assert found.evidence[0].startswith(f"Idle for {duration(idle_ns)} of ")
    assert f"in {len(long)} gaps" in found.evidence[0]
    assert found.next is not None
    assert found.next.startswith("Launch the next replay before the last has ended")
    assert "with_stack" not in found.next
