"""Every number that `serialised_stream` prints of planted faults, by loops over the files' own events."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.findings.rule_traces import called, launched
from tests.truth.host import host, shared_ns, union
from tests.truth.planted import a_step, busy_ns, in_order, steps_of, write_planted, write_rows
from tests.truth.raw import Launch, ask, capture, duration, share, sites

from inferometer.findings.finding import Finding

RULE = "serialised_stream"
NEXT = (
    "See which waits for events (torch.cuda.Stream.wait_stream, wait_event) tie the two together, and take off those "
    "that the data don't need; if all are needed, launch on one stream."
)


def covered(launches: list[Launch]) -> list[tuple[int, int]]:
    return union((each.start_ns, each.end_ns) for each in launches)


def check(path: Path, finding: Finding | None, about_steps: str) -> None:
    found = capture(path)
    assert finding is not None
    computing = [each for each in in_order(path) if each.kind == "kernel" and not each.is_communication]
    times: dict[int, int] = defaultdict(int)
    for each in computing:
        times[each.stream] += each.dur_ns
    first, second = sorted(times, key=lambda stream: -times[stream])[:2]
    own = [each for each in found.launches if each.stream == second]
    beside_ns = shared_ns(covered(own), covered([each for each in found.launches if each.stream != second]))
    both = [each for each in computing if each.stream in (first, second)]
    working = covered([each for each in found.launches if each.stream in (first, second)])
    takes_over, idle_ns, ended_ns = 0, 0, both[0].end_ns
    for before, each in pairwise(both):
        if before.stream != each.stream:
            takes_over += each.stream == second
            if each.start_ns > ended_ns:
                idle_ns += each.start_ns - ended_ns - shared_ns([(ended_ns, each.start_ns)], working)
        ended_ns = max(ended_ns, each.end_ns)
    waits = sum(each.name in ("cudaStreamWaitEvent", "cuStreamWaitEvent") for each in host(path).calls)
    took_ns = busy_ns(own)
    part = took_ns / found.window_ns
    assert finding.title == (
        f"stream {second} {'hardly' if beside_ns else 'never'} runs in parallel with stream {first} on "
        f"{found.device}: they take turns"
    )
    assert list(finding.evidence) == [
        (
            f"It works for {duration(took_ns)}{about_steps}, {share(part)} of the window; {duration(beside_ns)} of "
            "that in parallel with other work."
        ),
        (
            f"It takes over {takes_over} times, and at the changes to and fro both idle {duration(idle_ns)} in all; "
            f"the host queues {waits} waits of streams for events."
        ),
        *launcher([each for each in both if each.stream == second], path),
    ]
    assert (finding.size_ns, finding.share, finding.next) == (took_ns, part, NEXT)


def launcher(launches: list[Launch], path: Path) -> list[str]:
    """The frame of more than half of the time."""
    by_frame: dict[str, int] = defaultdict(int)
    for each in launches:
        frame = sites(path).get(each.key, (None, None))[1]
        if frame:
            by_frame[frame] += each.dur_ns
    half = sum(each.dur_ns for each in launches) / 2
    return [f"Most of its work is launched by {frame}." for frame, ns in by_frame.items() if ns > half]


@pytest.mark.parametrize("stack", [True, False])
def test_each_sentence_is_what_the_file_says(stack: bool, tmp_path: Path) -> None:
    path = write_planted(tmp_path, "serial-stream", mode="eager", batch=64, steps=4, stack=stack)
    steps, finding = steps_of(path), ask(path, RULE)
    assert finding is not None
    assert finding.size_ns is not None
    check(path, finding, a_step(finding.size_ns, steps))
    assert len(finding.evidence) == (3 if stack else 2)


def test_a_fill_between_two_kernels_is_no_idle_time(tmp_path: Path) -> None:
    rows = []
    for i in range(20):
        fill: dict[str, Any] = {"kind": "memset", "kernel": "Memset (Device)"}
        rows += [
            launched(3 * i, 100 * i + 50, 50),
            launched(3 * i + 1, 100 * i + 101, 3, **fill),
            launched(3 * i + 2, 100 * i + 105 - 6 * (i == 3), 30, stream=13),
        ]
    waits = [called("cudaStreamWaitEvent", i, i + 0.1) for i in range(40)]
    path = write_rows(tmp_path / "turns.json.gz", rows, calls=waits)
    finding = ask(path, RULE)
    check(path, finding, "")
    assert finding is not None
    assert finding.title.startswith("stream 13 hardly runs in parallel with stream 7")
    # 2 μs before 19 turns of the second, 15 μs after 18 of them, and 21 μs after the early one
    assert "both idle 329.000 μs in all" in finding.evidence[1]
