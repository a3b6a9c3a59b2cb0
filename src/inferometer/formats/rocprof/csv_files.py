"""Which CSV files of rocprofv3 there are, what each holds, and which process it is of.

Files are called `PID_kernel_trace.csv`, in a folder or in folders of hosts below it; one exists only if it has rows.
The header says what is in a file, in any capitals.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from inferometer.formats.text_lines import decode_head

_NAME = re.compile(r"(?:(?:.*_)?(?P<pid>\d{1,18})_|(?:.*_)?)(?:\w+_trace|counter_collection|agent_info)\.csv(?:\.gz)?")
_SIGN = re.compile(r"(?:.*_)?(?:kernel|hip_api|hsa_api|memory_copy|marker_api)_trace\.csv(?:\.gz)?")
_KINDS = {  # columns that a header must have, in lower case
    "counters": {"counter_name", "counter_value", "dispatch_id"},
    "kernels": {"kind", "dispatch_id", "kernel_name", "start_timestamp", "end_timestamp"},
    "calls": {"domain", "function", "start_timestamp", "end_timestamp"},
    "copies": {"kind", "direction", "start_timestamp", "end_timestamp"},
    "agents": {"node_id", "agent_type", "name"},
}


class CsvFile(msgspec.Struct, frozen=True):
    """One file; `process` as its name says."""

    path: Path
    process: int | None


def kind_of_header(line: str) -> str | None:
    """What the rows below such a header are; None for none of rocprofv3's."""
    columns = {name.lower() for name in read_header(line)}
    return next((kind for kind, needed in _KINDS.items() if needed <= columns), None)


def read_header(line: str) -> Sequence[str]:
    """Names of columns."""
    try:
        return next(csv.reader([line.strip()]), [])
    except csv.Error:
        return []


def is_csv(head: bytes) -> bool:
    """Whether a file begins with a header of device work, calls or counters."""
    return kind_of_header(decode_head(head).partition("\n")[0][:10_000]) not in (None, "agents")


def is_run(folder: Path) -> bool:
    """Whether a folder holds such files, by their names."""
    return any(_SIGN.fullmatch(path.name) for path in _listed(folder))


def find_files(path: Path) -> list[CsvFile]:
    """The files of a folder in the order of their names; or the file itself."""
    paths = [path] if path.is_file() else [each for each in _listed(path) if _NAME.fullmatch(each.name)]
    return [CsvFile(each, _process(each.name)) for each in paths]


def _process(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    return int(match["pid"]) if match and match["pid"] else None


def _listed(folder: Path) -> Iterator[Path]:
    """Files of a folder and of those in it."""
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return
    for path in inside:
        if path.is_file():
            yield path
        elif path.is_dir() and not path.name.startswith(".") and path.suffix != ".ifm":
            yield from (each for each in sorted(path.iterdir()) if each.is_file())
