"""What stands out in host calls: waits and starved devices first, they cost the most.

Each rule says nothing below its threshold.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.names.apis import ApiKind, api_kind
from inferometer.units import format_duration, format_share

_WAIT_SHARE = 0.1
_STARVED_SHARE = 0.1
_ALLOCATION_SHARE = 0.02
_GRAPH_LAUNCHES = 16  # more device work than this per call is worth a remark


def find_call_remarks(
    calls: pl.DataFrame,
    rows: pl.DataFrame,
    delays: pl.DataFrame,
    queues: pl.DataFrame,
    waits: pl.DataFrame,
    launches: int,
    without_call: int,
) -> Iterator[str]:
    """Sentences about the calls selected; the frames as `call_table` holds them, before rows were picked."""
    yield from _waits(rows, waits)
    yield from _starved(queues)
    yield from _delay(delays)
    yield from _graphs(calls)
    yield from _allocations(rows)
    yield from _without_work(calls, launches)
    yield from _without_call(launches, without_call)


def _waits(rows: pl.DataFrame, waits: pl.DataFrame) -> Iterator[str]:
    total_ns = int(rows["total_ns"].sum())
    for wait in waits.iter_rows(named=True):
        if not total_ns or wait["total_ns"] / total_ns < _WAIT_SHARE:
            continue
        what = "waiting for the device" if wait["kind"] == "synchronize" else "returning only after the copy had ended"
        share = format_share(wait["total_ns"] / total_ns)
        some = f", in {wait['count']:,} of its {wait['of_calls']:,} calls," if wait["count"] < wait["of_calls"] else ""
        yield (
            f"{wait['api']}{some} takes {share} of the call time ({format_duration(wait['total_ns'])}, longest "
            f"{format_duration(wait['max_ns'])}), {what}.{_idle(wait['idle_ns'], wait['idle_share'])}"
        )


def _idle(idle_ns: int | None, idle_share: float | None) -> str:
    if idle_ns is None or idle_share is None:
        return ""
    return f" No device of its process worked for {format_share(idle_share)} of that ({format_duration(idle_ns)})."


def _starved(queues: pl.DataFrame) -> Iterator[str]:
    several = queues["rank"].n_unique() > 1
    for queue in queues.sort("starved_ns", descending=True, maintain_order=True).iter_rows(named=True):
        share = queue["starved_ns"] / queue["window_ns"]
        if share < _STARVED_SHARE:
            continue
        place = (queue["device"] or "unnamed device") + (f" of rank {queue['rank']}" if several else "")
        unknown = queue["launches"] - queue["queued_launches"]
        most = " at most" if unknown else ""
        yield (
            f"{place} is starved for{most} {format_share(share)} of its window "
            f"({format_duration(queue['starved_ns'])}): idle, and the host has queued nothing."
        )


def _delay(delays: pl.DataFrame) -> Iterator[str]:
    every = delays.row(-1, named=True)
    if not every["calls"]:
        return
    yield (
        f"Launch delay: median {format_duration(every['delay_median_ns'])}, p99 "
        f"{format_duration(every['delay_p99_ns'])}, longest {format_duration(every['delay_max_ns'])}."
    )
    if every["delay_min_ns"] < 0:
        early = format_duration(-every["delay_min_ns"])
        yield f"Device work begins up to {early} before its call: the clocks of host and device disagree."


def _graphs(calls: pl.DataFrame) -> Iterator[str]:
    graphs = _of_kind(calls, "graph").filter(pl.col("launches").is_not_null())
    launches = int(graphs["launches"].sum())
    if not graphs.height or launches / graphs.height <= _GRAPH_LAUNCHES:
        return
    if graphs.height == 1:
        yield f"{launches:,} launches come from one graph launch."
    else:
        each = f"{launches / graphs.height:,.0f} each on average"
        yield f"{launches:,} launches come from {graphs.height:,} graph launches, {each}."


def _allocations(rows: pl.DataFrame) -> Iterator[str]:
    total_ns = int(rows["total_ns"].sum())
    found = _of_kind(rows, "allocation").sort("total_ns", descending=True)
    spent_ns = int(found["total_ns"].sum())
    if total_ns and spent_ns / total_ns > _ALLOCATION_SHARE:
        yield (
            f"Allocating and freeing memory takes {format_share(spent_ns / total_ns)} of the call time "
            f"({', '.join(found['api'].head(3))}): these calls may also wait for the device."
        )


def _without_work(calls: pl.DataFrame, launches: int) -> Iterator[str]:
    idle = _of_kind(calls, "launch", "graph").filter(pl.col("launches").is_null()).height
    if idle and not launches:
        yield f"No device work was recorded for {idle:,} launch calls: delays and the queue can't be known."
    elif idle:
        yield (
            f"Launch calls without device work in the file: {idle:,}. They were captured into a graph, or their work "
            "ran after recording ended."
        )


def _without_call(launches: int, without_call: int) -> Iterator[str]:
    if without_call == launches and launches:
        yield "No launch can be tied to a call: delays and the queue can't be known."
    elif without_call:
        yield (
            f"Launches without a call in the file: {without_call:,} of {launches:,}, as a rule queued before the "
            "profiling window. They have no delay and are missing from the queue."
        )


def _of_kind(frame: pl.DataFrame, *kinds: ApiKind) -> pl.DataFrame:
    names = [name for name in frame["api"].unique() if api_kind(name) in kinds]
    return frame.filter(pl.col("api").is_in(names))
