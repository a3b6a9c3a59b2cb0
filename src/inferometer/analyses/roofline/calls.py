"""Launches by the call of an op that owns them; equal calls have one number.

A call without a model is looked through where the op that made it does all that it does (`covers`): the launches are
then that op's. Where a model looks inside, calls are equal if those that they make are of one name, size and type, too.
Calls within graph replays count once a replay.
"""

from collections.abc import Callable, Sequence
from itertools import chain, islice

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.op_calls import LAUNCH_SHAPE, NONE, OWNER, OpCalls, or_null
from inferometer.analyses.nesting import Numbers
from inferometer.analyses.numbering import number_by_first, number_rows
from inferometer.analyses.roofline.work import calls_asked_for
from inferometer.operators.framework.family import model_of
from inferometer.trace.lean import having_several

ARGUMENTS = ("input_dims", "input_dtypes", "input_strides", "scalars")
SIGNATURE = ("op", *ARGUMENTS, "kernel_file")
LAUNCH = ("kernel", "grid", "block", *LAUNCH_SHAPE)
"""What shows whether two launches are alike."""
_INSIDE = "inside"
_REPLAY = ("rank", "process", "correlation_id")
_REPLAYED = ("graph_alignment", "graph_node")


class OwnedLaunches(msgspec.Struct, frozen=True):
    """Launches with the call that owns them.

    `launches`: those that ran, with `signature` (null: no op owns it), `call` (equal for launches of one call), and
    `op_source` and `op_call` of the op that owns it. `signatures`: `op` and its arguments by number, with an example of
    each (`op_source`, `op_call`).
    """

    launches: pl.DataFrame
    signatures: pl.DataFrame


def owned_launches(found: Attribution) -> OwnedLaunches:
    """Group them.

    Args:
        found: Of `attribute`, with op calls.
    """
    captured = found.launches["is_captured"]
    ran = found.launches.filter(~captured) if captured.any() else found.launches
    source, own = (ran[name].fill_null(NONE).to_numpy() for name in OWNER)
    owner, signature = (np.full(ran.height, NONE, dtype=np.int64) for _ in OWNER)
    meant = [_meant(calls, own[rows]) for calls, rows in _by_source(found.op_calls, source)]
    distinct, numbers = _signatures([each.recorded for each in meant])
    for (_, rows), each, number in zip(_by_source(found.op_calls, source), meant, numbers, strict=True):
        owner[rows] = each.owners[each.place]
        signature[rows] = number[each.place]
    launches = ran.with_columns(
        or_null("op_call", owner), or_null("signature", signature).cast(pl.UInt32), _equal_calls(ran, source, owner)
    )
    return OwnedLaunches(launches, distinct)


class _Meant(msgspec.Struct, frozen=True):
    """The calls that are meant by those of one trace that own launches themselves.

    `owners`, each once, in the order in which launches name them; `place`: of each launch's among these. `recorded`:
    `SIGNATURE` of each of the owners, what it makes, and `op_call`.
    """

    owners: Numbers
    place: Numbers
    recorded: pl.DataFrame


def _by_source(op_calls: Sequence[OpCalls], source: Numbers) -> list[tuple[OpCalls, Numbers]]:
    """The calls of each trace, with the places of the launches that they own."""
    return [(calls, np.flatnonzero(source == number)) for number, calls in enumerate(op_calls)]


def _meant(calls: OpCalls, own: Numbers) -> _Meant:
    """For each call that owns launches itself, the call that is meant, and what was recorded of that."""
    owners, place = _once(_look_through(calls, own))
    recorded = calls.rows(owners).select(*SIGNATURE)
    inside = pl.Series(_INSIDE, _insides(calls, owners), dtype=pl.String)
    return _Meant(owners, place, recorded.with_columns(inside, pl.Series("op_call", owners, dtype=pl.Int64)))


def _once(values: Numbers) -> tuple[Numbers, Numbers]:
    """The different values in the order of their first places, and the place of each value among them."""
    different, first, same = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return different[order], place[same]


