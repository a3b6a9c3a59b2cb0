"""One window's file as tables: read by the Kineto reader, and kept as files that another process can pick up.

Nothing is joined or moved here: times are the profiler's, ns since 1970.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.formats.kineto import FORMAT
from inferometer.formats.kineto.reader import read_as_written
from inferometer.formats.reading import read_source
from inferometer.formats.source import Source
from inferometer.trace.facts import Device

TABLES = frozenset({"launches", "collectives", "calls", "ops", "frames", "spans"})
_ABOUT = "about.json"
_EVERY_WINDOW = {"launch_before_window", "text_id"}  # remarks on a file by itself: windows follow each other


class Lost(msgspec.Struct, frozen=True):
    """As `trace.losses.Loss`: what the reader couldn't read, or mended."""

    name: str
    count: int
    example: str | None = None


class About(msgspec.Struct, frozen=True):
    """What a window's file says of itself, and what was lost of it."""

    devices: tuple[Device, ...] = ()
    versions: dict[str, str] = {}
    losses: tuple[Lost, ...] = ()


@dataclass(frozen=True)
class WindowRows:
    """The tables of one window, times in ns since 1970 by the profiler's clock."""

    frames: Mapping[str, pl.DataFrame]
    about: About = field(default_factory=About)


def read_window(path: Path) -> WindowRows:
    """Read a window's file (Kineto JSON).

    Raises:
        InputError: It can't be read at all.
    """
    with read_source(Source(path), replace(FORMAT, read=read_as_written), TABLES) as trace:
        base = trace.facts.clock_base_ns or 0
        frames = {name: trace.tables[name].with_columns(pl.col("start_ns") + base).collect() for name in TABLES}
        losses = tuple(
            Lost(loss.name, loss.count, loss.example) for loss in trace.losses if loss.name not in _EVERY_WINDOW
        )
        about = About(trace.facts.devices, trace.facts.versions, losses)
    return WindowRows({name: frame for name, frame in frames.items() if frame.height}, about)


def save_rows(rows: WindowRows, folder: Path) -> None:
    """Write them to `folder`, which is there."""
    for name, frame in rows.frames.items():
        frame.write_ipc(folder / f"{name}.arrow")
    (folder / _ABOUT).write_bytes(msgspec.json.encode(rows.about))


def load_rows(folder: Path) -> WindowRows:
    """Read back what `save_rows` wrote.

    Raises:
        OSError: The files aren't there.
    """
    about = msgspec.json.decode((folder / _ABOUT).read_bytes(), type=About)
    files = {name: folder / f"{name}.arrow" for name in sorted(TABLES)}
    return WindowRows(
        {name: pl.read_ipc(BytesIO(file.read_bytes())) for name, file in files.items() if file.exists()}, about
    )
