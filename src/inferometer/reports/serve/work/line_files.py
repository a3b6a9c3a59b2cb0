"""A time line in files: its columns and levels as arrays that are read where a window touches them, and nowhere else.

Parquet would be unpacked by row groups for each window; these are sorted numbers of one width, found by bisection in
mapped memory. They are made once of a run, and kept with its other results.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.timeline.lanes.events import Category, Lane, Lanes, Samples
from inferometer.analyses.timeline.lanes.levels import MOST_LEVEL, Level, Levels, Slices

_COLUMNS = ("row_at", "start_ns", "dur_ns", "name", "tie", "name_category")
_FEWER = 0.5  # of the rows of the level below: others aren't worth their room


class _About(msgspec.Struct):
    """What isn't numbers of events."""

    origin_ns: int
    length_ns: int
    lanes: list[Lane]
    names: list[str]
    categories: list[Category]
    samples: list[tuple[str, str, str]]
    levels: list[int]
    marks: list[dict[str, Any]]


class KeptLevels(Levels):
    """The levels of a folder; in place of one that wasn't worth keeping, the next finer one."""

    def __init__(self, folder: Path) -> None:
        about = msgspec.json.decode((folder / "about.json").read_bytes(), type=_About)
        self.marks: Sequence[Mapping[str, Any]] = about.marks
        columns = {name: _opened(folder / f"{name}.npy") for name in _COLUMNS}
        lanes = Lanes(
            origin_ns=about.origin_ns,
            length_ns=about.length_ns,
            lanes=tuple(about.lanes),
            names=tuple(about.names),
            categories=tuple(about.categories),
            samples=tuple(
                Samples(*words, _opened(folder / f"time-{i}.npy"), _opened(folder / f"value-{i}.npy"))
                for i, words in enumerate(about.samples)
            ),
            **columns,
        )
        super().__init__(lanes)
        for level in about.levels:
            single, slices = _opened(folder / f"single-{level}.npy"), _opened(folder / f"slices-{level}.npy")
            self._known[level] = Level(level, single, Slices(*slices))

    def at(self, level: int) -> Level:
        """The coarsest that is kept and no coarser than this."""
        return self._known[max(known for known in self._known if known <= max(level, 0))]


def write_levels(levels: Levels, marks: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write a time line and the levels that are worth keeping into an empty folder."""
    lanes = levels.lanes
    for name in _COLUMNS:
        np.save(folder / f"{name}.npy", getattr(lanes, name))
    for i, each in enumerate(lanes.samples):
        np.save(folder / f"time-{i}.npy", each.time_ns)
        np.save(folder / f"value-{i}.npy", each.value)
    kept, least = [], float(len(lanes.start_ns))
    for level in range(1, MOST_LEVEL + 1):
        found = levels.at(level)
        rows = len(found.single) + len(found.slices.row)
        if rows <= _FEWER * least:
            np.save(folder / f"single-{level}.npy", found.single)
            np.save(folder / f"slices-{level}.npy", np.stack(found.slices.columns()))
            kept.append(level)
            least = rows
        if not len(found.single) and rows <= len(lanes.row_at) * len(lanes.categories):
            break  # one slice for all
    samples = [(each.group, each.name, each.unit) for each in lanes.samples]
    about = _About(
        lanes.origin_ns,
        lanes.length_ns,
        list(lanes.lanes),
        list(lanes.names),
        list(lanes.categories),
        samples,
        kept,
        [dict(mark) for mark in marks],
    )
    (folder / "about.json").write_bytes(msgspec.json.encode(about))


def _opened(file: Path) -> NDArray[Any]:
    """Mapped, where there is something to map."""
    array: NDArray[Any] = np.load(file, mmap_mode="r" if file.stat().st_size > 1 << 16 else None, allow_pickle=False)
    return array
