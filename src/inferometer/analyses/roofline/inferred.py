"""What launches are whose op isn't in the file, by launches that are alike: queued before the window, as a rule.

Two launches are alike that have one name, grid, block, registers and shared memory (as far as the unknown ones have
them recorded), and, where known ones of that kind differ in their arguments, the same neighbours in their stream: one
on either side, then two, and so on until all known ones agree. Where kinds don't say, as of collectives, which may all
be one kernel, the signatures of the launches that follow do. At least two known launches must agree: what ran once
needn't have run before. What fewer are like stays unknown.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from inferometer.analyses.launched_by.op_calls import NONE, or_null
from inferometer.analyses.nesting import Numbers
from inferometer.analyses.roofline.calls import LAUNCH

_MOST_NEIGHBOURS: Final = 24  # on either side: more than the kernels of a layer
_FOLLOWING: Final = 4
_LEAST: Final = 2  # known launches that agree
_LANE = ["rank", "device", "stream"]
UNKNOWN: Final = ("launch_before_window", "call_missing", "no_call")
"""How it isn't known who launched it, of launches whose op is looked for."""


def infer_signatures(launches: pl.DataFrame) -> pl.DataFrame:
    """`launches` with `signature` and `call` of those that are like known ones, and `inferred`, whether it is.

    A call of several alike launches stays one: so many in a row are one call.

    Args:
        launches: Of `owned_launches`.
    """
    is_unknown = (
        pl.col("signature").is_null() & pl.col("how").cast(pl.String).is_in(UNKNOWN) & (pl.col("kind") == "kernel")
    )
    signature = launches["signature"]
    if signature.null_count() == signature.len() or not launches.select(is_unknown.any()).item():
        return launches.with_columns(pl.lit(value=False).alias("inferred"))
    ordered = launches.with_row_index("row").sort(*_LANE, "start_ns", maintain_order=True)
    unknown = ordered.select(is_unknown)[:, 0].to_numpy()
    known = ordered["signature"].cast(pl.Int64).fill_null(NONE).to_numpy()
    kinds = _kinds(ordered, ordered.filter(unknown))
    lanes = ordered.select(pl.struct(_LANE).rank("dense"))[:, 0].to_numpy()
    found = _agreed(kinds, lanes, known, unknown)
    _continue(kinds, lanes, known, found, unknown)
    calls = _calls(kinds, lanes, known, found, ordered["call"])
    filled = pl.DataFrame(
        {
            "row": ordered["row"],
            "found_signature": or_null("found_signature", np.where(found != NONE, found, known)),
            "found_call": calls,
            "inferred": pl.Series(found != NONE),
        }
    ).sort("row")
    return launches.with_columns(
        filled["found_signature"].cast(pl.UInt32).alias("signature"),
        filled["found_call"].alias("call"),
        filled["inferred"],
    )


def _kinds(ordered: pl.DataFrame, unknown: pl.DataFrame) -> Numbers:
    """The kind of each launch, by what all unknown ones have recorded."""
    names: Sequence[str] = [name for name in LAUNCH if unknown[name].null_count() == 0]
    return ordered.select(pl.struct(names or ["kernel"]).rank("dense").cast(pl.Int64))[:, 0].to_numpy()


def _agreed(kinds: Numbers, lanes: Numbers, known: Numbers, unknown: np.ndarray) -> Numbers:
    """The signature that all known launches of one kind with the same neighbours have, `NONE` where there is none."""
    found = np.full(len(kinds), NONE, dtype=np.int64)
    open_rows = np.flatnonzero(unknown)
    ids = kinds
    for _ in range(_MOST_NEIGHBOURS):
        lowest, highest = _extremes(ids, known)
        low, high = lowest[ids[open_rows]], highest[ids[open_rows]]
        is_agreed = (low == high) & (np.bincount(ids[known != NONE], minlength=len(highest))[ids[open_rows]] >= _LEAST)
        found[open_rows[is_agreed]] = low[is_agreed]
        open_rows = open_rows[(low != high) & (high != NONE)]
        if not len(open_rows):
            break
        ids = _with_neighbours(ids, lanes)
    return found


