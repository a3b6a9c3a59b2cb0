"""Idle gaps: when a device ran nothing, what ended that, and why it had to wait.

A gap lasts from when the last open launch ended to the start of the next, on whatever stream. Its cause is recognised
from the host call that queued the next work, never guessed:

- `host_late`: the call had not returned when the device went idle. What the work then took to begin, up to `BEGIN_NS`,
  belongs to that.
- `sync`: the same, and when the device went idle the calling thread was waiting for the device (in a synchronising
  call, or a copy that blocks) and queued on only then.
- `graph`: one call queued this work and work that ran before the gap: a graph replay between its nodes.
- `launch_gap`: the work was queued in time and began within `LAUNCH_GAP_NS`: what a device takes between kernels.
- `dependency`: it was queued and began later than that. What it waited for, a trace doesn't say: an event of another
  stream, another rank, the device's own front end, or work that the file doesn't hold.
- `unknown`: no call is recorded for it, or a window begins before the first or ends after the last work.
- `recorder`: the recording itself was cut there (`recorder_pauses`), whatever else was going on.

A gap may be several rows, one after the other, so that each cause has its own time: where the host took longer than
`LAUNCH_GAP_NS` from the end of its wait to the call, the rest is `host_late`; where the work then waited for more than
`BEGIN_NS`, what follows the call is `dependency`. The clocks of host and device agree only as well as the profiler
aligned them.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.correlation import CALL, CALL_KEY, NO_CALL, Rows, find_calls, gather_known, known_rows
from inferometer.analyses.intervals import latest_ends
from inferometer.analyses.numbering import order_in_time
from inferometer.analyses.timeline.recorder_pauses import part_pauses, recorder_pauses
from inferometer.analyses.timeline.waits import waiting_calls
from inferometer.analyses.timeline.work import PLACE, Work
from inferometer.names.apis import canonical_api
from inferometer.trace.lean import aggregate, collect_lean, gather, slices_of, stacked
from inferometer.trace.trace import Trace

LAUNCH_GAP_NS = 5_000
"""Queued neighbours follow each other in 1 to 3 μs in captures from A100 and H100; longer is a wait for something."""

BEGIN_NS = 50_000
"""From the end of a late call to its work: 1 to 4 μs in captures from A100 and H100, 5 to 25 μs in most from MI250 and
MI300, where one in twenty of a run takes 55 μs."""

CAUSES = ("host_late", "sync", "dependency", "launch_gap", "graph", "unknown", "recorder")
COLUMNS = (
    *("place", *PLACE, "gap_start_ns", "gap_ns", "cause", "kernel", "stream", "after"),
    *("api", "called_ns", "call_end_ns", "waited_in", "wait_end_ns"),
)
ROW = "row"
"""What `columns` of `find_gaps` may name besides: the row of `work.launches` that ended the gap, UInt32."""

_THREAD = ["rank", "process", "thread"]
_CAUSE = pl.Enum(CAUSES)
_NO_ID = -(2**63)  # stands for null where polars joins by equality only


def find_gaps(trace: Trace, work: Work, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
    """Every idle gap of each place, in order; lengths add up to the place's idle time. `columns`: of these, which ones.

    Columns: `place`, `rank`, `device`; `gap_start_ns` and `gap_ns` within the window; `cause`; `kernel` and `stream` of
    what ended it and `after`, the kernel before it; `api`, `called_ns`, `call_end_ns` of the call that queued it;
    `waited_in`, the call in which the host was waiting when the device went idle, and `wait_end_ns`, when it returned.
    Both names of calls are categorical.
    """
    return _explained(trace, work, _between_launches(work), columns)


def longest_gaps(trace: Trace, work: Work, count: int) -> pl.DataFrame:
    """The longest so many rows of `find_gaps`, the longest first: calls are looked for of gaps that may be among them.

    A gap may be several rows, so a shorter gap of one cause may have a longer row: gaps are asked for once more, down
    to the length of the last row found.
    """
    gaps = _between_launches(work)
    length = (pl.col("start_ns") - pl.col("dry_ns")).alias("length_ns")
    lengths = gaps.select(length.top_k(count)).to_series()
    least_ns = int(lengths.min() or 0)  # type: ignore[arg-type]
    found = top_gaps(_explained(trace, work, gaps.filter(length >= least_ns), COLUMNS, few=True), count)
    reached_ns = int(found["gap_ns"].min() or 0) if found.height == count else 0  # type: ignore[arg-type]
    if reached_ns >= least_ns:
        return found
    return top_gaps(_explained(trace, work, gaps.filter(length >= reached_ns), COLUMNS, few=True), count)


def top_gaps(gaps: pl.DataFrame, count: int) -> pl.DataFrame:
    """The longest so many of these rows, the longest first, of equal ones the first."""
    order = ["gap_ns", "place", "gap_start_ns"]
    longest = gaps.top_k(count, by=order, reverse=[False, True, True])
    return longest.sort(order, descending=[True, False, False])


class _Known(msgspec.Struct, frozen=True, eq=False):
    """What tells why a device waited.

    Attributes:
        work: What ran.
        calls: `thread`, `start_ns`, `dur_ns` of the trace's calls, or of those of the gaps alone; perhaps `api`.
        waits: Of `_find_waits`.
        shared: Of `_shared_calls`.
        pauses: Of the recorder.
        before: Of `_ended_before`, where it is asked for.
    """

    work: Work
    calls: pl.DataFrame
    waits: pl.DataFrame
    shared: pl.DataFrame
    pauses: pl.DataFrame
    before: pl.Series | None


def _explained(
    trace: Trace, work: Work, gaps: pl.DataFrame, columns: Sequence[str], *, few: bool = False
) -> pl.DataFrame:
    """These gaps with their causes. `few`: of the trace's calls only theirs are read."""
    names = ("thread", "start_ns", "dur_ns", *(["api"] if "api" in columns else []))
    calls, call = _calls_of(trace, work, gaps, names, few=few)
    known = _Known(
        work=work,
        calls=calls,
        waits=_find_waits(trace),
        shared=_shared_calls(trace, _keys_of(work, gaps) if few else None),
        pauses=recorder_pauses(trace),
        before=_ended_before(work) if "after" in columns else None,
    )
    gaps = gaps.hstack([call])
    whole = [gaps] if work.window_ns is not None else slices_of(gaps)
    parts = [_with_causes(known, part, columns) for part in whole]
    del known, gaps, calls, call  # half a GB of ten million
    return stacked(parts)


