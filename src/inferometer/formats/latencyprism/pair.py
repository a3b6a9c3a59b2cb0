"""Which files are one run: the two of a folder, or the counters next to the times that were named."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from inferometer.errors import InputError
from inferometer.formats.source import Source

FileKind = Literal["perf_data", "counters_data"]
KINDS: tuple[FileKind, FileKind] = ("perf_data", "counters_data")
_ENDINGS = (".csv", ".csv.gz")
_NAME = re.compile(r"(?P<before>.*?)(?P<kind>perf_data|counters_data)(?P<after>.*?)\.csv(?:\.gz)?")
_NUMBER = re.compile(r"\d")
_MARKS: Mapping[FileKind, tuple[str, frozenset[str]]] = {
    "perf_data": ("function_name", frozenset({"beta_pct", "mu_pct", "anchor_dur_us", "interpolation_status"})),
    "counters_data": ("counter_name", frozenset({"timestamp", "value", "hostname"})),
}


def kind_of_header(head: bytes) -> FileKind | None:
    """Which of the two files begins like this: it has the column of names, and one more of its own."""
    titles = titles_of(head)
    for kind, (name, others) in _MARKS.items():
        if name in titles and not others.isdisjoint(titles):
            return kind
    return None


def titles_of(head: bytes) -> Sequence[str]:
    """The titles of the columns; none where the first line isn't text."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").partition(b"\n")[0]
    try:
        return [title.strip() for title in next(csv.reader([line.decode().rstrip("\r")]), [])]
    except (UnicodeDecodeError, csv.Error):
        return []


def is_run(folder: Path) -> bool:
    """Whether a file of a run, by its name and its first line, lies in `folder`."""
    paths = [path for files in find_files(folder).values() for each in files.values() for path in each]
    return any(kind_of_header(_head(path)) for path in paths)


def find_files(folder: Path) -> dict[str, dict[FileKind, Sequence[Path]]]:
    """Files of each run in `folder` by kind, plain before packed. Runs are distinguished by the rest of the names."""
    found: dict[str, dict[FileKind, Sequence[Path]]] = {}
    try:
        paths = sorted(folder.iterdir())
    except OSError:  # opening it says what is wrong
        return {}
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name and path.is_file():
            kind = next(kind for kind in KINDS if kind == name["kind"])
            files = found.setdefault(name["before"] + name["after"], {})
            files[kind] = [*files.get(kind, ()), path]
    return {"": found[""]} if "" in found else found


def find_sibling(path: Path, kind: FileKind) -> Path | None:
    """The other file of the run that `path` is of, next to it: `a_perf_data.csv` has `a_counters_data.csv`."""
    name = _NAME.fullmatch(path.name)
    if name is None or name["kind"] != kind:
        return None
    other = name["before"] + next(each for each in KINDS if each != kind) + name["after"]
    return next((path.with_name(other + end) for end in _ENDINGS if path.with_name(other + end).is_file()), None)


def find_runs(folder: Path) -> Sequence[str]:
    """Names of the folders in `folder` that are runs, where there are several and they aren't numbered like ranks."""
    try:
        runs = sorted(path.name for path in folder.iterdir() if path.is_dir() and is_run(path))
    except OSError:  # opening it says what is wrong
        return []
    return runs if len(runs) > 1 and not all(_NUMBER.search(name) for name in runs) else []


def _head(path: Path) -> bytes:
    try:
        return Source(path).head
    except InputError:
        return b""
