"""The strip: a time line in text, one line per device or stream, one cell a slice of the common window.

Each slice's time goes to compute, to communication and copies that nothing hides, and to idle: exact, so that a line's
parts add up to the window. A cell shows the sort of work that takes most of its busy time, and how busy it is.
"""

from itertools import accumulate
from typing import Any

import msgspec
import numpy as np
import polars as pl

from inferometer.analyses.cover import Cover
from inferometer.analyses.intervals import Times
from inferometer.analyses.timeline.work import PLACE, SORTS, Work
from inferometer.units import format_duration

PARTS = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns")


class Glyphs(msgspec.Struct, frozen=True):
    """How cells look. `compute` goes from hardly busy to busy throughout; the others are (under half busy, more)."""

    compute: str
    communication: str = "xX"
    copy: str = "mM"
    idle: str = "."

    def legend(self) -> str:
        """One sentence that explains the cells."""
        return (
            f"{self.compute} compute, by how busy the slice is; {self.communication[1]} communication, "
            f"{self.copy[1]} copies: exposed for longer than compute runs (small: under half busy); {self.idle} idle"
        )


BLOCKS = Glyphs("▁▂▃▄▅▆▇█", idle="·")
ASCII = Glyphs("-=#")


class Strip(msgspec.Struct, frozen=True):
    """Time of each lane in each slice; `edges_ns` bound the slices.

    `lanes`: `rank`, `device`, `stream`, `whole` (the device, all streams together) and lists with a value a slice:
    `compute_ns`, `exposed_communication_ns`, `exposed_copy_ns`, `idle_ns`.
    """

    edges_ns: tuple[int, ...]
    lanes: pl.DataFrame

    def as_json(self) -> dict[str, Any]:
        return {"edges_ns": list(self.edges_ns), "lanes": self.lanes.to_dicts()}

    def drawn(self, glyphs: Glyphs) -> list[str]:
        """Each lane as text, one character a slice."""
        lists = self.lanes.select(*PARTS, "idle_ns").rows()
        return ["".join(_cell(parts, glyphs) for parts in zip(*lane, strict=True)) for lane in lists]

    def axis(self, origin_ns: int) -> str:
        """First, middle and last time since `origin_ns`, as far as they fit over the cells."""
        width = len(self.edges_ns) - 1
        first, middle, last = (format_duration(self.edges_ns[i] - origin_ns) for i in (0, width // 2, width))
        left = first.ljust(width // 2) + f"'{middle}"  # the tick stands over the first cell of the second half
        if len(first) < width // 2 and len(left) + len(last) < width:
            return left + last.rjust(width - len(left))
        return f"{first} {last}" if len(first) + len(last) >= width else first + last.rjust(width - len(first))


def cut_strip(work: Work, cut: pl.DataFrame, width: int) -> Strip:
    """The common window in `width` slices, or fewer where it has fewer nanoseconds; no lanes for a window of 0 ns.

    Args:
        work: Gives the places and their windows.
        cut: Its launches cut to the window, `Work.cut`.
        width: Slices.
    """
    if work.places.is_empty():
        return Strip((), _lanes([]))
    from_ns, to_ns = (work.places["from_ns"].to_list(), work.places["to_ns"].to_list())
    first, length = min(from_ns), max(to_ns) - min(from_ns)
    width = min(width, length)
    if width < 1:
        return Strip((), _lanes([]))
    edges = [first + i * length // width for i in range(width + 1)]
    at = np.array(edges, np.int64)
    lanes = []
    by_place = cut.select("place", "stream", "sort", "start_ns", "end_ns").partition_by(
        "place", as_dict=True, maintain_order=True
    )
    for row in work.places.iter_rows(named=True):
        launches = by_place.get((row["place"],), cut.select("stream", "sort", "start_ns", "end_ns").clear())
        place = {name: row[name] for name in PLACE}
        lanes.append({**place, "stream": None, "whole": True, **_slices(launches, at)})
        streams = launches.partition_by("stream", as_dict=True, maintain_order=True)
        if len(streams) > 1:
            for (stream,), part in sorted(streams.items(), key=_stream_order):
                lanes.append({**place, "stream": stream, "whole": False, **_slices(part, at)})
    return Strip(tuple(edges), _lanes(lanes))


def _stream_order(item: tuple[tuple[Any, ...], pl.DataFrame]) -> tuple[bool, int]:
    stream = item[0][0]
    return (stream is None, stream or 0)


def _lanes(lanes: list[dict[str, Any]]) -> pl.DataFrame:
    place = {"rank": pl.Int64(), "device": pl.String(), "stream": pl.Int64(), "whole": pl.Boolean()}
    return pl.DataFrame(lanes, schema=place | dict.fromkeys((*PARTS, "idle_ns"), pl.List(pl.Int64)))


def _slices(launches: pl.DataFrame, edges: Times) -> dict[str, list[int]]:
    """Time of each part in each slice: what compute, then communication, then copies add to the union of the former."""
    unions = [np.zeros(len(edges) - 1, np.int64)]
    for sorts in accumulate(SORTS, lambda done, sort: f"{done} {sort}"):
        of = launches.filter(pl.col("sort").is_in(sorts.split()))
        unions.append(np.diff(Cover.of(of["start_ns"].to_numpy(), of["end_ns"].to_numpy()).before(edges)))
    parts = {part: (unions[i + 1] - unions[i]).tolist() for i, part in enumerate(PARTS)}
    return {**parts, "idle_ns": (np.diff(edges) - unions[-1]).tolist()}


def _cell(parts: tuple[int, int, int, int], glyphs: Glyphs) -> str:
    compute, communication, copy, idle = parts
    busy = compute + communication + copy
    if not busy:
        return glyphs.idle
    if compute >= max(communication, copy):
        levels = len(glyphs.compute)
        return glyphs.compute[-(-busy * levels // (busy + idle)) - 1]
    letters = glyphs.communication if communication >= copy else glyphs.copy
    return letters[2 * busy >= busy + idle]