def _signatures(recorded: Sequence[pl.DataFrame]) -> tuple[pl.DataFrame, list[Numbers]]:
    """The different signatures of the calls of all traces, numbered, and the number of each call."""
    keys = [*SIGNATURE, _INSIDE]
    schema = dict.fromkeys(keys, pl.String) | dict.fromkeys(("op_call", "op_source"), pl.Int64)
    numbered = [
        rows.with_columns(pl.lit(number, dtype=pl.Int64).alias("op_source")) for number, rows in enumerate(recorded)
    ]
    rows = pl.concat([pl.DataFrame(schema=schema), *numbered])
    number, first = number_by_first(rows.select(keys))
    distinct = rows[first].with_row_index("signature").select("signature", *SIGNATURE, "op_source", "op_call")
    return distinct, np.split(number, np.cumsum([each.height for each in recorded])[:-1])


def _equal_calls(ran: pl.DataFrame, source: Numbers, owner: Numbers) -> pl.Series:
    """`call`, equal for launches of one call, null of those without; a replay makes calls of its own."""
    is_replayed = pl.col("how").cast(pl.String).is_in(_REPLAYED)
    keys = ran.select(pl.when(is_replayed).then(name).alias(f"replay_{name}") for name in _REPLAY).with_columns(
        pl.Series("owner", owner), pl.Series("source", source)
    )
    is_owned = owner != NONE
    owned = keys.select("source", "owner", *keys.columns[: len(_REPLAY)]).filter(is_owned)
    varying = having_several(owned, owned.columns) or ["owner"]
    call = np.full(ran.height, NONE, dtype=np.int64)
    call[is_owned] = owned.select(pl.struct(varying) if len(varying) > 1 else varying[0])[:, 0].rank("dense").to_numpy()
    return or_null("call", call)


def _insides(calls: OpCalls, owners: Numbers) -> list[str | None]:
    """What each call makes, as a text, where the model of its op asks for that."""
    ops, names = calls.ops
    looking = {
        op: found for op in np.unique(ops[owners]).tolist() if (found := model_of(names[op])) and found.looks_inside
    }
    texts: list[str | None] = [None] * len(owners)
    places = np.flatnonzero(np.isin(ops[owners], list(looking))).tolist()
    if not places:
        return texts
    within = [calls_asked_for(calls, call, looking[ops[call]]) for call in owners[places].tolist()]
    made = calls.rows(list(chain.from_iterable(within))).select(
        pl.concat_str("op", "input_dims", "input_dtypes", separator=" ", ignore_nulls=True)
    )
    described = iter(made.to_series().to_list())
    for place, each in zip(places, within, strict=True):
        texts[place] = "\n".join(islice(described, len(each)))
    return texts


def _look_through(calls: OpCalls, own: Numbers) -> Numbers:
    """Each call, or the one around it that covers it where it has no model."""
    ops, names = calls.ops
    found = own.copy()
    rows = np.flatnonzero(_that(ops[own], lambda op: model_of(names[op]) is None))
    at = own[rows]
    while len(rows := rows[(around := calls.parents[at]) != NONE]):
        at = around[around != NONE]
        covers = _that(ops[at], lambda op: (model := model_of(names[op])) is not None and model.covers)
        found[rows[covers]] = at[covers]
        rows, at = rows[~covers], at[~covers]
    return found


def _that(values: Numbers, is_so: Callable[[int], bool]) -> NDArray[np.bool_]:
    """Of which values it is so; each different one is asked about once."""
    different, same = np.unique(values, return_inverse=True)
    return np.array([is_so(value) for value in different.tolist()], dtype=np.bool_)[same]


def kernels_of_calls(launches: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[str, ...]]]:
    """The number of each call's set of kernels, columns `call` and `kernels`; and the sorted names of each set.

    Args:
        launches: `kernel` and `call`, which is known of all of them.
    """
    kernel, names = number_rows(launches.select("kernel"))
    pairs = np.sort(launches["call"].to_numpy() * len(names) + kernel)
    pairs = pairs[np.append(pairs[:1] == pairs[:1], pairs[1:] != pairs[:-1])]
    call, of_call = np.divmod(pairs, max(1, len(names)))
    sets = pl.DataFrame({"call": call, "set": of_call}).group_by("call", maintain_order=True).agg("set")
    distinct = sets.group_by("set", maintain_order=True).agg("call").with_row_index("kernels")
    texts = [tuple(str(names[each][0]) for each in some) for some in distinct["set"].to_list()]
    return distinct.select("call", "kernels").explode("call"), texts
