"""A run, opened in a job: a store where it lies, anything else as a store that is made of it once, and kept."""

import os
import shutil
from pathlib import Path
from typing import TypedDict

from inferometer.errors import FormatError
from inferometer.file_locks import locked
from inferometer.formats.source import Limits
from inferometer.reports.serve.work.progress import Progress
from inferometer.trace.trace import Trace

STORE = "run.ifm"
_LOCK = ".reading"


class JobRun(TypedDict):
    """A run, as JSON takes it to a job's process.

    `path`: its bytes as Latin-1, since a name need not be UTF-8. `kept`: the folder for what is made of it. `title`:
    what people call it.
    """

    path: str
    kind: str
    kept: str
    title: str
    is_limited: bool


def open_run(run: JobRun, progress: Progress) -> Trace:
    """The run with all its tables.

    Raises:
        InputError: It can't be read, as on the command line.
    """
    from inferometer.formats.opening import open_trace

    progress(f"opening {run['title']}", None)
    if run["kind"] == "store":
        return open_trace(path_of(run))
    store = Path(run["kept"]) / STORE
    with locked(Path(run["kept"]) / _LOCK):  # of two jobs that ask for a run that is new, one reads it
        if not store.exists():
            return _import(run, store, progress)
        try:
            return open_trace(store).under_name(run["title"]) if run["kind"] == "parts" else open_trace(store)
        except FormatError:  # what we kept is damaged: it is made again
            shutil.rmtree(store)
            return _import(run, store, progress)


def is_profile(run: JobRun) -> bool:
    """Whether any format reads it: a file that was found by its name may be something else."""
    from inferometer.formats.base import find_format
    from inferometer.formats.source import Source

    if run["kind"] != "file":
        return True
    try:
        find_format(Source(path_of(run)))
    except FormatError:
        return False
    return True


def text_of(path: Path) -> str:
    """A path as `JobRun` has it."""
    return os.fsencode(path).decode("latin-1")


def path_of(run: JobRun) -> Path:
    """Where a run lies."""
    return Path(os.fsdecode(run["path"].encode("latin-1")))


def _import(run: JobRun, store: Path, progress: Progress) -> Trace:
    from inferometer.formats.opening import import_trace
    from inferometer.record.workers.parts import join_parts

    if run["kind"] == "parts":
        return join_parts(path_of(run), store).under_name(run["title"])

    def on_read(done: int, total: int | None) -> None:
        progress(f"reading {run['title']}", min(1.0, done / total) if total else None)

    limits = Limits() if run["is_limited"] else Limits.none()
    return import_trace(path_of(run), store, limits=limits, progress=on_read)
