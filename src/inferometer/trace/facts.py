"""What a file says about itself: tool, devices, processes, clock. Absent is None or empty, never guessed."""

import re
from typing import Any, Literal

import msgspec

NumberedBy = Literal["file", "name", "position"]


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device as the file describes it. `device` is the text used in the tables (`gpu:0`).

    `rank` is set where ranks describe different devices under one text; then each has its own. `target` is what code is
    compiled for, where the file says so (`gfx950`).
    """

    device: str
    name: str | None = None
    memory_bytes: int | None = None
    multiprocessors: int | None = None
    compute_capability: str | None = None
    warp_size: int | None = None
    rank: int | None = None
    target: str | None = None


class NamedId(msgspec.Struct, frozen=True, omit_defaults=True):
    """The name of a process, or of a thread of it. `label` is the file's further word for it (`GPU 0`).

    `rank` is set where several ranks were opened as one trace: process numbers may repeat among them.
    """

    process: int | None
    thread: int | None = None
    name: str | None = None
    label: str | None = None
    rank: int | None = None


class RankFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file of a folder of ranks: who it is, and how its clock was tied to the others'.

    `numbered_by`: who gave the rank: the `file` itself, its `name`, or its `position` in the order of names.
    `clock_base_ns`: as in `Facts`; 0 when its times are absolute, None when its clock can't be compared with others.
    `shift_ns`: what was added to its times. `skew_ns`: by how much its collectives seem to end later than those of the
    lowest rank that has the same ones (median over `collectives` of them; `skew_spread_ns` is the median distance from
    that). An estimate, never applied; it holds the clocks' difference and what the ranks did differently.
    """

    rank: int
    file: str
    format: str
    numbered_by: NumberedBy
    clock_base_ns: int | None = None
    shift_ns: int = 0
    skew_ns: int | None = None
    skew_spread_ns: int | None = None
    collectives: int = 0


class PrintedTotals(msgspec.Struct, frozen=True):
    """What a source printed as totals of its tables next to what the rows of these make, each rounded by itself.

    `rows_ns` and `totals_ns` are sums over all `reports`. `most_ns`: the most that rounding of all `rows` and totals
    may come to; `alone_ns`: one standard deviation of what it comes to where each is rounded independently.
    """

    reports: int
    rows: int
    rows_ns: int
    totals_ns: int
    most_ns: float
    alone_ns: float


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts of a trace.

    `clock_base_ns`: add to a time of the tables to get ns since 1970; None when times are already absolute or the
    source doesn't say. `recorded`: what the profiler was asked to record (`shapes`, `stacks`, …); of our own recordings
    also whether they `finished`. `versions`: driver and runtime versions under the source's names. `settings`: what the
    program had set that its speed may hang on (`torch threads`). `rank_files`: of a folder of ranks, one per rank.
    `other_events`: of a file without launches, the number of events of each category
    that is not the host's: what the profiler recorded of a device instead. `printed_totals`: of a log whose reports
    have totals that their rows make up, but for rounding. `redacted`: of a copy to share, how many
    different texts of each kind were blanked.
    """

    format: str
    source: str
    tool: str | None = None
    tool_version: str | None = None
    framework: str | None = None
    model: str | None = None
    hosts: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    ranks: tuple[int, ...] = ()
    world_size: int | None = None
    processes: tuple[NamedId, ...] = ()
    threads: tuple[NamedId, ...] = ()
    clock_base_ns: int | None = None
    recorded: dict[str, bool] = {}
    versions: dict[str, str] = {}
    settings: dict[str, str] = {}
    engine_metrics: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    rank_files: tuple[RankFile, ...] = ()
    other_events: dict[str, int] = {}
    printed_totals: PrintedTotals | None = None
    redacted: dict[str, int] | None = None


def without_folders(source: str) -> str:
    """The last part of a path: what a file to share says of where it came from."""
    return re.split(r"[\\/]", source.rstrip("\\/"))[-1] or source
