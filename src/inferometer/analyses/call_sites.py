"""Where in the user's own code calls come from: the deepest Python frame that isn't PyTorch's or the interpreter's.

From `frames` by time where the source records them, else from the call's own path (`call_paths`), else unknown.
"""

import numpy as np
import polars as pl

from inferometer.analyses.nesting import Numbers, find_innermost
from inferometer.trace.trace import Trace

_THREAD = ["rank", "process", "thread"]
_PYTHON = r"\.py(?:\(\d+\): |:\d+ )"
_OF_TOOLS = r"(?:^|[/\\])(?:torch|triton)[/\\]|(?:^|[/\\])(?:threading|contextlib|functools|runpy)\.py|<frozen"


def find_sites(trace: Trace, calls: pl.DataFrame) -> list[str | None]:
    """The frame that each of these calls was made in; None where none of the user's is known.

    Args:
        trace: Needs `frames` and `call_paths`.
        calls: `rank`, `process`, `thread`, `called_ns` and `path_id` of each.
    """
    sites = _from_frames(trace.frames, calls)
    if calls["path_id"].null_count() == calls.height:
        return sites
    paths = _from_paths(trace.call_paths)
    return [site or paths.get(path) for site, path in zip(sites, calls["path_id"], strict=True)]


def _is_own(frame: pl.Expr) -> pl.Expr:
    return frame.str.contains(_PYTHON) & ~frame.str.contains(_OF_TOOLS)


def _from_frames(frames: pl.LazyFrame, calls: pl.DataFrame) -> list[str | None]:
    own = frames.filter(_is_own(pl.col("frame"))).select("frame", *_THREAD, "start_ns", "dur_ns").collect()
    if not own.height or not calls.height:
        return [None] * calls.height
    threads = pl.concat([own.select(_THREAD), calls.select(_THREAD)]).unique().with_row_index("lane")
    lanes = [_lanes(each, threads) for each in (own, calls)]
    start = own["start_ns"].to_numpy()
    found = find_innermost(lanes[0], start, start + own["dur_ns"].to_numpy(), lanes[1], calls["called_ns"].to_numpy())
    texts = own["frame"]
    return [texts[row] if row >= 0 else None for row in found.tolist()]


def _lanes(rows: pl.DataFrame, threads: pl.DataFrame) -> Numbers:
    joined = rows.select(_THREAD).join(threads, on=_THREAD, how="left", nulls_equal=True, maintain_order="left")
    return joined["lane"].to_numpy().astype(np.int64)


def _from_paths(call_paths: pl.LazyFrame) -> dict[int, str]:
    """For each node, the deepest frame of the user's on the way to it."""
    nodes = call_paths.select("path_id", "parent_id", "frame", _is_own(pl.col("frame")).alias("is_own")).collect()
    known = {path: (parent, frame if is_own else None) for path, parent, frame, is_own in nodes.iter_rows()}
    sites: dict[int, str] = {}
    for path in known:
        at: int | None = path
        seen: set[int | None] = set()
        while at in known and at not in seen:
            seen.add(at)
            parent, frame = known[at]
            if frame:
                sites[path] = frame
                break
            at = parent
    return sites