def _with_causes(known: _Known, gaps: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Some gaps that follow each other, with the edges of the window where there is one; in order."""
    work = known.work
    gaps = _with_waits(known, _with_calls(gaps, known.calls))
    gaps = gaps.with_columns(_cause(_same_call(known, gaps)))
    gaps = _part_late(_part_waits(gaps))
    if work.window_ns is not None:
        gaps = pl.concat([gaps, *_edges(work)], how="diagonal_relaxed")
    gaps = _without_pauses(known, gaps).rename({"dry_ns": "gap_start_ns", "start_ns": "gap_end_ns"})
    if work.window_ns is not None:
        cut = pl.col("gap_start_ns", "gap_end_ns").clip(*work.window_ns)
        gaps = gaps.with_columns(cut).filter(pl.col("gap_end_ns") > pl.col("gap_start_ns"))
    gaps = gaps.with_columns(gap_ns=pl.col("gap_end_ns") - pl.col("gap_start_ns"))
    parts = [
        gaps,
        _of_places(work, gaps["place"]),
        gather(work.launches.select(name for name in ("kernel", "stream") if name in columns), gaps[ROW]),
        gather(known.calls.select(name for name in ("api",) if name in columns), gaps[CALL]),
    ]
    if known.before is not None:
        parts.append(gather(work.launches.select(after="kernel"), known.before.gather(gaps["of"])))
    found = pl.concat(parts, how="horizontal").select(columns)
    order = order_in_time(gaps["place"].to_numpy(), gaps["gap_start_ns"].to_numpy())
    return found if order is None else found[order]


def number_of_gaps(gaps: pl.DataFrame) -> int:
    """How many gaps the pieces of `find_gaps` are of: pieces of one follow each other without work between."""
    begins = (pl.col("gap_start_ns") != (pl.col("gap_start_ns") + pl.col("gap_ns")).shift(1)).fill_null(value=True)
    return int(gaps.select((begins | (pl.col("place") != pl.col("place").shift(1))).sum()).item())


def sum_causes(gaps: pl.DataFrame) -> pl.DataFrame:
    """Idle time of each place by cause, the largest first: `idle_ns`, its `share` of all, `count` and `longest_ns`.

    `count` is of pieces: a gap that has several causes is a piece of each.
    """
    gap = pl.col("gap_ns")
    sums = (gap.sum().alias("idle_ns"), pl.len().cast(pl.Int64).alias("count"), gap.max().alias("longest_ns"))
    return (
        aggregate(gaps, ["place", *PLACE, "cause"], *sums)
        .with_columns((pl.col("idle_ns") / pl.col("idle_ns").sum().over("place")).alias("share"))
        .sort("place", "idle_ns", "cause", descending=[False, True, False])
        .select(*PLACE, "cause", "idle_ns", "share", "count", "longest_ns")
    )


def _cause(same_call: pl.Series) -> pl.Expr:
    in_time = pl.col("call_end_ns") <= pl.col("dry_ns")
    return (
        pl.when(same_call)
        .then(_lit("graph"))
        .when(pl.col("called_ns").is_null())
        .then(_lit("unknown"))
        .when(in_time & (pl.col("start_ns") - pl.col("dry_ns") <= LAUNCH_GAP_NS))
        .then(_lit("launch_gap"))
        .when(in_time)
        .then(_lit("dependency"))
        .when(pl.col("waited_in").is_not_null())
        .then(_lit("sync"))
        .otherwise(_lit("host_late"))
        .alias("cause")
    )


def _lit(cause: str) -> pl.Expr:
    return pl.lit(cause, dtype=_CAUSE)


def _part_waits(gaps: pl.DataFrame) -> pl.DataFrame:
    """Gaps in which the host, its wait over, took long to call, as two rows each.

    A wait that ended no earlier than the gap, since clocks are apart, leaves none of it.
    """
    is_within = pl.col("wait_end_ns") < pl.col("start_ns")
    took_long = (pl.col("cause") == "sync") & (pl.col("called_ns") - pl.col("wait_end_ns") > LAUNCH_GAP_NS) & is_within
    waited = pl.when(took_long).then(pl.col("wait_end_ns")).otherwise(pl.col("start_ns"))
    rest = gaps.filter(took_long).with_columns(pl.col("wait_end_ns").alias("dry_ns"), _lit("host_late").alias("cause"))
    return pl.concat([gaps.with_columns(waited.alias("start_ns")), rest]) if rest.height else gaps


def _part_late(gaps: pl.DataFrame) -> pl.DataFrame:
    """Gaps in which the host was late and the work then waited in turn, as two rows each."""
    waits = pl.col("cause").is_in(["host_late", "sync"]) & (pl.col("start_ns") - pl.col("call_end_ns") > BEGIN_NS)
    late = pl.when(waits).then(pl.col("call_end_ns")).otherwise(pl.col("start_ns"))
    rest = gaps.filter(waits).with_columns(
        pl.col("call_end_ns").alias("dry_ns"),
        _lit("dependency").alias("cause"),
        pl.lit(None, dtype=pl.Categorical).alias("waited_in"),
        pl.lit(None, dtype=pl.Int64).alias("wait_end_ns"),
    )
    return pl.concat([gaps.with_columns(late.alias("start_ns")), rest]) if rest.height else gaps


def _between_launches(work: Work) -> pl.DataFrame:
    """Gaps between launches, from `dry_ns` to `start_ns`: `place`, and the `row` of the launch that ended it.

    `of` is the row of the launch whose call explains it: the same, but null in `_edges`.
    """
    place, start, end = (work.launches[name].to_numpy() for name in ("place", "start_ns", "end_ns"))
    first, dry = latest_ends(place, end)
    is_gap = start > dry
    is_gap[first] = False
    row = pl.Series(ROW, np.flatnonzero(is_gap).astype(np.uint32))
    return pl.DataFrame(
        [
            work.launches["place"].gather(row),
            row,
            row.alias("of"),
            pl.Series("dry_ns", dry[is_gap]),
            work.launches["start_ns"].gather(row),
        ]
    )


def _edges(work: Work) -> list[pl.DataFrame]:
    """Gaps before the first and after the last work of a window: of no launch, so that no call explains them."""
    whole = (
        work.launches.with_row_index(ROW)
        .group_by("place")
        .agg(pl.col("start_ns").min().alias("first_ns"), pl.col("end_ns").max().alias("last_ns"), pl.col(ROW).first())
    )
    edges = whole.join(work.places.select("place", "from_ns", "to_ns"), on="place").with_columns(
        _lit("unknown").alias("cause")
    )
    before = edges.select("place", ROW, "cause", dry_ns="from_ns", start_ns="first_ns")
    return [before, edges.select("place", "cause", dry_ns="last_ns", start_ns="to_ns")]


def _ended_before(work: Work) -> pl.Series:
    """The row of the launch that ended last before each one began, of those that ended at once the last."""
    place, end = (work.launches[name].to_numpy() for name in ("place", "end_ns"))
    _, latest = latest_ends(place, end)
    row = np.arange(len(end), dtype=np.uint32)
    row[end < latest] = 0  # the first of a place never is
    return pl.Series(np.maximum.accumulate(row)).shift(1)


def _without_pauses(known: _Known, gaps: pl.DataFrame) -> pl.DataFrame:
    """What of them lies in a pause of the recording has that as its cause."""
    if known.pauses.is_empty():
        return gaps
    process = gather(known.work.launches.select("process"), gaps["of"])
    return part_pauses(pl.concat([gaps, process], how="horizontal"), known.pauses, "recorder")


def _of_places(work: Work, place: pl.Series) -> pl.DataFrame:
    """`rank` and `device` of each of these places."""
    if work.places.height == 1:
        own = (pl.lit(work.places[name]).first().alias(name) for name in PLACE)
        return pl.DataFrame({"place": place}).with_columns(own).drop("place")
    return gather(work.places.select(PLACE), place)


def _calls_of(
    trace: Trace, work: Work, gaps: pl.DataFrame, names: Sequence[str], *, few: bool
) -> tuple[pl.DataFrame, pl.Series]:
    """These columns of calls, and the row there of the call that queued what ended each gap, null without one."""
    calls = trace.compact("calls")
    if CALL in work.launches.columns:
        return collect_lean(calls, names), work.launches[CALL].gather(gaps[ROW])
    keys = _keys_of(work, gaps)
    known = collect_lean(calls, [*dict.fromkeys((*CALL_KEY, *names))], *([_is_of(keys)] if few else []))
    return known, known_rows(find_calls(keys, known)).alias(CALL)


def _with_calls(gaps: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """When the call that queued what ended each gap began and ended."""
    called_ns, took_ns = (calls[name].gather(gaps[CALL]) for name in ("start_ns", "dur_ns"))
    return gaps.hstack([called_ns.alias("called_ns"), (called_ns + took_ns).alias("call_end_ns")])


def _keys_of(work: Work, gaps: pl.DataFrame) -> pl.DataFrame:
    """What ties the launch that ended each gap to its call."""
    return work.launches.select(CALL_KEY)[gaps[ROW]]


def _is_of(keys: pl.DataFrame) -> pl.Expr:
    """Rows that have the id of work that ended one of these gaps."""
    return pl.col("correlation_id").is_in(keys["correlation_id"].drop_nulls().unique().implode())


def _same_call(known: _Known, gaps: pl.DataFrame) -> pl.Series:
    """Whether work of the call that ended each gap began before it: of calls that queued several launches."""
    same = pl.repeat(False, gaps.height, dtype=pl.Boolean, eager=True)
    if known.shared.is_empty():
        return same
    keyed = _keys_of(known.work, gaps).with_columns(gaps["dry_ns"]).with_row_index("gap")
    tied = keyed.filter(_is_of(known.shared)).join(known.shared, on=CALL_KEY, nulls_equal=True)
    return same.scatter(tied.filter(pl.col("first_ns") <= pl.col("dry_ns"))["gap"], values=True)


def _shared_calls(trace: Trace, keys: pl.DataFrame | None) -> pl.DataFrame:
    """Calls that queued several launches, of these keys alone or of all: `CALL_KEY`, and when the first began."""
    return (
        _with_several(trace, None if keys is None else _is_of(keys))
        .filter(pl.col("correlation_id") > 0)  # 0 stands for no call in CUPTI and roctracer
        .group_by(CALL_KEY)
        .agg(pl.col("start_ns").min().alias("first_ns"), pl.len())
        .filter(pl.col("len") > 1)
        .select(*CALL_KEY, "first_ns")
        .collect()
    )


def _with_several(trace: Trace, wanted: pl.Expr | None) -> pl.LazyFrame:
    """Launches that may share their call with others: of the wanted ones all, else those whose id occurs again."""
    launches = trace.launches.select(*CALL_KEY, "start_ns")
    if wanted is not None:
        return launches.filter(wanted)
    ids = trace.launches.select("correlation_id").collect()["correlation_id"]
    several = _repeated(ids.fill_null(0).to_numpy())
    return launches.filter(pl.lit(pl.Series(several))) if several.any() else launches.clear()


def _repeated(ids: Rows) -> NDArray[np.bool_]:
    """Whether each id occurs again."""
    order = np.argsort(ids, kind="stable")
    same = ids[order[1:]] == ids[order[:-1]]
    again = np.zeros(len(ids), dtype=np.bool_)
    again[order[1:][same]] = True
    again[order[:-1][same]] = True
    return again


def _with_waits(known: _Known, gaps: pl.DataFrame) -> pl.DataFrame:
    """`waited_in`: the call in which the launching thread waited when the device went idle, and queued after."""
    late = gaps.with_row_index("gap").filter(pl.col("called_ns") > pl.col("dry_ns"))
    owner = known.work.launches.select("rank", "process")[late[ROW]]
    lanes = late.select("gap", "dry_ns", "called_ns").hstack([*owner, *known.calls.select("thread")[late[CALL]]])
    explained = (pl.col("wait_end_ns") > pl.col("dry_ns")) & (pl.col("wait_end_ns") <= pl.col("called_ns"))
    found = (
        lanes.with_columns(pl.col(_THREAD).fill_null(_NO_ID))
        .sort("dry_ns")
        .join_asof(
            known.waits, left_on="dry_ns", right_on="wait_ns", by=_THREAD, strategy="backward", check_sortedness=False
        )
        .filter(explained)
        .select("gap", pl.col("waited_in").cast(pl.Categorical), "wait_end_ns")
    )
    row = np.full(gaps.height, NO_CALL, dtype=np.int32)
    row[found["gap"].to_numpy()] = np.arange(found.height)
    return pl.concat([gaps, gather_known(found.drop("gap"), row)], how="horizontal")


def _find_waits(trace: Trace) -> pl.DataFrame:
    """Calls that wait for the device (see `waits`): `waited_in`, `wait_ns`, `wait_end_ns`; of nested ones the outer.

    In order of time; `_NO_ID` stands for null in the columns of threads.
    """
    waits = waiting_calls(trace).sort("start_ns")
    names = {name: canonical_api(name) for name in waits["api"].unique()}
    waits = waits.with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("wait_end_ns"))
    outlasts = pl.col("wait_end_ns") > pl.col("wait_end_ns").cum_max().shift(1).over(_THREAD)
    outer = waits.filter(outlasts.fill_null(value=True)).select(
        *_THREAD,
        pl.col("api").replace(names).alias("waited_in"),
        pl.col("start_ns").alias("wait_ns"),
        "wait_end_ns",
    )
    return outer.with_columns(pl.col(_THREAD).fill_null(_NO_ID)).sort("wait_ns")
