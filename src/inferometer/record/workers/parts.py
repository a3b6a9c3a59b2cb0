"""Parts of one recording, a process each, as one store: rows of all on their common clock, ids kept apart.

Source: `run.ifm.parts/`, a journal for each process. A part that is damaged is left out and counted as
`unreadable_file`; the others are joined. What a killed process wrote before is there.
"""

import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from inferometer.errors import InferometerError, InputError
from inferometer.new_files import clear_left
from inferometer.record.plan import NOTES, PART, part_places
from inferometer.trace.combine import OpenTraces, TracePart, align_clocks, combine_losses, combine_tables
from inferometer.trace.combined_facts import combine_facts
from inferometer.trace.facts import Facts
from inferometer.trace.store import read_store
from inferometer.trace.store_writer import is_store
from inferometer.trace.trace import Trace

_MOST_NOTES = 64 << 10


def find_parts(folder: Path) -> list[Path]:
    """The journals in a folder of parts, in the order of their names; what the program itself put there is none."""
    return sorted(path for path in part_places(folder) if is_store(path) and not path.is_symlink())


def read_remarks(folder: Path) -> list[str]:
    """What the processes' hooks had to say, each line once; of each the first 64 KiB, and of plain files alone."""
    lines: dict[str, None] = {}
    for notes in sorted(folder.glob(f"*{NOTES}")):
        with suppress(OSError):
            lines.update(dict.fromkeys(line for line in _read_notes(notes).splitlines() if line))
    return list(lines)


def _read_notes(path: Path) -> str:
    """Nothing of a link, a pipe or a device, which somebody else put there."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return ""
    with path.open("rb") as file:
        return file.read(_MOST_NOTES).decode("utf-8", "replace")


def join_parts(folder: Path, store: Path, *, force: bool = False, notes: Iterable[str] = ()) -> Trace:
    """Make `store` of the parts in `folder`, which stays; the store, opened.

    Raises:
        InputError: There are no parts that can be read, or something is at `store`.
    """
    parts = find_parts(folder)
    if not parts:
        raise InputError(
            f"{folder}: expected the parts of a recording (*{PART}), found none",
            hint="Give the folder NAME.ifm.parts that an interrupted `inferometer record` left.",
        )
    return _join(parts, store, force=force, notes=[*notes, *read_remarks(folder)])


def join_into(store: Path, folder: Path) -> list[str]:
    """Add the parts in `folder` to `store`, and drop the folder; what there is to say of them."""
    if not folder.is_dir():
        return []
    remarks, parts = read_remarks(folder), find_parts(folder)
    if parts:
        _join([store, *parts], store, force=True, notes=remarks).close()
    drop_parts(folder)
    return remarks


def drop_parts(folder: Path) -> None:
    """Remove a folder of parts, and nothing in it that isn't ours: then it stays."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for half in folder.glob(f".*{PART}.*"):
        clear_left(folder / (half.name[1:].partition(PART)[0] + PART))  # a part that its process had only begun
    for part in find_parts(folder):
        shutil.rmtree(part, ignore_errors=True)
    for notes in folder.glob(f"*{NOTES}"):
        notes.unlink(missing_ok=True)
    with suppress(OSError):  # stays with what isn't ours
        folder.rmdir()


def _join(paths: Sequence[Path], store: Path, *, force: bool, notes: Sequence[str]) -> Trace:
    parts, unreadable = [], []
    for path in paths:
        try:
            trace = read_store(path)
        except InferometerError as error:
            unreadable.append(f"{path.name} can't be read: {error.message}")
            continue
        parts.append(TracePart(trace, path.name, trace.facts.ranks if len(trace.facts.ranks) == 1 else ()))
    if not parts:
        raise InputError(f"{paths[0].parent}: expected parts that can be read, found none; {unreadable[0]}")
    recorded = _recorded([part.trace.facts for part in parts])
    for part in parts:
        part.trace.facts = replace(part.trace.facts, recorded=recorded)  # no contradiction: each recorded its share
    clocks = align_clocks(parts)
    losses = combine_losses(parts)
    for example in unreadable:
        losses.count("unreadable_file", example=example)
    facts = _together(combine_facts(parts, clocks, (), store.name, [*dict.fromkeys(notes), *unreadable]), parts)
    traces = OpenTraces(*(part.trace for part in parts))
    with Trace(facts, combine_tables(parts, clocks), losses, scratch=traces) as joined:
        joined.save(store, force=force)
    return read_store(store)


def _recorded(about: Sequence[Facts]) -> dict[str, bool]:
    """What any process recorded was recorded; all must have come to their end."""
    recorded: dict[str, bool] = {}
    for each in about:
        recorded |= {name: flag or recorded.get(name, False) for name, flag in each.recorded.items()}
    return recorded | {"finished": all(each.recorded.get("finished", True) for each in about)}


def _together(facts: Facts, parts: Sequence[TracePart]) -> Facts:
    """Ranks are those of the processes, not of files; each process is named once."""
    return replace(
        facts,
        ranks=tuple(sorted({rank for part in parts for rank in part.trace.facts.ranks})),
        processes=tuple({(named.process, named.rank): named for named in facts.processes}.values()),
    )
