r"""An excerpt of a time line as bytes, for a browser to unpack. Version 1; a later one has another number.

All numbers are little-endian. The bytes are gzip of:

    4 bytes    `IFTL`
    uint32     version, 1
    uint32     length of the header in bytes
    header     JSON in UTF-8
    columns    as `header["columns"]` lists them: [name, values, width]

A column is `width` planes of as many bytes as it has values: first the lowest byte of each, last the highest; a width
of 0 is all zeros. Whole numbers are at most 2^53; `f` planes are those of a double.

    per row    row_events, row_slices: how many each has
    per event  gap: from the end of the event before it on its row, or from the origin; dur;
               name: place in `header["names"]`; tie: place of the host call that queued it plus one, 0 for none, less
               that of the event before, zigzag: 2n for n, -2n - 1 for a negative one;
               place: of a window, its place in the whole time line less that of the event before. Ties are these, too
    per slice  at: number of its slice less that of the slice before on its row, or less 0; category; ns; count;
               longest: name of the longest; longest_ns
    per sample time: less that of the sample before of its counter, or less 0; value: `f`

The header has `origin` (ns on the trace's clock, a text), `length` (ns), `lanes` with their rows and the level of their
slices, `names` with `labels` (a short one where there is one), `name_category` and `name_count` (events of the whole
time line), `categories` (name, what one is called, summed ns), `counters`, `marks`, and what else the page is to say.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inferometer.analyses.timeline.lanes.events import NO_TIE, Lanes, Numbers
from inferometer.analyses.timeline.lanes.window import Excerpt
from inferometer.errors import clean
from inferometer.names import decode
from inferometer.reports.page.figures import without_surrogates

MAGIC = b"IFTL"
VERSION = 1
_LONGEST_NAME = 2_000
_LABEL = 80
_LEVEL = 2  # of isal's: 7 % larger than by zlib's 6, in a tenth of the time
_BETTER_LEVEL = 6  # of zlib's

Columns = dict[str, tuple[NDArray[Any], int]]


def pack(
    excerpt: Excerpt, *, whole: bool = True, more: Mapping[str, Any] | None = None, most_bytes: int | None = None
) -> bytes:
    """The excerpt as bytes; the same excerpt gives the same ones on the same kind of processor.

    Args:
        excerpt: Of the whole time line, or of a window.
        whole: Ties are between events of the excerpt; else events say their place in the whole time line.
        more: What else the header has.
        most_bytes: Where it takes more, it is packed again, better and slower. It may still take more then.
    """
    from isal import igzip

    line = excerpt.lanes
    used = np.unique(np.concatenate((line.name[excerpt.single].astype(np.int64), excerpt.slices.name)))
    columns = _events(excerpt, used, whole=whole) | _slices(excerpt, used) | _samples(line)
    header = {
        "origin": str(line.origin_ns),
        "length": line.length_ns,
        "lanes": [
            {
                "group": _text(lane.group),
                "kind": lane.kind,
                "name": _text(lane.name),
                "rows": lane.rows,
                "level": int(at),
                **({"deeper": [lane.deeper, lane.deeper_ns]} if lane.deeper else {}),
            }
            for lane, at in zip(line.lanes, excerpt.levels, strict=True)
        ],
        **_names(line, used),
        "categories": [[each.name, each.noun, each.summed_ns] for each in line.categories],
        "counters": [[_text(each.group), _text(each.name), _text(each.unit), len(each.value)] for each in line.samples],
        "columns": [[name, len(values), width] for name, (values, width) in columns.items()],
        **(more or {}),
    }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    parts = [MAGIC, VERSION.to_bytes(4, "little"), len(text).to_bytes(4, "little"), text]
    parts += [_planes(values, width) for values, width in columns.values()]
    plain = b"".join(parts)
    packed: bytes = igzip.compress(plain, _LEVEL, mtime=0)
    has_room = most_bytes is None or len(packed) <= most_bytes
    return packed if has_room else gzip.compress(plain, _BETTER_LEVEL, mtime=0)


def packed_size(excerpt: Excerpt) -> int:
    """About how many bytes its columns take: each packed by itself, a little less well than `pack` does."""
    from isal import isal_zlib

    line = excerpt.lanes
    used = np.unique(np.concatenate((line.name[excerpt.single].astype(np.int64), excerpt.slices.name)))
    columns = _events(excerpt, used, whole=True) | _slices(excerpt, used)
    return sum(len(isal_zlib.compress(_planes(values, width), 1)) for values, width in columns.values())


def _events(excerpt: Excerpt, used: Numbers, *, whole: bool) -> Columns:
    line, single = excerpt.lanes, excerpt.single
    start, dur = line.start_ns[single], line.dur_ns[single]
    per_row = np.diff(np.searchsorted(single, line.row_at))
    tie = line.tie[single]
    if whole and len(single):
        at = np.searchsorted(single, tie)
        at[at == len(single)] = 0
        tie = np.where((tie != NO_TIE) & (single[at] == tie), at, NO_TIE)
    columns = {
        "row_events": per_row,
        "gap": _less_before(start, start + dur, per_row),
        "dur": dur,
        "name": np.searchsorted(used, line.name[single]),
        "tie": _zigzag(np.diff(tie + 1, prepend=0)),
    }
    return _sized(columns if whole else columns | {"place": np.diff(single, prepend=0)})


def _slices(excerpt: Excerpt, used: Numbers) -> Columns:
    some = excerpt.slices
    per_row = np.diff(np.searchsorted(some.row, np.arange(len(excerpt.lanes.row_at))))
    columns = {
        "row_slices": per_row,
        "at": _less_before(some.at, some.at, per_row),
        "category": some.category,
        "ns": some.ns,
        "count": some.count,
        "longest": np.searchsorted(used, some.name),
        "longest_ns": some.longest_ns,
    }
    return _sized(columns)


def _samples(line: Lanes) -> Columns:
    if not line.samples:
        return {}
    sizes = np.array([len(each.value) for each in line.samples])
    times = np.concatenate([each.time_ns for each in line.samples])
    values = np.concatenate([each.value for each in line.samples])
    return {**_sized({"time": _less_before(times, times, sizes)}), "value": (values, 8)}


def _less_before(values: Numbers, ends: Numbers, sizes: Numbers) -> Numbers:
    """Each value less the end before it in its part, or less 0 where it begins the part."""
    before = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    firsts = np.cumsum(sizes)[:-1] if len(sizes) else sizes
    before[firsts[firsts < len(ends)]] = 0
    return np.asarray(values - before, dtype=np.int64)


def _zigzag(values: Numbers) -> Numbers:
    return np.where(values < 0, -2 * values - 1, 2 * values)


def _sized(columns: Mapping[str, Numbers]) -> Columns:
    """Each with the least width in bytes that its values need."""
    return {name: (values, (int(values.max(initial=0)).bit_length() + 7) // 8) for name, values in columns.items()}


def _planes(values: NDArray[Any], width: int) -> bytes:
    wide = values.astype("<f8" if values.dtype.kind == "f" else "<i8").view(np.uint8).reshape(-1, 8)
    return wide[:, :width].T.tobytes()


def _names(line: Lanes, used: Numbers) -> dict[str, Any]:
    counts = np.bincount(line.name, minlength=len(line.names))
    names = [line.names[i] for i in used.tolist()]
    nouns = [line.categories[line.name_category[i]].noun for i in used.tolist()]
    return {
        "names": [_text(name) for name in names],
        "labels": [_label(name, noun) for name, noun in zip(names, nouns, strict=True)],
        "name_category": line.name_category[used].tolist(),
        "name_count": counts[used].tolist(),
        "names_left_out": int(np.count_nonzero(counts)) - len(used),
    }


def _label(name: str, noun: str) -> str | None:
    """A shorter name to draw: what a kernel is, the function of a frame; None where it is the name itself."""
    short = name
    if noun == "kernel":
        short = decode(name).short_name or name
    elif noun == "frame":
        short = name.rpartition(": ")[2] or name
    shown = _text(short)[:_LABEL]
    return None if shown == _text(name) else shown


def _text(text: str) -> str:
    shown = without_surrogates(clean(text))
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Sequence[int] | NDArray[Any]]]:
    """Header and columns as they are packed; what the viewer does in the browser, for tests and tools."""
    raw = gzip.decompress(data)
    if raw[:4] != MAGIC or int.from_bytes(raw[4:8], "little") != VERSION:
        raise ValueError(f"expected {MAGIC!r} and version {VERSION}, found {raw[:8]!r}")
    at = 12 + int.from_bytes(raw[8:12], "little")
    header = json.loads(raw[12:at])
    columns: dict[str, Sequence[int] | NDArray[Any]] = {}
    for name, size, width in header["columns"]:
        wide = np.zeros((size, 8), dtype=np.uint8)
        wide[:, :width] = np.frombuffer(raw, np.uint8, size * width, at).reshape(width, size).T
        columns[name] = np.ascontiguousarray(wide).view("<f8" if name == "value" else "<i8").reshape(size)
        at += size * width
    return header, columns
