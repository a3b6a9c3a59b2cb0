"""Every row of the device-time budget of real captures, moment by moment from the files' own events."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.truth.idle import idle
from tests.truth.raw import FILES, Capture, Launch

import inferometer
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.rule import NEEDED
from inferometer.names import decode


def part(launch: Launch) -> str:
    if launch.kind != "kernel":
        return "copies"
    return "communication" if launch.is_communication else decode(launch.name).family


def parts(found: Capture) -> dict[str, int]:
    """What each moment of the window goes to but idle: families, several at once, exposed communication, copies."""
    moments = sorted(
        [(each.start_ns, 1, part(each)) for each in found.launches]
        + [(each.end_ns, -1, part(each)) for each in found.launches],
        key=lambda moment: moment[0],
    )
    is_open: Counter[str] = Counter()
    times: dict[str, int] = defaultdict(int)
    before_ns = moments[0][0] if moments else 0
    for time_ns, change, name in moments:
        families = [each for each, count in is_open.items() if count and each not in ("communication", "copies")]
        others = [each for each in ("communication", "copies") if is_open[each]]
        if time_ns > before_ns and (families or others):
            told = ["several"] if len(families) > 1 else families or others[:1]
            times[told[0]] += time_ns - before_ns
        is_open[name] += change
        before_ns = time_ns
    return dict(times)


@pytest.mark.parametrize("file", FILES)
def test_each_row_is_what_the_file_says(file: str, shared_data: Path) -> None:
    told = idle(shared_data / "traces" / "kineto" / f"{file}.json.gz")
    causes: dict[str, int] = defaultdict(int)
    counts = Counter(part(each) for each in told.found.launches)
    for each in told.pieces:
        causes[f"idle: {each.cause}"] += each.ns
        counts[f"idle: {each.cause}"] += 1
    expected = {name: (ns, counts.get(name)) for name, ns in (parts(told.found) | causes).items()}
    with inferometer.open(told.found.path, NEEDED) as trace:
        budget = LaunchEvidence(trace).budget
    printed = {
        (f"idle: {name}" if sort == "idle" else name or sort): (time_ns, count)
        for sort, name, time_ns, count in budget.select("sort", "name", "time_ns", "count").iter_rows()
    }
    hidden = {name for name, (time_ns, _) in printed.items() if not time_ns}  # all of it overlaps other work
    assert {name: row for name, row in printed.items() if name not in hidden} == expected
    assert sum(ns for ns, _ in expected.values()) == (told.found.window_ns if told.found.launches else 0)
    assert {name: printed[name][1] for name in hidden} == {name: counts[name] for name in hidden}
