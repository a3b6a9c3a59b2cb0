"""Finds the files of a run, reads each, and says what the run is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from inferometer.errors import FormatError, InputError, printable
from inferometer.formats.held import hold
from inferometer.formats.latencyprism.cells import Cells, read_cells
from inferometer.formats.latencyprism.pair import KINDS, FileKind, find_files, find_runs, find_sibling, kind_of_header
from inferometer.formats.latencyprism.perf import read_perf
from inferometer.formats.latencyprism.samples import read_samples
from inferometer.formats.latencyprism.values import clean, read_device
from inferometer.formats.source import Source
from inferometer.trace.combined_facts import listed
from inferometer.trace.facts import Device, Facts
from inferometer.trace.losses import Losses

if TYPE_CHECKING:
    from inferometer.trace.builder import TraceBuilder

_TABLES: Mapping[FileKind, Sequence[str]] = {
    "perf_data": ("function_times", "function_metrics", "steps"),
    "counters_data": ("counters",),
}
_READ: Mapping[FileKind, Callable[[Cells, str, "TraceBuilder"], None]] = {
    "perf_data": read_perf,
    "counters_data": read_samples,
}


@dataclass(frozen=True)
class _Files:
    """The files of a run by their kind; `notes` for the facts, `twins` are copies that are left out."""

    sources: Mapping[FileKind, Source]
    notes: tuple[str, ...] = ()
    twins: Sequence[tuple[FileKind, str]] = ()


def read(source: Source, out: "TraceBuilder") -> Facts:
    """Read the run that `source` is or is part of.

    Raises:
        FormatError: It is several runs; none of its files has the columns that are needed, or a row.
    """
    files = _files_of(source)
    about: dict[FileKind, pl.DataFrame] = {}
    problems: dict[FileKind, InputError] = {}
    for kind, file in files.sources.items():
        if not out.wants(*_TABLES[kind]) and any(frame.height for frame in about.values()):
            continue
        try:
            cells = _cells(file, kind, out)
            _READ[kind](cells, file.name, out)
        except InputError as error:
            problems[kind] = error
            continue
        about[kind] = cells.frame
        _count_if(out, kind, "empty_table", 0 if cells.frame.height else 1, file.name)
    named = None if source.is_folder else kind_of_header(source.head)
    if named in problems:
        raise problems[named]
    if not any(frame.height for frame in about.values()):
        raise next(iter(problems.values()), FormatError(f"{source.name}: expected rows, found none below the titles"))
    for kind in KINDS:
        _say_what_is_missing(kind, files, problems, out)
    first = next(iter(about.values()))  # whichever tables are asked for, the facts are the same
    return Facts(
        format="latencyprism",
        source=source.name,
        tool="LatencyPrism",
        hosts=_distinct(first, "hostname"),
        devices=tuple(Device(device) for device in _distinct(first, "device") if device != "host"),
        notes=files.notes,
    )


def _files_of(source: Source) -> _Files:
    if source.path and source.is_folder:
        return _files_in(source, source.path)
    kind = kind_of_header(source.head)
    if kind is None:
        raise FormatError(
            f"{source.name}: expected the titles of perf_data.csv or counters_data.csv, found {source.head[:40]!r}",
            hint="Name another format with --format.",
        )
    sibling = find_sibling(source.path, kind) if source.path and kind == "perf_data" else None
    if sibling is None:
        return _Files({kind: source})
    other_file = Source(sibling, limits=source.limits)
    notes = (f"{printable(sibling.name)} in the same folder was read too.",)
    found: dict[FileKind, Source] = {kind: source, next(each for each in KINDS if each != kind): other_file}
    return _Files({each: found[each] for each in KINDS}, notes)


def _files_in(source: Source, folder: Path) -> _Files:
    runs = find_files(folder)
    if len(runs) != 1:
        names = [path.name for files in runs.values() for paths in files.values() for path in paths]
        found = listed([*map(printable, names or find_runs(folder))])
        raise FormatError(
            f"{source.name}: expected one run, found several: {found}",
            hint="Name one of them, or compare two: inferometer compare FOLDER/normal FOLDER/abnormal",
        )
    (pair,) = runs.values()
    twins = [(kind, printable(path.name)) for kind, paths in pair.items() for path in paths[1:]]
    notes = [f"{name} was not read: the same file lies next to it unpacked." for _, name in twins]
    if others := _others(folder, {path.name for paths in pair.values() for path in paths}):
        notes.append(f"Other files in the folder were not read: {listed(others)}.")
    sources = {kind: Source(pair[kind][0], limits=source.limits) for kind in KINDS if kind in pair}
    return _Files(sources, tuple(notes), twins)


def _others(folder: Path, mine: set[str]) -> Sequence[str]:
    try:
        return sorted(printable(path.name) for path in folder.iterdir() if path.name not in mine)
    except OSError:  # a folder whose files can be opened, but not listed
        return []


def _cells(file: Source, kind: FileKind, out: "TraceBuilder") -> Cells:
    scratch = Losses()
    held = hold(file)
    cells = read_cells(held.data, file.name, scratch)
    if held.damage:
        _count_if(out, kind, "broken_compression", 1, f"{file.name}: {held.damage}")
    for loss in scratch:
        _count_if(out, kind, loss.name, loss.count, loss.example)
    return cells


def _say_what_is_missing(
    kind: FileKind, files: _Files, problems: Mapping[FileKind, InputError], out: "TraceBuilder"
) -> None:
    if kind in problems:
        _count_if(out, kind, "unreadable_file", 1, problems[kind].message)
    elif kind not in files.sources:
        _count_if(out, kind, "missing_file", 1, f"{kind}.csv")
    for twin_kind, name in files.twins:
        if twin_kind == kind:
            _count_if(out, kind, "same_recording", 1, name)


def _count_if(out: "TraceBuilder", kind: FileKind, name: str, n: int, example: str | None) -> None:
    """Count a loss of a file where a table of it was asked for."""
    if out.wants(*_TABLES[kind]):
        out.losses.count(name, n, example=example)


def _distinct(frame: pl.DataFrame, title: str) -> tuple[str, ...]:
    if title not in frame.columns:
        return ()
    text = clean(pl.col(title))
    found = frame.select((read_device(text) if title == "device" else text).unique().drop_nulls())
    return tuple(found[title].sort())
