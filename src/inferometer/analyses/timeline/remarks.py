"""The time line as sentences: idle time and its cause first, then exposed work, then who keeps the others waiting."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from inferometer.analyses.absent_work import say_no_launches
from inferometer.analyses.timeline.gaps import LAUNCH_GAP_NS
from inferometer.analyses.timeline.ranks import Ranks
from inferometer.analyses.timeline.work import at_place, place_name
from inferometer.names.apis import api_kind
from inferometer.trace.trace import Trace
from inferometer.units import format_duration, format_share

_SAID_SHARE = 0.01  # of the window: less is not worth a sentence
_CAUSE_SHARE = 0.1  # of the idle time
_IMBALANCE = 0.02
_PLACES = 3  # devices to say a sentence about
_WHY = {
    "host_late": "the host was late{waits}: its call for the next work returned only after the device had gone idle",
    "sync": "the host was waiting for the device{waits} when that went idle, and queued the next work only then",
    "dependency": "work had been queued and did not begin; what it waited for, the trace doesn't tell",
    "launch_gap": f"queued work began within {format_duration(LAUNCH_GAP_NS)}",
    "graph": "the device was between the nodes of graph replays",
    "submit": "the device was between the kernels of submits",
    "unknown": "the call for the next work isn't in the file",
    "recorder": "nothing was recorded: that is the recorder's doing",
}


def find_remarks(trace: Trace, devices: pl.DataFrame, gaps: pl.DataFrame, ranks: Ranks) -> Iterator[str]:
    """Sentences about a time line; the frames are those of `Timeline`, `gaps` all of them."""
    if devices.is_empty():
        yield _nothing(trace)
        return
    yield from _idle(devices, gaps)
    yield from _exposed(devices)
    yield from _stragglers(ranks)


def _nothing(trace: Trace) -> str:
    if not trace.launches.head(1).collect().is_empty():
        return "No device work in the selection."
    if "totals" in trace.scope and not trace.totals.head(1).collect().is_empty():
        return "No launches: the file holds times already summed by kernel, which have no time line."
    return say_no_launches(trace)


def _idle(devices: pl.DataFrame, gaps: pl.DataFrame) -> Iterator[str]:
    idlest = devices.filter(pl.col("idle_ns") > _SAID_SHARE * pl.col("window_ns"))
    idlest = idlest.sort(pl.col("idle_ns") / pl.col("window_ns"), descending=True, maintain_order=True)
    if idlest.is_empty():
        yield "No device is idle for more than 1 % of its window."
    for row in idlest.head(_PLACES).iter_rows(named=True):
        share = format_share(row["idle_ns"] / row["window_ns"])
        idle = f"{share} of its window ({format_duration(row['idle_ns'])} of {format_duration(row['window_ns'])})"
        whys = _whys(at_place(gaps, row["rank"], row["device"]))
        yield f"{_place(row, devices)} is idle {idle}. For {'; for '.join(whys)}."
    if idlest.height > _PLACES:
        last = idlest.row(-1, named=True)
        least = format_share(last["idle_ns"] / last["window_ns"])
        yield f"{idlest.height - _PLACES} more: idle for at least {least} of their windows."


def _place(row: Mapping[str, Any], devices: pl.DataFrame) -> str:
    """The device, with its rank where there are several."""
    return place_name(row["rank"] if devices["rank"].n_unique() > 1 else None, row["device"])


def _whys(gaps: pl.DataFrame) -> Iterator[str]:
    """`97.0 % of that the host was late …` for each cause that counts, the largest first."""
    idle_ns = int(gaps["gap_ns"].sum())
    for cause, cause_ns in _largest(gaps, "cause"):
        if cause_ns < _CAUSE_SHARE * idle_ns:
            break
        of = gaps.filter(pl.col("cause") == cause)
        waited = "".join(_waits(of, cause, cause_ns))
        words = _WHY["submit" if cause == "graph" and _are_submits(of) else cause].format(waits=waited)
        yield f"{format_share(cause_ns / idle_ns)} of that {words}"


def _waits(gaps: pl.DataFrame, cause: str, cause_ns: int) -> Iterator[str]:
    """` (after cudaStreamSynchronize)`, or how much of the time that is; nothing where waits count for little."""
    waits = [(str(name), ns) for name, ns in _largest(gaps, "waited_in") if name and ns >= _CAUSE_SHARE * cause_ns]
    when = "after" if cause == "host_late" else "in"
    known = [f"{'' if ns == cause_ns else f'{format_duration(ns)} of it '}{when} {name}" for name, ns in waits]
    if known:
        yield f" ({', '.join(known)})"


def _are_submits(gaps: pl.DataFrame) -> bool:
    """Whether what queued several launches at once was no launch of a graph: `queue.submit` of WebGPU."""
    names = gaps["api"].cast(pl.String).drop_nulls().unique()
    return bool(len(names)) and all(api_kind(name) == "other" for name in names)


def _largest(gaps: pl.DataFrame, by: str) -> list[tuple[str, int]]:
    return gaps.group_by(by).agg(pl.col("gap_ns").sum()).sort("gap_ns", by, descending=[True, False]).rows()


def _exposed(devices: pl.DataFrame) -> Iterator[str]:
    for what, exposed, busy in (
        ("Communication", "exposed_communication_ns", "communication_busy_ns"),
        ("Copies", "exposed_copy_ns", "copy_busy_ns"),
    ):
        rows = devices.filter(pl.col(exposed) > _SAID_SHARE * pl.col("window_ns"))
        if rows.is_empty():
            continue
        row = rows.sort(pl.col(exposed) / pl.col("window_ns"), descending=True, maintain_order=True).row(0, named=True)
        where = _place(row, devices) + ("" if rows.height == 1 else ", the most of all")
        verb = "is" if what == "Communication" else "are"
        yield (
            f"{what} {verb} exposed for {format_duration(row[exposed])} on {where}: "
            f"{format_share(row[exposed] / row['window_ns'])} of its window, {format_share(row[exposed] / row[busy])} "
            f"of its {what.lower()}."
        )


def _stragglers(ranks: Ranks) -> Iterator[str]:
    frame = ranks.frame.filter(pl.col("last") > 0)
    if not frame.is_empty():
        row = frame.sort("kept_waiting_ns", descending=True, maintain_order=True).row(0, named=True)
        yield (
            f"{_place(row, ranks.frame)} arrives last in {format_share(row['last_share'])} of "
            f"{row['compared']:,} collectives; the others wait {format_duration(row['kept_waiting_ns'])} for it in all."
        )
    if ranks.imbalance is not None and ranks.imbalance > _IMBALANCE:
        row = ranks.frame.sort("compute_busy_ns", descending=True, maintain_order=True).row(0, named=True)
        yield (
            f"Compute is uneven: {_place(row, ranks.frame)} computes for "
            f"{format_duration(row['compute_busy_ns'])}, {format_share(ranks.imbalance)} above the mean."
        )
    apart = ranks.collectives.filter(pl.col("not_compared").is_not_null(), pl.col("ranks") > 1)
    if not apart.is_empty():
        n = "1 kind" if apart.height == 1 else f"{apart.height} kinds"
        yield f"{n} of communication can't be matched across ranks; the table of collectives says why."
