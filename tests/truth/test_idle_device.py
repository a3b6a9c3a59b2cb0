"""Every number that `idle_device` prints of real captures, by loops over the files' own events."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.truth.host import Span, Thread, activity_of, parts, shared_ns, union
from tests.truth.idle import Idle, Piece, findings, lengths, places_idle, total
from tests.truth.raw import FILES, duration, share, sites

from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.names import decode

RULE = "idle_device"
KINDS = ("host", "queued", "graph", "unknown")
DOING = {
    "capture": "capturing a graph",
    "copy": "in copy calls",
    "slow_call": "in calls of 1 ms or longer that neither wait nor copy",
    "launch": "in launch calls",
    "op": "in ops outside of driver and runtime calls",
    "unrecorded": "outside of all that was recorded",
}
UNKNOWN = (
    "What the work waited for, the trace doesn't tell: an event of another stream, another rank or device, or work "
    "that the file doesn't hold."
)
WARM_UP, RANKS = "Warm up before the profiler starts", "Profile all {} ranks at once and open their folder"
NEXT = {  # as each capture needs it: what the host does there, or who may be waited for
    "a100_event_sync": ["Record the host's side"],
    "a100_idle_64": [RANKS.format(16), RANKS.format(16)],
    "a100_nccl": ["See which lines call these ops"],
    "a100_simple_add": [WARM_UP],
    "mi250_minitoy": [WARM_UP],
    "mi300_sglang_qwen3-8b_decode": ["One gap is most of it: see what stands around it (inferometer timeline gives"],
    "mi300_vllm_gpt-oss_graph_capture": ["This is the capture of a graph"],
    "rank0_sampled": [RANKS.format(128), "Record the host's side"],
    "rank1_sampled": [RANKS.format(128), "Record the host's side"],
    "both ranks": [RANKS.format(128), "Record the host's side"],
}


def size(told: Idle, pieces: list[Piece]) -> str:
    gaps = lengths(pieces)
    longest = f", the longest {duration(gaps[-1])}" if len(gaps) > 1 else ""
    window = duration(told.found.window_ns)
    return f"{duration(total(pieces))} of {window} in {len(gaps):,} gap{'s' if len(gaps) > 1 else ''}{longest}"


def of_the_host(told: Idle, pieces: list[Piece]) -> tuple[str, list[str]]:
    """The end of the title, and the evidence."""
    idle_ns, after = total(pieces), [each for each in pieces if each.wait]
    names = ", ".join(sorted({each.wait.name for each in after if each.wait}))
    waited = f" {duration(total(after))} of it follow a wait of the host ({names})." if after else ""
    doing = parts(told.host, [(each.call.thread if each.call else None, each.start_ns, each.end_ns) for each in pieces])
    assert sum(doing.values()) == idle_ns
    path = list(open_links(told, pieces))
    return f"waits {{}} of its time for the host{where(told, pieces, doing)}", [
        (
            f"Idle for {size(told, pieces)}{told.found.a_step(idle_ns)}, because the call for the next work returned "
            f"only after the device had gone idle.{waited}"
        ),
        *of_the_rhythm(told),
        f"Of these {duration(idle_ns)}, the launching thread spent {'; '.join(clauses(told, pieces, doing))}.",
        *in_path(path, idle_ns),
        *([] if path else longest_ops(told, pieces)),
        *ended_by_sites(told, pieces),
    ]


def of_the_rhythm(told: Idle) -> Iterator[str]:
    """Gaps that are late as well, and that another finding has."""
    gaps = lengths(told.of("launching"))
    if gaps:
        count = f"{len(gaps):,} more gap{'s' if len(gaps) > 1 else ''} of up to {duration(gaps[-1])}"
        verb = "are" if len(gaps) > 1 else "is"
        yield f"Not counted here: {count} {verb} the rhythm of launching one by one, {duration(sum(gaps))} in all."


def clauses(told: Idle, pieces: list[Piece], doing: dict[str, int]) -> Iterator[str]:
    idle_ns = total(pieces)
    for activity, ns in doing.items():
        if ns >= 0.1 * idle_ns:
            apis = [
                f"{name} {duration(own_ns)} in {count} call{'s' if count > 1 else ''}"
                for name, (own_ns, count) in list(calls_in(told, pieces, activity).items())[:2]
            ]
            yield f"{duration(ns)} ({share(ns / idle_ns)}) {DOING[activity]}{': ' if apis else ''}{', '.join(apis)}"


def calls_in(told: Idle, pieces: list[Piece], activity: str) -> dict[str, tuple[int, int]]:
    """Time and count of the calls of a sort that reach into the gaps, the most first."""
    sums: dict[str, tuple[int, int]] = {}
    gaps = gaps_of(pieces)
    for call in told.host.calls:
        ns = shared_ns([(call.start_ns, call.end_ns)], gaps.get(call.thread, []))
        if ns and activity_of(call) == activity:
            before = sums.get(call.name, (0, 0))
            sums[call.name] = before[0] + ns, before[1] + 1
    return dict(sorted(sums.items(), key=lambda item: (-item[1][0], item[0])))


def gaps_of(pieces: list[Piece]) -> dict[Thread, list[tuple[int, int]]]:
    """By the thread that launched what ended them."""
    found = defaultdict(list)
    for each in pieces:
        if each.call:
            found[each.call.thread].append((each.start_ns, each.end_ns))
    return found


def where(told: Idle, pieces: list[Piece], doing: dict[str, int]) -> str:
    half = total(pieces) / 2
    if doing.get("capture", 0) > half:
        return ", which captures a graph"
    if doing.get("slow_call", 0) > half:
        first, *others = calls_in(told, pieces, "slow_call")
        return f", which is mostly in slow calls ({first}{', …' if others else ''})"
    place, ns = next(iter(site_times(told, pieces)), (None, 0))
    return f", mostly before it launches {place}" if place and ns > half else ""


def opened(pieces: list[Piece], rows: tuple[Span, ...]) -> dict[str, int]:
    """How long each name is open in the gaps, on the threads that launched what ended them."""
    sums: dict[str, int] = defaultdict(int)
    for thread, gaps in gaps_of(pieces).items():
        spans = defaultdict(list)
        for each in rows:
            if each.thread == thread and each.end_ns > gaps[0][0] and each.start_ns < gaps[-1][1]:
                spans[each.name].append((each.start_ns, each.end_ns))
        for name, own in spans.items():
            sums[name] += shared_ns(union(own), gaps)
    return sums


def open_links(told: Idle, pieces: list[Piece]) -> Iterator[tuple[str, int]]:
    """Frames and ops that are open for more than half of the time, the outermost first, each in the one before it."""
    rows = (*told.host.frames, *told.host.ops)
    links = {name: ns for name, ns in opened(pieces, rows).items() if ns > total(pieces) / 2}
    gaps = gaps_of(pieces)
    window = min(own[0][0] for own in gaps.values()), max(own[-1][1] for own in gaps.values())
    spans = defaultdict(list)
    for each in rows:
        if each.name in links and each.thread in gaps:
            spans[each.name].append((max(each.start_ns, window[0]), min(each.end_ns, window[1])))
    covers = {name: union(own) for name, own in spans.items()}
    lasts = {name: sum(end - start for start, end in own) for name, own in covers.items()}
    path: list[str] = []
    for name in sorted(links, key=lambda name: (-links[name], -lasts[name]))[:64]:
        if not path or lasts[name] - shared_ns(covers[name], covers[path[-1]]) <= 0.01 * total(pieces):
            path.append(name)
    own = [name for name in path if UserCode().is_own(name)] if told.host.frames else []
    yield from ((name, links[name]) for name in own or path)


def in_path(path: list[tuple[str, int]], idle_ns: int) -> Iterator[str]:
    if path:
        text, open_ns = " > ".join(name for name, _ in path[-3:]), path[-1][1]
        yield f"For {duration(open_ns)} of these {duration(idle_ns)} ({share(open_ns / idle_ns)}) it was in {text}."


def longest_ops(told: Idle, pieces: list[Piece]) -> Iterator[str]:
    times = sorted(opened(pieces, told.host.ops).items(), key=lambda item: (-item[1], item[0]))[:2]
    words = [f"{name} ({duration(ns)})" for name, ns in times if ns >= 0.1 * total(pieces)]
    if words:
        yield f"The ops that were open the longest meanwhile: {', '.join(words)}."


def site_times(told: Idle, pieces: list[Piece]) -> list[tuple[str | None, int]]:
    """What launched the work that ended the gaps, the most time first."""
    known = sites(told.found.path)
    sums: dict[tuple[str | None, str | None], int] = defaultdict(int)
    for each in pieces:
        sums[known[each.launch.key]] += each.ns
    ordered = sorted(sums.items(), key=lambda item: -item[1])[:2]
    return [(" in ".join(part for part in (op, frame) if part) or None, ns) for (op, frame), ns in ordered]


def ended_by_sites(told: Idle, pieces: list[Piece]) -> Iterator[str]:
    words = [f"{name} ({duration(ns)})" for name, ns in site_times(told, pieces) if name and ns >= 0.1 * total(pieces)]
    if words:
        yield f"The work that ended the gaps is launched by {', '.join(words)}."


def of_queued_work(told: Idle, pieces: list[Piece], kind: str) -> tuple[str, list[str]]:
    idle_ns, kernels = total(pieces), defaultdict(list)
    for each in pieces:
        kernels[each.launch.name].append(each)
    first = sorted(kernels.items(), key=lambda item: (-total(item[1]), item[0]))[:2]
    times = [(decode(name).short_name, own, len(lengths(own))) for name, own in first if total(own) >= 0.1 * idle_ns]
    before = [f"{name} ({duration(total(own))}, {n} time{'s' if n > 1 else ''})" for name, own, n in times]
    pauses = [each for each in pieces if each.cause == "launch_gap"]
    usual = ""
    if total(pauses) >= 0.01 * idle_ns and pauses:
        usual = f" {duration(total(pauses))} of it are {len(pauses):,} pauses of up to 5.000 μs."
    api, open_ns, count, is_waiting = blocked(told, pieces)
    calls = "1 call" if count == 1 else f"{count} calls"
    during = f"For {duration(open_ns)} of that ({share(open_ns / idle_ns)}) the host was in {api} ({calls})"
    where = "between the nodes of graph replays"
    title = where if kind == "graph" else "with work queued that does not begin"
    what = f"It idles {where}" if kind == "graph" else "Work had been queued and did not begin"
    evidence = [f"{what} for {size(told, pieces)}{told.found.a_step(idle_ns)}.{usual}"]
    evidence += [f"The most time is lost before {', '.join(before)}."] if before else []
    if open_ns >= 0.1 * idle_ns:
        evidence.append(f"{during}{', which waited for the device, too' if is_waiting else ''}.")
    return f"idles {{}} of its time {title}{f', while the host is in {api}' if 2 * open_ns > idle_ns else ''}", [
        *evidence,
        UNKNOWN,
    ]


def blocked(told: Idle, pieces: list[Piece]) -> tuple[str, int, int, bool]:
    """The long call that is open the longest in the gaps: its name, that time, how many, and whether all waited."""
    gaps = [(each.start_ns, each.end_ns) for each in pieces]
    names = defaultdict(list)
    for each in told.host.calls:
        if each.end_ns - each.start_ns >= 100_000 and shared_ns([(each.start_ns, each.end_ns)], gaps):
            names[each.name].append(each)
    found = [
        (name, shared_ns(union((each.start_ns, each.end_ns) for each in own), gaps), len(own), own)
        for name, own in names.items()
    ]
    name, open_ns, count, own = max(found, key=lambda each: (each[1], each[0]), default=("", 0, 0, []))
    return name, open_ns, count, set(own) <= set(told.host.waits)


def expected(told: dict[str, Idle]) -> Iterator[tuple[str, list[str], int]]:
    """Title, evidence and idle time of each finding; of all places, the one with the largest share is described."""
    for kind in KINDS:
        shares = {name: total(each.of(kind)) / each.found.window_ns for name, each in told.items()}
        first, *others = sorted(shares, key=lambda name: -shares[name])
        if shares[first] < 0.12:
            continue
        worst = told[first]
        assert kind != "unknown"
        pieces = worst.of(kind)
        title, evidence = of_the_host(worst, pieces) if kind == "host" else of_queued_work(worst, pieces, kind)
        others = [name for name in others if shares[name] >= 0.12]
        evidence += [f"{name} is idle like this for {share(shares[name])} of its window." for name in others]
        idle_ns = sum(total(told[name].of(kind)) for name in (first, *others))
        yield f"{first} {title.format(share(shares[first]))}", evidence, idle_ns


@pytest.mark.parametrize("file", [*FILES, "both ranks"])
def test_each_sentence_is_what_the_file_says(file: str, shared_data: Path, tmp_path: Path) -> None:
    path, told = places_idle(file, shared_data, tmp_path)
    found = [each for each in findings(path).findings if each.rule == RULE]
    wanted = list(expected(told)) if told else []
    wanted.sort(key=lambda each: -each[2])
    assert [(each.title, list(each.evidence), each.idle_ns) for each in found] == wanted
    for each in told.values():
        rules = {found.rule for found in findings(path).findings}
        assert rules & {RULE, "launch_bound"} or each.idle_ns < 0.12 * each.found.window_ns
    assert len(found) == len(NEXT.get(file, []))
    for finding, opening in zip(found, NEXT.get(file, []), strict=True):
        assert finding.next.startswith(opening)
