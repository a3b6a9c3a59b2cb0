"""Every number in what `calls`, `launches` and `summary` remark on real traces, recomputed from the raw events.

Loops over plain rows, no table and no code of the analyses. A sentence of ours that isn't expected fails, too.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median

import pytest
from tests.truth.host import Span, host, shared_ns, union
from tests.truth.raw import FILES, Launch, capture

import inferometer
from inferometer import Trace
from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.launched_by.site_times import launch_sites
from inferometer.analyses.tables.calls import call_table
from inferometer.analyses.tables.summary import summarize
from inferometer.reports.views.view import remarks_of
from inferometer.units import format_duration, format_share

NO_CALLS = (
    "No host calls in the selection. PyTorch's profiler records them with activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA], Nsight Systems with --trace=cuda."
)


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    return shared_data / "traces" / "kineto" / f"{request.param}.json.gz"


@dataclass(frozen=True)
class Raw:
    """Launches and calls by start, the call of an id and its work."""

    launches: tuple[Launch, ...]
    calls: tuple[Span, ...]
    call_of: dict[int | None, Span]
    work_of: dict[int | None, list[Launch]]

    @property
    def kernels(self) -> list[Launch]:
        return [launch for launch in self.launches if launch.kind == "kernel"]


@lru_cache(maxsize=2)
def raw_of(path: Path) -> Raw:
    found, around = capture(path), host(path)
    work: dict[int | None, list[Launch]] = {call.correlation: [] for call in around.calls}
    for launch in found.launches:
        if launch.correlation in around.by_correlation:
            work[launch.correlation].append(launch)
    return Raw(found.launches, around.calls, around.by_correlation, work)


@lru_cache(maxsize=2)
def trace_at(path: Path) -> Trace:
    return inferometer.open(path)


def is_graph(call: Span) -> bool:
    return "GraphLaunch" in call.name


def is_launch(call: Span) -> bool:
    return "Launch" in call.name and "HostFunc" not in call.name and not is_graph(call)


def total_ns(events: Sequence[Launch | Span]) -> int:
    return sum(event.dur_ns for event in events)


def times(events: Sequence[Launch | Span]) -> list[tuple[int, int]]:
    return union((event.start_ns, event.end_ns) for event in events)


def length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


# What calls remark


def test_every_remark_about_calls_is_recomputed(path: Path) -> None:
    raw = raw_of(path)
    assert list(call_table(trace_at(path)).notable) == (list(expected_of_calls(raw)) if raw.calls else [NO_CALLS])


def expected_of_calls(raw: Raw) -> Iterator[str]:
    yield from expected_waits(raw)
    yield from expected_starving(raw)
    delays = [
        min(each.start_ns for each in work) - raw.call_of[at].start_ns for at, work in raw.work_of.items() if work
    ]
    if delays:
        ordered = sorted(delays)
        place = 0.99 * (len(ordered) - 1)
        low, high = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
        p99 = low + (high - low) * (place - int(place))
        texts = [format_duration(each) for each in (median(ordered), p99, ordered[-1])]
        yield f"Launch delay: median {texts[0]}, p99 {texts[1]}, longest {texts[2]}."
        if ordered[0] < 0:
            early = format_duration(-ordered[0])
            yield f"Device work begins up to {early} before its call: the clocks of host and device disagree."
    yield from expected_graphs(raw)
    yield from expected_allocations(raw)
    calls = [call for call in raw.calls if is_launch(call) or is_graph(call)]
    idle = sum(not raw.work_of[call.correlation] for call in calls)
    if idle:
        yield (
            f"Launch calls without device work in the file: {idle:,}. They were captured into a graph, or their work "
            "ran after recording ended."
        )
    lost = sum(launch.correlation not in raw.call_of for launch in raw.launches)
    if lost:
        yield (
            f"Launches without a call in the file: {lost:,} of {len(raw.launches):,}, as a rule queued before the "
            "profiling window. They have no delay and are missing from the queue."
        )


def expected_waits(raw: Raw) -> Iterator[str]:
    waits: dict[str, list[Span]] = {}
    for call in raw.calls:
        work = raw.work_of[call.correlation]
        if call.name.endswith("Synchronize"):
            waits.setdefault(call.name, []).append(call)
        elif "Memcpy" in call.name:
            is_over = call.end_ns >= max(each.end_ns for each in work) if work else "Async" not in call.name
            if is_over:
                waits.setdefault(call.name, []).append(call)
    busy = times(raw.launches)
    for name, calls in sorted(waits.items(), key=lambda item: -total_ns(item[1])):
        share = total_ns(calls) / total_ns(raw.calls)
        if share < 0.1:
            continue
        copies = "returning only after the copy had ended"
        what = "waiting for the device" if name.endswith("Synchronize") else copies
        idle_ns = sum(call.dur_ns - shared_ns(busy, [(call.start_ns, call.end_ns)]) for call in calls)
        every = sum(call.name == name for call in raw.calls)
        some = f", in {len(calls):,} of its {every:,} calls," if len(calls) < every else ""
        yield (
            f"{name}{some} takes {format_share(share)} of the call time ({format_duration(total_ns(calls))}, longest "
            f"{format_duration(max(call.dur_ns for call in calls))}), {what}. No device of its process worked for "
            f"{format_share(idle_ns / total_ns(calls))} of that ({format_duration(idle_ns)})."
        )


def expected_starving(raw: Raw) -> Iterator[str]:
    """One device a trace: idle, and no launch between its call and its start."""
    if not raw.launches:
        return
    (device,) = {launch.device for launch in raw.launches}
    first, last = raw.launches[0].start_ns, max(launch.end_ns for launch in raw.launches)
    waiting = [
        (raw.call_of[launch.correlation].start_ns, launch.start_ns)
        for launch in raw.launches
        if launch.correlation in raw.call_of and raw.call_of[launch.correlation].start_ns < launch.start_ns
    ]
    filled = union([*times(raw.launches), *waiting])
    starved_ns = (last - first) - shared_ns(filled, [(first, last)])
    most = " at most" if any(launch.correlation not in raw.call_of for launch in raw.launches) else ""
    if starved_ns >= 0.1 * (last - first):
        yield (
            f"gpu:{device} is starved for{most} {format_share(starved_ns / (last - first))} of its window "
            f"({format_duration(starved_ns)}): idle, and the host has queued nothing."
        )


def expected_graphs(raw: Raw) -> Iterator[str]:
    works = [raw.work_of[call.correlation] for call in raw.calls if is_graph(call) and raw.work_of[call.correlation]]
    launches = sum(map(len, works))
    if works and launches / len(works) > 16:
        several = f"{len(works):,} graph launches, {launches / len(works):,.0f} each on average"
        yield f"{launches:,} launches come from {'one graph launch' if len(works) == 1 else several}."


def expected_allocations(raw: Raw) -> Iterator[str]:
    sums: Counter[str] = Counter()
    for call in raw.calls:
        if any(word in call.name for word in ("Malloc", "Free", "Alloc")) and "Async" not in call.name:
            sums[call.name] += call.dur_ns
    share = sums.total() / total_ns(raw.calls)
    if share > 0.02:
        names = ", ".join(name for name, _ in sums.most_common(3))
        yield (
            f"Allocating and freeing memory takes {format_share(share)} of the call time ({names}): these calls may "
            "also wait for the device."
        )


# What launches remark


def test_replays_and_work_from_before_the_window_are_recomputed(path: Path) -> None:
    raw = raw_of(path)
    said = [
        said for said in remarks_of(launch_sites(attribute(trace_at(path)))) if "replays" in said or "before" in said
    ]
    lost = [launch for launch in raw.launches if launch.correlation not in raw.call_of]
    graphs = {call.correlation for call in raw.calls if is_graph(call)}
    # where the call is missing, a graph is what several launches of one id came from
    several = Counter(launch.correlation for launch in lost)
    replays = [each for each in raw.launches if each.correlation in graphs or several[each.correlation] > 1]
    expected = []
    if replays:
        share = of_time(replays, raw)
        expected.append(f"{len(replays):,} launches{share} come from graph replays, whose kernels have ")
    if lost:
        share = of_time(lost, raw)
        expected.append(f"{len(lost):,} launches{share} were queued before the profiling window. Wait for ")
    assert len(said) == len(expected)
    assert all(one.startswith(other) for one, other in zip(said, expected, strict=True))
    # ids count up: one below all of the calls' is from before these
    first = min(filter(None, raw.call_of), default=0)
    assert all(launch.correlation is not None and launch.correlation < first for launch in lost)


def of_time(some: Sequence[Launch], raw: Raw) -> str:
    return f" ({format_duration(total_ns(some))}, {format_share(total_ns(some) / total_ns(raw.launches))} of the time)"


# What the summary remarks


def check_idle(raw: Raw, found: re.Match[str]) -> str:
    first, last = raw.launches[0].start_ns, max(launch.end_ns for launch in raw.launches)
    idle_ns = last - first - length(times(raw.launches))
    return f"is idle {format_share(idle_ns / (last - first))} of its window ({format_duration(idle_ns)})."


def check_short(raw: Raw, found: re.Match[str]) -> str:
    lasted = [kernel.dur_ns for kernel in raw.kernels]
    share = format_share(sum(each < 5_000 for each in lasted) / len(lasted))
    return f"{share} of {len(lasted):,} kernels take less than 5 μs (median {format_duration(median(lasted))})"


def check_dominant(raw: Raw, found: re.Match[str]) -> str:
    sums = Counter[str]()
    for kernel in raw.kernels:
        sums[kernel.name] += kernel.dur_ns
    ((name, most_ns),) = sums.most_common(1)
    count = sum(kernel.name == name for kernel in raw.kernels)
    share = format_share(most_ns / sums.total())
    return f"takes {share} of the kernel time in {count:,} launch{'' if count == 1 else 'es'}."


def check_graphs(raw: Raw, found: re.Match[str]) -> str:
    together = Counter(kernel.correlation for kernel in raw.kernels)
    sizes = [n for n in together.values() if n > 16]
    calls = "one graph launch" if len(sizes) == 1 else f"{len(sizes):,} graph launches"
    return f"{sum(sizes):,} kernels come from {calls}, so"


def check_before(raw: Raw, found: re.Match[str]) -> str:
    lost = sum(launch.correlation not in raw.call_of for launch in raw.launches)
    return f"{lost:,} launches were queued before the profiling window:"


def check_copies(raw: Raw, found: re.Match[str]) -> str:
    kernels = times(raw.kernels)
    alone_ns = length(times(raw.launches)) - length(kernels)
    first, last = raw.launches[0].start_ns, max(launch.end_ns for launch in raw.launches)
    share = format_share(alone_ns / (last - first))
    return f"{share} of the window of gpu:{raw.launches[0].device} ({format_duration(alone_ns)})."


CHECKS: dict[str, Callable[[Raw, re.Match[str]], str]] = {
    r"^gpu:\d+ is idle ": check_idle,
    r" kernels take less than ": check_short,
    r" of the kernel time in ": check_dominant,
    r" kernels come from ": check_graphs,
    r"^Copies run alone for ": check_copies,
    r" queued before the profiling window": check_before,
}


def test_every_number_that_the_summary_remarks_is_recomputed(path: Path) -> None:
    raw = raw_of(path)
    for remark in summarize(trace_at(path)).notable:
        for pattern, check in CHECKS.items():
            if found := re.search(pattern, remark):
                assert check(raw, found) in remark


def test_the_summary_remarks_on_what_stands_out_in_the_raw_events(path: Path) -> None:
    """The other way round: each thing above its threshold has its sentence."""
    raw = raw_of(path)
    notable = " ".join(summarize(trace_at(path)).notable)
    if not raw.kernels:
        assert notable.startswith("No kernels")
        return
    lost = sum(launch.correlation not in raw.call_of for launch in raw.launches)
    assert ("queued before the profiling window" in notable) == bool(lost)
    sizes = [n for n in Counter(kernel.correlation for kernel in raw.kernels).values() if n > 16]
    assert (" kernels come from " in notable) == bool(sizes)