def _continue(kinds: Numbers, lanes: Numbers, known: Numbers, found: Numbers, unknown: np.ndarray) -> None:
    """Fill in what is still open by what follows it, the last first: what is found then shows what was before it."""
    settled = np.where(found != NONE, found, known)
    open_rows = np.flatnonzero(unknown & (settled == NONE))

    def following(at: int) -> tuple[int, ...] | None:
        """The kind of a launch and the signatures of the next ones, None where not all are known."""
        end = at + _FOLLOWING
        if end >= len(kinds) or lanes[end] != lanes[at] or (settled[at + 1 : end + 1] == NONE).any():
            return None
        return int(kinds[at]), *settled[at + 1 : end + 1].tolist()

    if not any(following(at) for at in open_rows.tolist()):
        return
    before: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for at in np.flatnonzero((known != NONE) & np.isin(kinds, kinds[open_rows])).tolist():
        if context := following(at):
            before[context].append(int(known[at]))
    for at in open_rows[::-1].tolist():
        context = following(at)
        agreeing = before.get(context, []) if context else []
        if len(agreeing) >= _LEAST and len(set(agreeing)) == 1:
            settled[at] = found[at] = agreeing[0]


def _extremes(ids: Numbers, known: Numbers) -> tuple[Numbers, Numbers]:
    """The smallest and the greatest known signature of each id; `NONE` where none is known."""
    size = int(ids.max()) + 1
    highest = np.full(size, NONE, dtype=np.int64)
    lowest = np.full(size, np.iinfo(np.int64).max, dtype=np.int64)
    some = known != NONE
    np.maximum.at(highest, ids[some], known[some])
    np.minimum.at(lowest, ids[some], known[some])
    return np.where(highest == NONE, NONE, lowest), highest


def _with_neighbours(ids: Numbers, lanes: Numbers) -> Numbers:
    """A number for each different id together with those before and after it in its lane."""
    before, after = np.roll(ids, 1), np.roll(ids, -1)
    edge = np.concatenate(([True], lanes[1:] != lanes[:-1]))
    before[edge] = NONE
    after[np.roll(edge, -1)] = NONE
    return np.unique(np.stack([before, ids, after]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _calls(kinds: Numbers, lanes: Numbers, known: Numbers, found: Numbers, call: pl.Series) -> pl.Series:
    """`call` with numbers for inferred launches: as many of a kind as a known call of that signature has are one.

    One next to a known call of its signature that has fewer of its kind is that call's: its own host call was lost.
    """
    own = call.fill_null(NONE).to_numpy()
    counted = (
        pl.DataFrame({"signature": known, "kind": kinds, "call": own})
        .filter(pl.col("signature") != NONE)
        .group_by("signature", "kind", "call")
        .len()
    )
    a_call = counted.group_by("signature", "kind").agg(pl.col("len").max().cast(pl.Int64).alias("each"))
    values = own.copy()
    _complete(values, kinds, lanes, known, found, counted, a_call)
    inferred = pl.DataFrame({"signature": found, "kind": kinds, "own": values}).with_row_index("at")
    alone = inferred.filter((pl.col("signature") != NONE) & (pl.col("own") == NONE))
    if alone.height:
        place = pl.int_range(pl.len()).over("signature", "kind")
        numbered = alone.join(a_call, on=["signature", "kind"], how="left", maintain_order="left").with_columns(
            (place // pl.col("each")).alias("nth")
        )
        fresh = pl.struct("signature", "nth").rank("dense").cast(pl.Int64) + (int(own.max()) + 1)
        values[numbered["at"].to_numpy()] = numbered.select(fresh.alias("call"))["call"].to_numpy()
    return or_null("call", values)


def _complete(
    calls: Numbers,
    kinds: Numbers,
    lanes: Numbers,
    known: Numbers,
    found: Numbers,
    counted: pl.DataFrame,
    a_call: pl.DataFrame,
) -> None:
    """Give inferred launches to the known calls next to them that lack them."""
    each = {(signature, kind): count for signature, kind, count in a_call.iter_rows()}
    has = {(call, kind): count for _, kind, call, count in counted.iter_rows()}
    for at in np.flatnonzero(found != NONE).tolist():
        for beside in (at - 1, at + 1):
            if not 0 <= beside < len(kinds) or lanes[beside] != lanes[at] or known[beside] != found[at]:
                continue
            key = int(calls[beside]), int(kinds[at])
            if has.get(key, 0) < each.get((int(found[at]), int(kinds[at])), 0):
                has[key] = has.get(key, 0) + 1
                calls[at] = calls[beside]
                break
