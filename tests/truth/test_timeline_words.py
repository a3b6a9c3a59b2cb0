"""What `timeline` and `summary` say about idle time of real captures, recomputed from the files' own events."""

from collections import defaultdict
from pathlib import Path

import pytest
from tests.truth.idle import Idle, Piece, places_idle, total
from tests.truth.raw import FILES, Launch, duration, exposed, share

import inferometer
from inferometer.analyses.tables.summary import summarize
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.names import decode
from inferometer.reports.views.timeline import VIEW
from inferometer.reports.views.view import remarks_of

WHY = {
    "host_late": "the host was late{}: its call for the next work returned only after the device had gone idle",
    "sync": "the host was waiting for the device{} when that went idle, and queued the next work only then",
    "dependency": "work had been queued and did not begin; what it waited for, the trace doesn't tell",
    "launch_gap": "queued work began within 5.000 μs",
    "graph": "the device was between the nodes of graph replays",
    "unknown": "the call for the next work isn't in the file",
}


def waits(pieces: list[Piece]) -> str:
    sums: dict[str, int] = defaultdict(int)
    for each in pieces:
        if each.wait:
            sums[each.wait.name] += each.ns
    told = sorted(((name, ns) for name, ns in sums.items() if 10 * ns >= total(pieces)), key=lambda item: -item[1])
    words = [f"{'' if ns == total(pieces) else f'{duration(ns)} of it '}after {name}" for name, ns in told]
    return f" ({', '.join(words)})" if words else ""


def sentence(name: str, told: Idle) -> str:
    causes: dict[str, list[Piece]] = defaultdict(list)
    for each in told.pieces:
        causes[each.cause].append(each)
    most = sorted(causes.items(), key=lambda item: -total(item[1]))
    whys = [
        f"{share(total(own) / told.idle_ns)} of that {WHY[cause].format(waits(own))}"
        for cause, own in most
        if 10 * total(own) >= told.idle_ns
    ]
    window_ns = told.found.window_ns
    of = f"{share(told.idle_ns / window_ns)} of its window ({duration(told.idle_ns)} of {duration(window_ns)})"
    return f"{name} is idle {of}. For {'; for '.join(whys)}."


@pytest.mark.parametrize("file", [*FILES, "both ranks"])
def test_pieces_of_idle_time_add_up_to_the_gaps_of_the_file(file: str, shared_data: Path, tmp_path: Path) -> None:
    path, places = places_idle(file, shared_data, tmp_path)
    with inferometer.open(path) as trace:
        timeline = find_timeline(trace)
    gaps = sum(gaps_between(told.found.launches) for told in places.values())
    assert timeline.gap_count == gaps
    notes = [line for each in VIEW.sections(timeline) for line in each.notes if line.startswith("Pieces: ")]
    several = "one that has several causes is a piece of each."
    assert notes == ([f"Pieces: {gaps:,} gap{'' if gaps == 1 else 's'} in all; {several}"] if gaps else [])
    counts = {(row["rank"], row["device"], row["cause"]): row["count"] for row in timeline.causes.to_dicts()}
    assert sum(counts.values()) == sum(len(told.pieces) for told in places.values())


def gaps_between(launches: tuple[Launch, ...]) -> int:
    """How often nothing runs before the next launch begins."""
    count, until_ns = 0, launches[0].start_ns
    for each in sorted(launches, key=lambda each: each.start_ns):
        count += each.start_ns > until_ns
        until_ns = max(until_ns, each.end_ns)
    return count


def late_host(told: Idle) -> str:
    """Where most of the idle time is a late host's, how much, and the longest gap."""
    late_ns = sum(each.ns for each in told.pieces if each.cause in ("host_late", "sync"))
    if 2 * late_ns < told.idle_ns:
        return ""
    gaps: dict[int, list[Piece]] = defaultdict(list)
    for each in told.pieces:
        gaps[each.gap].append(each)
    longest = max(gaps.values(), key=total)
    kernel, known = longest[-1].launch.name, decode(longest[-1].launch.name)
    shown = known.short_name if known.is_known else kernel if len(kernel) <= 60 else kernel[:59] + "…"
    return (
        f" For {share(late_ns / told.idle_ns)} of that the host was late: its call for the next work returned only "
        f"after the device had gone idle. Longest gap: {duration(total(longest))}, ended by {shown}."
    )


def compute(launches: tuple[Launch, ...]) -> list[Launch]:
    return [each for each in launches if each.kind == "kernel" and not each.is_communication]


def exposures(places: dict[str, Idle]) -> list[str]:
    """Communication that no computing kernel hides, and copies that no kernel hides, where it is most of a window."""
    lines = []
    for what in ("Communication is", "Copies are"):
        rows = []
        for name, told in places.items():
            kernels = [each for each in told.found.launches if each.kind == "kernel"]
            communicates = what.startswith("Comm")
            own = [each for each in told.found.launches if each.kind != "kernel"]
            own = [each for each in kernels if each.is_communication] if communicates else own
            hiding = compute(told.found.launches) if communicates else kernels
            (bare_ns,), (all_ns,) = exposed(hiding, {"": own}).values(), exposed([], {"": own}).values()
            if bare_ns > 0.01 * told.found.window_ns:
                rows.append((bare_ns / told.found.window_ns, name, bare_ns, bare_ns / all_ns))
        if rows:
            of_window, name, bare_ns, of_own = max(rows)
            where = f"{name}{', the most of all' if len(rows) > 1 else ''}"
            noun = what.split()[0].lower()
            lines.append(
                f"{what} exposed for {duration(bare_ns)} on {where}: {share(of_window)} of its window, "
                f"{share(of_own)} of its {noun}."
            )
    return lines


@pytest.mark.parametrize("file", [*FILES, "both ranks"])
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path, tmp_path: Path) -> None:
    path, places = places_idle(file, shared_data, tmp_path)
    shares = {name: told.idle_ns / told.found.window_ns for name, told in places.items()}
    with inferometer.open(path) as trace:
        timeline, summary = remarks_of(find_timeline(trace)), remarks_of(summarize(trace))
    lines = [sentence(name, told) for name, told in places.items() if shares[name] > 0.01]
    none = ["No device is idle for more than 1 % of its window."] if places and not lines else []
    assert [each for each in timeline if " is idle " in each] == [*lines, *none]
    assert [each for each in timeline if " exposed for " in each] == exposures(places)
    assert [each for each in summary if " is idle " in each] == [
        f"{name} is idle {share(shares[name])} of its window ({duration(told.idle_ns)}).{late_host(told)}"
        for name, told in places.items()
        if shares[name] >= 0.2
    ]
