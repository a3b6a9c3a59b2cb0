"""Traces of all ranks and the counters that were sampled next to them, as one store on one clock.

Kineto files say at which time since 1970 their clock begins, a recording's clock knows that of its own; so times are
moved to the earlier of the two (`trace/combine.py`). Nothing is fitted: what the system's clock drifted against the
monotonic one during the recording, and device work outside of the recording's window, are reported.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from msgspec.structs import replace

from inferometer.errors import InputError, printable
from inferometer.formats.opening import open_trace
from inferometer.formats.ranks.files import Reading
from inferometer.formats.ranks.reading import open_ranks
from inferometer.record.server.files import Found
from inferometer.trace.combine import Clock, TracePart, align_clocks, combine_losses, combine_tables, scope_of
from inferometer.trace.facts import Facts
from inferometer.trace.store import read_store
from inferometer.trace.store_writer import StoreFolder, write_manifest, write_tables
from inferometer.trace.trace import Trace
from inferometer.units import format_duration

_SLACK_NS = 1_000_000_000  # profilers begin and end a little around the server's answers


@dataclass(frozen=True)
class Window:
    """When the profiler was asked to start and when it had stopped, ns since 1970 by this machine's clock."""

    began_ns: int
    ended_ns: int


def join_store(store: Path, found: Found, window: Window) -> tuple[tuple[int, str], ...]:
    """Replace `store`, which holds counters, by one that holds the traces `found`, too. Returns rank and file of each.

    Raises:
        InputError: None of the files can be read, or two are of one rank. The store is then as it was.
    """
    with ExitStack() as opened:
        target = opened.enter_context(StoreFolder(store, force=True))
        links = Path(opened.enter_context(TemporaryDirectory(prefix="inferometer-")))
        ranks = open_ranks(_linked(found.ranks, links / "ranks"), Reading(spill_to=target))
        opened.callback(ranks.close)
        parts = [TracePart(ranks, store.name, ranks.facts.ranks), TracePart(read_store(store), store.name, ())]
        errors = {}
        for path in found.frontends:
            try:
                parts.append(TracePart(opened.enter_context(open_trace(path)), path.name, ()))
            except InputError as error:
                errors[path.name] = error.message
        clocks = align_clocks(parts)
        losses = combine_losses(parts)
        for name, message in errors.items():
            losses.count("unreadable_file", category=printable(name), example=message)
        if any(clock.base_ns is None and clock.has_times for clock in clocks):
            losses.count("no_common_clock", example=store.name)
        facts = _facts(parts, clocks, window)
        trace = Trace(facts, combine_tables(parts, clocks), losses, scope=scope_of(parts))
        written = write_tables(trace.tables, target)
        write_manifest(target, facts, losses, written)
    return tuple((file.rank, file.file) for file in facts.rank_files)


def _linked(files: Sequence[Path], folder: Path) -> Path:
    """`folder` with links to `files`, since older recordings may lie next to them; names that repeat get a number."""
    folder.mkdir()
    for i, path in enumerate(files):
        link = folder / path.name
        (folder / f"{i}-{path.name}" if link.is_symlink() else link).symlink_to(path.absolute())
    return folder


def _facts(parts: Sequence[TracePart], clocks: Sequence[Clock], window: Window) -> Facts:
    """Those of the ranks, with what the recording and the API servers add."""
    ranks, counters = parts[0].trace.facts, parts[1].trace.facts
    others = [part.trace.facts for part in parts[2:]]
    bases = [clock.base_ns for clock in clocks if clock.base_ns is not None]
    known = {device.device for device in ranks.devices}
    stated = [f"{part.file} is of the server's front end: its rows have no rank." for part in parts[2:]]
    base_ns = min(bases, default=0) or None
    return replace(
        ranks,
        source=counters.source,
        model=counters.model or ranks.model,
        hosts=tuple(dict.fromkeys((*ranks.hosts, *counters.hosts))),
        devices=(*ranks.devices, *(device for device in counters.devices if device.device not in known)),
        processes=(*ranks.processes, *(name for each in (*others, counters) for name in each.processes)),
        threads=(*ranks.threads, *(name for each in (*others, counters) for name in each.threads)),
        clock_base_ns=base_ns,
        recorded={**ranks.recorded, **counters.recorded},
        versions={**ranks.versions, **counters.versions},
        engine_metrics={**ranks.engine_metrics, **counters.engine_metrics},
        notes=(*ranks.notes, *stated, *_remarks(parts, clocks, window), *counters.notes),
        rank_files=tuple(replace(file, shift_ns=file.shift_ns + clocks[0].shift_ns) for file in ranks.rank_files),
    )


def _remarks(parts: Sequence[TracePart], clocks: Sequence[Clock], window: Window) -> list[str]:
    """Whether the traces' clock agrees with this machine's: device work lies where it was recorded."""
    base_ns = clocks[0].base_ns
    if base_ns is None:
        return ["The traces say nothing of the time since 1970: counters and launches can't be laid together."]
    times = parts[0].trace.launches.select(
        start_ns=pl.col("start_ns").min(), end_ns=(pl.col("start_ns") + pl.col("dur_ns")).max()
    )
    start_ns, end_ns = times.collect().row(0)
    if start_ns is None:
        return []
    early, late = window.began_ns - (start_ns + base_ns), end_ns + base_ns - window.ended_ns
    off_ns, where = max((early, "before the profiler was started"), (late, "after it had stopped"))
    if off_ns <= _SLACK_NS:
        return []
    apart = f"Device work lies up to {format_duration(off_ns)} {where}, by this machine's clock"
    return [f"{apart}: the server's clock is another, so counters and launches don't lie side by side."]
