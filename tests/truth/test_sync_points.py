"""Every number that `sync_points` prints of real captures, by loops over the files' own events."""

from collections import defaultdict
from pathlib import Path

import pytest
from tests.kineto_files import exact_ns
from tests.truth.host import WAIT, Span
from tests.truth.idle import Idle, Piece, findings, places_idle, total
from tests.truth.raw import FILES, duration, share, timed_events

RULE = "sync_points"


def step_starts(path: Path) -> list[int]:
    """Marks of the profiler or of SGLang."""
    marks = ("ProfilerStep#", "step[DECODE")
    rows = [each for each in timed_events(path) if each["cat"] == "user_annotation" and each["name"].startswith(marks)]
    return sorted(exact_ns(each["ts"]) for each in rows)


def counted(told: Idle, starts: list[int]) -> dict[Span, list[Piece]]:
    """Idle time around the end of each wait; where steps are marked, but for the last wait of each step and thread."""
    waits: dict[Span, list[Piece]] = defaultdict(list)
    for each in told.pieces:
        if each.wait and (each.cause == "sync" or each.ns < 50_000):
            waits[each.wait].append(each)
    if not starts:
        return waits
    lasts: dict[tuple[object, int], int] = defaultdict(int)
    for wait in {*waits, *(call for call in told.host.calls if WAIT.fullmatch(call.name))}:
        key = wait.thread, sum(start <= wait.end_ns for start in starts)
        lasts[key] = max(lasts[key], wait.end_ns)
    return {
        wait: pieces
        for wait, pieces in waits.items()
        if (number := sum(start <= wait.end_ns for start in starts)) and wait.end_ns < lasts[wait.thread, number]
    }


def op_around(told: Idle, wait: Span) -> str:
    """The outermost op that is open as the wait ends."""
    ops = [each for each in told.host.ops if each.thread == wait.thread and each.start_ns < wait.end_ns <= each.end_ns]
    return min(ops, key=lambda each: each.start_ns).name


@pytest.mark.parametrize("file", [*FILES, "both ranks"])
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path, tmp_path: Path) -> None:
    path, places = places_idle(file, shared_data, tmp_path)
    found = [each for each in findings(path).findings if each.rule == RULE]
    starts = step_starts(next(iter(places.values())).found.path) if places else []
    waits = {name: counted(told, starts) for name, told in places.items()}
    sums = {name: sum(map(total, own.values())) for name, own in waits.items()}
    least = 0.01 if starts else 0.05
    if file != "a100_event_sync":
        assert all(sums[name] < least * told.found.window_ns for name, told in places.items())
        assert not found
        return
    (finding,), ((name, told),) = found, places.items()
    ((wait, pieces),) = waits[name].items()
    op = op_around(told, wait)
    later = [each for each in told.pieces if each.wait == wait and each not in pieces]
    assert finding.title == (
        f"{name} idles {share(sums[name] / told.found.window_ns)} of its time after waits of the host in {op}"
    )
    assert list(finding.evidence) == [
        f"1 wait leaves the device without work for {duration(total(pieces))}.",
        f"{wait.name} by {op}: 1 time, {duration(total(pieces))} idle after it.",
        (
            f"Not counted here but in idle_device: {duration(total(later))} more after these waits, in gaps of "
            "50.000 μs or longer until the host's next launch."
        ),
        "The last wait of each step isn't counted: a step may need one, to read its result.",
    ]
    assert finding.size_ns == total(pieces)
    assert finding.next.startswith("Keep the value on the device, or copy it to pinned memory")
