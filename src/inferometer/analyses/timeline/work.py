"""Device work as time lines see it: which sort of work ran where and when.

Each launch is `compute`, `communication` (by the kernel's name, see `names.communication`) or `copy` (memory
copies and sets, between devices too). A place is one device of one rank. A window cuts what reaches into it.
"""

import msgspec
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.numbering import find_rows, order_in_time
from inferometer.analyses.selection import Selection
from inferometer.names.communication import find_collective
from inferometer.trace.lean import aggregate, collect_lean, gather, slices_of
from inferometer.trace.trace import Trace

PLACE = ("rank", "device")
SORTS = ("compute", "communication", "copy")
_KIND = ("kind", "kernel")
_COLUMNS = (*_KIND, *PLACE, "stream", "process", "correlation_id", "start_ns", "dur_ns")


class Work(msgspec.Struct, frozen=True):
    """The launches of a selection.

    `launches`: one row per launch, whole and also outside the window: `place` (row number in `places`), `sort`,
    `collective`, `end_ns` and columns of the table, by place and start, text as categories; `call`, the row of each
    one's call in the trace's calls, where they were tied before. `places`: `rank`, `device` and the place's window,
    `from_ns` and `to_ns`: that of the selection as far as recorded, or else its first start and last end.
    """

    launches: pl.DataFrame
    places: pl.DataFrame
    window_ns: tuple[int, int] | None

    def cut(self) -> pl.DataFrame:
        """The launches that run within the window, cut to it."""
        if self.window_ns is None:
            return self.launches
        from_ns, to_ns = self.window_ns
        start, end = pl.col("start_ns").clip(lower_bound=from_ns), pl.col("end_ns").clip(upper_bound=to_ns)
        return (
            self.launches.filter(
                pl.col("start_ns") < to_ns, (pl.col("end_ns") > from_ns) | (pl.col("start_ns") >= from_ns)
            )
            .with_columns(start, end)
            .with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
        )


def find_work(trace: Trace, selection: Selection | None = None) -> Work:
    """The work of a selection; launches outside its window are there too, since they show why a device was idle.

    Raises:
        UnknownName: The trace has no such device, stream or rank.
        InputError: As `Selection.window`.
    """
    selection = selection or Selection()
    window_ns = _recorded(trace, selection.window(trace)) if selection.between_ns else None
    chosen = replace(selection, between_ns=None).apply(trace, compact=True)
    return arrange_work(collect_lean(chosen, _COLUMNS), window_ns)


def arrange_work(launches: pl.DataFrame, window_ns: tuple[int, int] | None = None) -> Work:
    """The work of these launches, in a window on the trace's clock or in each place's own; other columns stay."""
    launches = launches.with_columns(pl.col(pl.String).cast(pl.Categorical))
    places, sorts = _places(launches, window_ns), _sorts(launches)
    found = [
        launches.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")),
        _placed(launches, places),
        gather(sorts.drop(_KIND), find_rows(sorts.select(_KIND), launches.select(_KIND))),
    ]
    joined = pl.concat(found, how="horizontal")
    place = joined["place"].to_numpy() if places.height > 1 else None
    order = order_in_time(place, launches["start_ns"].to_numpy())
    return Work(joined if order is None else joined[order], places, window_ns)


def _recorded(trace: Trace, window_ns: tuple[int, int]) -> tuple[int, int]:
    """The part of a window that the trace covers: nothing is known of the rest, so it is not idle."""
    first_ns, last_ns = trace.window() or window_ns
    return max(window_ns[0], first_ns), min(window_ns[1], last_ns)


def _places(launches: pl.DataFrame, window_ns: tuple[int, int] | None) -> pl.DataFrame:
    first, last = pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("dur_ns")).max()
    if window_ns is not None:
        first, last = (pl.lit(time, dtype=pl.Int64) for time in window_ns)
    window = (first.alias("from_ns"), last.alias("to_ns"))
    return aggregate(launches, PLACE, *window).sort(PLACE).with_row_index("place")


def _placed(launches: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    if places.height == 1:
        return launches.with_columns(pl.lit(0, dtype=pl.UInt32).alias("place")).select("place")
    return gather(places.select("place"), find_rows(places.select(PLACE), launches.select(PLACE)))


def _sorts(launches: pl.DataFrame) -> pl.DataFrame:
    """The sort of each name, found once per name."""
    names = pl.concat(rows.select(_KIND).unique() for rows in slices_of(launches)).unique()
    collectives = [find_collective(kernel) if kind == "kernel" else None for kind, kernel in names.iter_rows()]
    sorts = [
        "copy" if kind in ("memcpy", "memset") else "communication" if collective else "compute"
        for kind, collective in zip(names["kind"], collectives, strict=True)
    ]
    return names.with_columns(
        pl.Series("sort", sorts, dtype=pl.Enum(SORTS)), pl.Series("collective", collectives, dtype=pl.Categorical)
    )


def at_place(frame: pl.DataFrame, rank: int | None, device: str | None) -> pl.DataFrame:
    """The rows of one place, by their `rank` and `device`; null is a value of its own."""
    wanted = zip(PLACE, (rank, device), strict=True)
    same = (pl.col(name).eq_missing(pl.lit(value, dtype=frame.schema[name])) for name, value in wanted)
    own = frame.select(pl.all_horizontal(same).alias("own")).to_series()
    return frame if own.all() else frame.filter(own)


def place_name(rank: int | None, device: str | None) -> str:
    """`gpu:0 of rank 3`."""
    name = device or "unnamed device"
    return name if rank is None else f"{name} of rank {rank}"
