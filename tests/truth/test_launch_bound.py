"""Every number that `launch_bound` prints of real captures, by loops over the files' own events."""

from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from statistics import median

import pytest
from tests.truth.idle import Idle, findings, launch_intervals, lengths, places_idle, total
from tests.truth.raw import FILES, Launch, duration, share, sites

RULE = "launch_bound"
FOUND = {"a100_nccl", "h100_vit", "mi300_vit"}


def tiny(told: Idle) -> list[Launch]:
    return [each for each, _ in told.alone if each.dur_ns < 3_000]


def pauses(told: Idle) -> list[tuple[int, int, Launch]]:
    """Number, length and launch of each usual pause before a tiny kernel."""
    small = {each.key for each in tiny(told)}
    return [
        (each.gap, each.ns, each.launch)
        for each in told.pieces
        if each.cause == "launch_gap" and each.launch.key in small
    ]


def size_ns(told: Idle) -> int:
    return total(told.of("launching")) + sum(ns for _, ns, _ in pauses(told)) + sum(each.dur_ns for each in tiny(told))


def medians(told: Idle) -> tuple[str, str, str]:
    """Of the kernels, of launching them, and from a call to its kernel."""
    times = (
        [each.dur_ns for each, _ in told.alone],
        launch_intervals(told.alone),
        [each.start_ns - call.start_ns for each, call in told.alone],
    )
    first, every, after = (duration(Fraction(median(each))) for each in times)
    return first, every, after


def saved_ns(told: Idle, left_ns: Fraction) -> Fraction:
    """What a graph would save that leaves so much between kernels."""
    gaps: dict[int, int] = defaultdict(int)
    for each in told.of("launching"):
        gaps[each.gap] += each.ns
    for number, ns, _ in pauses(told):
        gaps[number] += ns
    return sum((max(Fraction(0), ns - left_ns) for ns in gaps.values()), Fraction(0))


def user_frame(told: Idle) -> str:
    """The user's frame that has more than half of the time."""
    known = sites(told.found.path)
    sums: dict[str | None, int] = defaultdict(int)
    rows = [(each.launch, each.ns) for each in told.of("launching")]
    rows += [(launch, ns) for _, ns, launch in pauses(told)] + [(each, each.dur_ns) for each in tiny(told)]
    for launch, ns in rows:
        sums[known[launch.key][1]] += ns
    name, ns = max(sums.items(), key=lambda item: item[1])
    return f", mostly in {name}" if name and 2 * ns >= size_ns(told) else ""


@pytest.mark.parametrize("file", [*FILES, "both ranks"])
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path, tmp_path: Path) -> None:
    path, places = places_idle(file, shared_data, tmp_path)
    found = [each for each in findings(path).findings if each.rule == RULE]
    if file not in FOUND:
        small = [told for told in places.values() if len(told.alone) >= 50]
        assert all(size_ns(told) < 0.05 * told.found.window_ns for told in small)
        assert not found
        return
    ((name, told),) = places.items()
    late = lengths(told.of("launching"))
    graph = [each.ns for each in told.pieces if each.cause == "graph"]
    assert len(graph) < 50  # no replays to learn from
    left_ns = Fraction(1_000)
    of_kernels, every, after = medians(told)
    own_ns, ns = size_ns(told), saved_ns(told, left_ns)
    (finding,) = found
    assert finding.title == (
        f"launching kernels one by one takes {share(own_ns / told.found.window_ns)} of the time of {name}"
        f"{user_frame(told)}"
    )
    assert list(finding.evidence) == [
        (
            f"The median of {len(told.alone):,} kernels launched one by one takes {of_kernels} on the device; the host "
            f"launches one every {every}, and it begins {after} after its call began (medians)."
        ),
        (
            f"It idles {duration(sum(late))} in {len(late):,} gaps of up to {duration(late[-1])} because the call for "
            f"the next work returned only after it had gone idle; kernels below 3.000 μs ({len(tiny(told))} of them) "
            f"take {duration(sum(each.dur_ns for each in tiny(told)))}, pauses of the device before them "
            f"{duration(sum(ns for _, ns, _ in pauses(told)))}: {duration(own_ns)} together"
            f"{told.found.a_step(own_ns)}."
        ),
        (
            f"Estimate: a graph that leaves 1.000 μs between kernels (an assumption) would save about {duration(ns)}"
            f"{told.found.a_step(int(ns))}; the kernels' own time stays, unless they are fused. Recording slows the "
            "host down: without it the gaps are shorter."
        ),
    ]
    assert (finding.size_ns, finding.idle_ns) == (own_ns, sum(late))
    assert finding.next.startswith("Replay these launches as a CUDA graph")
