"""A profile with the arguments that an execution trace of the same run has of its ops.

An op is the same in both where both name it by one id of its record function, and by one name. Where nobody asked for
these ids, they are 0 in a profile: then the ops of a thread are the same in their order, if their names are the same in
that order from the first to the last, and no other thread's are. Only what the profile lacks is filled in.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl
from msgspec.structs import replace

from inferometer.errors import InputError
from inferometer.formats.execution_trace.storages import STORAGES
from inferometer.trace.trace import Trace

NEEDED: Final = ("op", "process", "thread", "start_ns", "dur_ns", "record_function_id")
"""Columns of `ops` that a join needs of the profile."""
ARGUMENTS: Final = ("input_dims", "input_dtypes", "input_strides", "scalars", *STORAGES)
_ROW, _ID = "row", "record_function_id"
_OWN_OPS: Final = "::"  # in the names of ops; ranges that users name stand among the nodes, and not among ops
_HINT: Final = (
    "Record both in one run: torch.profiler.profile(execution_trace_observer="
    "torch.profiler.ExecutionTraceObserver().register_callback('et.json'))."
)


@dataclass(frozen=True)
class _Ties:
    """Rows of ops with the arguments of their nodes, and how they were found."""

    frame: pl.DataFrame
    how: str


def join_arguments(profile: Trace, recorded: Trace) -> Trace:
    """The profile, its ops with the arguments that they lack; a note says how many, and how they were found.

    Args:
        profile: With `ops`, of one process.
        recorded: With `op_nodes`, of that process.

    Raises:
        InputError: There are no nodes, or the two aren't of one run.
    """
    nodes, ops = recorded.op_nodes.collect(), profile.ops.collect().with_row_index(_ROW)
    if not nodes.height:
        raise InputError(f"{recorded.facts.source}: expected ops of an execution trace, found none", hint=_HINT)
    if not ops.height:
        raise InputError(f"{profile.facts.source}: expected ops to give arguments to, found none", hint=_HINT)
    ties = _by_id(ops, nodes, profile, recorded) or _by_order(ops, nodes)
    if ties is None:
        raise InputError(
            f"{recorded.facts.source}: expected the ops of {profile.facts.source}, found others: they share no "
            "ids, and no thread has the same ops in the same order",
            hint=_HINT,
        )
    filled = ops.join(ties.frame, on=_ROW, how="left", suffix="_of_node", maintain_order="left").with_columns(
        pl.coalesce(name, f"{name}_of_node").alias(name) for name in ARGUMENTS
    )
    gained = int((filled["input_dims"].is_not_null() & ops["input_dims"].is_null()).sum())
    note = (
        f"{ties.frame.height:,} of {ops.height:,} ops are tied to nodes of {recorded.facts.source} {ties.how}; "
        f"{gained:,} of them have their shapes from there."
    )
    facts = replace(
        profile.facts,
        recorded={**profile.facts.recorded, "shapes": True},
        notes=(*profile.facts.notes, note),
    )
    own = filled.select(profile.ops.collect_schema().names())
    frames = {name: profile.tables.raw(name) for name in profile.tables} | {"ops": own.lazy()}
    return Trace(facts, frames, profile.losses, scope=profile.scope, names=profile.names)


def _by_id(ops: pl.DataFrame, nodes: pl.DataFrame, profile: Trace, recorded: Trace) -> _Ties | None:
    """By the ids of record functions; None where either file has none, or they share none.

    Raises:
        InputError: Most of those that share an id differ in name.
    """
    known = [frame.filter(pl.col(_ID).is_not_null()).unique(_ID, keep="none") for frame in (ops, nodes)]
    shared = known[0].select(_ROW, "op", _ID).join(known[1].select("op", _ID, *ARGUMENTS), on=_ID, suffix="_of_node")
    if not shared.height:
        return None
    same = shared.filter(pl.col("op") == pl.col("op_of_node"))
    if 2 * same.height < shared.height:
        raise InputError(
            f"{recorded.facts.source}: expected the ops of {profile.facts.source}, found others: of {shared.height:,} "
            f"ids that both have, {shared.height - same.height:,} name different ops",
            hint=_HINT,
        )
    return _Ties(same.select(_ROW, *ARGUMENTS), "by the ids of their record functions")


def _by_order(ops: pl.DataFrame, nodes: pl.DataFrame) -> _Ties | None:
    """Thread by thread, where exactly one of each file has the same names in the same order."""
    own = ops.sort("start_ns", "dur_ns", descending=[False, True], maintain_order=True)
    theirs = nodes.filter(pl.col("node").is_not_null()).sort("node")
    by_names: dict[tuple[str, ...], list[list[pl.DataFrame]]] = {}
    for side, (frame, keys) in enumerate(((own, ["rank", "process", "thread"]), (theirs, ["thread"]))):
        for group in frame.filter(pl.col("op").str.contains(_OWN_OPS, literal=True)).partition_by(keys):
            by_names.setdefault(tuple(group["op"].to_list()), [[], []])[side].append(group)
    pairs = [(mine[0], other[0]) for mine, other in by_names.values() if len(mine) == len(other) == 1]
    if not pairs:
        return None
    tied = [pl.concat([mine.select(_ROW), other.select(ARGUMENTS)], how="horizontal") for mine, other in pairs]
    return _Ties(pl.concat(tied), "by their order, since ids of record functions weren't recorded in both")
