"""Launches by the call of an op that owns them; equal calls have one number.

A call without a model is looked through where the op that made it does all that it does (`covers`): the launches are
then that op's. Where a model looks inside, calls are equal if those that they make are of one name, size and type, too.
Calls within graph replays count once a replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.op_calls import LAUNCH_SHAPE, NONE, OpCalls
from inferometer.analyses.roofline.work import calls_asked_for
from inferometer.operators.framework.family import model_of

ARGUMENTS = ("input_dims", "input_dtypes", "input_strides", "scalars")
SIGNATURE = ("op", *ARGUMENTS, "kernel_file")
LAUNCH = ("kernel", "grid", "block", *LAUNCH_SHAPE)
"""What shows whether two launches are alike."""
_INSIDE = "inside"
_REPLAY = ("rank", "process", "correlation_id")
_REPLAYED = ("graph_alignment", "graph_node")


@dataclass(frozen=True)
class OwnedLaunches:
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
    ran = found.launches.filter(~pl.col("is_captured"))
    owners = _owners(found, ran.select("op_source", "op_call").drop_nulls().unique(maintain_order=True))
    keys = [*SIGNATURE, _INSIDE]
    distinct = owners.unique(keys, keep="first", maintain_order=True).with_row_index("signature")
    numbered = owners.join(
        distinct.select("signature", *keys), on=keys, nulls_equal=True, maintain_order="left"
    ).select("op_source", "op_call", "owner", "signature")
    signatures = distinct.select("signature", *SIGNATURE, "op_source", pl.col("owner").alias("op_call"))
    launches = ran.join(numbered, on=["op_source", "op_call"], how="left", maintain_order="left").with_columns(
        pl.col("owner").alias("op_call")
    )
    replay = [
        pl.when(pl.col("how").cast(pl.String).is_in(_REPLAYED)).then(name).alias(f"replay_{name}") for name in _REPLAY
    ]
    call = pl.struct("op_source", "op_call", *replay).rank("dense").cast(pl.Int64)
    return OwnedLaunches(
        launches.drop("owner").with_columns(pl.when(pl.col("op_call").is_not_null()).then(call).alias("call")),
        signatures,
    )


def _owners(found: Attribution, asked: pl.DataFrame) -> pl.DataFrame:
    """For each call that owns launches itself, the call that is meant (`owner`), and what was recorded of that."""
    parts = []
    for number, calls in enumerate(found.op_calls):
        own = asked.filter(pl.col("op_source") == number)["op_call"]
        if own.len():
            owner = _look_through(calls, own.to_list())
            recorded = calls.rows(owner).select(*SIGNATURE)
            parts.append(
                recorded.with_columns(
                    pl.Series(_INSIDE, _insides(calls, owner, recorded["op"]), dtype=pl.String),
                    pl.lit(number, dtype=pl.Int64).alias("op_source"),
                    own,
                    pl.Series("owner", owner, dtype=pl.Int64),
                )
            )
    texts = dict.fromkeys((*SIGNATURE, _INSIDE), pl.String)
    schema = texts | dict.fromkeys(("op_source", "op_call", "owner"), pl.Int64)
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema)


def _insides(calls: OpCalls, owners: Sequence[int], ops: pl.Series) -> list[str | None]:
    """What each call makes, as a text, where the model of its op asks for that."""
    looking = {op: found for op in ops.unique() if (found := model_of(op)) is not None and found.looks_inside}
    pairs = dict(zip(owners, ops, strict=True))
    places = {call: calls_asked_for(calls, call, looking[op]) for call, op in pairs.items() if op in looking}
    if not places:
        return [None] * len(owners)
    made = calls.rows(list(chain.from_iterable(places.values()))).select(
        pl.concat_str("op", "input_dims", "input_dtypes", separator=" ", ignore_nulls=True)
    )
    texts = iter(made.to_series().to_list())
    joined = {call: "\n".join(islice(texts, len(within))) for call, within in places.items()}
    return [joined.get(call) for call in owners]


def _look_through(calls: OpCalls, own: Sequence[int]) -> list[int]:
    """Each call, or the one around it that covers it where it has no model."""
    names = calls.names(own)
    unmodelled = {name for name in names.unique().to_list() if model_of(name) is None}
    return [
        _covering(calls, call) if name in unmodelled else call for call, name in zip(own, names.to_list(), strict=True)
    ]


def _covering(calls: OpCalls, call: int) -> int:
    at = calls.around(call)
    while at != NONE:
        found = model_of(calls.name(at))
        if found is not None and found.covers:
            return at
        at = calls.around(at)
    return call


def kernels_of_calls(launches: pl.DataFrame) -> pl.DataFrame:
    """For each `call`, the number of its set of kernels (`kernels`), and the sorted `names` in that set."""
    names = launches.filter(pl.col("call").is_not_null()).select("call", pl.col("kernel").cast(pl.String))
    sets = names.unique().sort("call", "kernel").group_by("call", maintain_order=True).agg("kernel")
    distinct = sets.select("kernel").unique(maintain_order=True).with_row_index("kernels")
    return sets.join(distinct, on="kernel", maintain_order="left").select(
        "call", "kernels", pl.col("kernel").alias("names")
    )
