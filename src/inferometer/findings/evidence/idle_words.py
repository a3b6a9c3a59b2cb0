"""What a finding about idle time says: the end of its title, its evidence, its next step."""

from collections.abc import Iterator
from typing import Final

import msgspec
import polars as pl

from inferometer.analyses.timeline.host_activity import CALLS, HostActivity
from inferometer.findings.evidence.idle_kinds import count_gaps
from inferometer.findings.evidence.places import BusiestDevice
from inferometer.units import format_duration, format_share

MOSTLY: Final = 0.5
_SAID_SHARE: Final = 0.1  # of the time: less is not worth a clause
_APIS: Final = 2  # names of calls in a clause
_DOING: Final = {
    "capture": "capturing a graph",
    "compiling": "in a compiler or tuner",
    "wait": "in calls that wait for the device",
    "copy": "in copy calls",
    "slow_call": "in calls of 1 ms or longer that neither wait nor copy",
    "allocation": "in calls that allocate or free memory",
    "launch": "in launch calls",
    "call": "in other driver and runtime calls",
    "op": "in ops outside of driver and runtime calls",
    "frame": "in Python outside of ops",
    "unrecorded": "outside of all that was recorded",
}

_BY_RANGES: Final = {
    ("op", "here"): "in ranges of the framework's own, outside of driver and runtime calls",
    ("unrecorded", "elsewhere"): (
        "outside of driver and runtime calls, where ranges and Python functions of this file can't be tied to it: they "
        "have threads of other numbers"
    ),
}


class Words(msgspec.Struct, frozen=True):
    """`title` goes on after the device's name, with `{share}` in it."""

    title: str
    evidence: tuple[str, ...]
    next: str


def describe_size(place: BusiestDevice, gaps: pl.DataFrame) -> str:
    """`8.730 ms of 8.912 ms in 14 gaps, the longest 6.633 ms`."""
    count, longest_ns = count_gaps(gaps)
    longest = f", the longest {format_duration(longest_ns)}" if count > 1 else ""
    of = f"{format_duration(int(gaps['gap_ns'].sum()))} of {format_duration(place.window_ns)}"
    return f"{of} in {count:,} {'gap' if count == 1 else 'gaps'}{longest}"


def describe_activity(activity: HostActivity, whose: str = "the launching thread") -> Iterator[str]:
    """`Of these 15.972 s, the launching thread spent 12.990 s (81.3 %) in …`; nothing where nothing stands out."""
    if not activity.total_ns:
        return
    clauses = []
    for part, time_ns in activity.parts.iter_rows():
        if time_ns < _SAID_SHARE * activity.total_ns:
            break
        share = format_share(time_ns / activity.total_ns)
        doing = _BY_RANGES.get((part, activity.ranges), _DOING[part])
        clauses.append(f"{format_duration(time_ns)} ({share}) {doing}{_apis(activity, part)}")
    if clauses:
        yield f"Of these {format_duration(activity.total_ns)}, {whose} spent {'; '.join(clauses)}."


def _apis(activity: HostActivity, part: str) -> str:
    """`: cudaFree 7.999 s in 3 calls, …`, where the part is calls."""
    if part not in CALLS:
        return ""
    rows = [row for row in activity.calls.iter_rows(named=True) if row["activity"] == part][:_APIS]
    known = [
        f"{row['api']} {format_duration(row['time_ns'])} in {row['count']:,} {'call' if row['count'] == 1 else 'calls'}"
        for row in rows
    ]
    return f": {', '.join(known)}" if known else ""
