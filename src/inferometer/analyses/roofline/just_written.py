"""What of a call's inputs an op before it has just written, and may therefore still lie in L2.

Where an execution trace of the same run names the storage of each tensor. An input counts if what its storage was last
written by, and all that moved since, fits into L2 together with what the call itself moves. Work without a model may
move anything: after it nothing counts. A storage of which a part was written counts for that part.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import polars as pl

from inferometer.analyses.launched_by.op_calls import OpCalls
from inferometer.hardware.device import Device

JUST_WRITTEN: Final = ("just_written_bytes", "just_written_bound_ns")
_DEVICE: Final = ("rank", "process", "device")
_MOVED: Final = ("read_bytes", "write_bytes")


def find_just_written(
    placed: pl.DataFrame, modelled: pl.DataFrame, op_calls: Sequence[OpCalls], device: Device | None
) -> pl.DataFrame:
    """Calls whose storages are known: `call`, and `cached`, the bytes of its inputs that may lie in L2.

    Args:
        placed: All launches, with `row`, `call`, `op_source` and `op_call`: what isn't selected moves bytes, too.
        modelled: These rows, with what one call moves.
        op_calls: Calls of each source.
        device: What it ran on; without its L2 no call counts.
    """
    cached: list[tuple[int, int]] = []
    if device is not None and device.l2 is not None and any(calls.storages is not None for calls in op_calls):
        for calls in _calls(placed, modelled).partition_by(_DEVICE, maintain_order=True):
            cached.extend(_follow(calls, op_calls, int(device.l2.value)))
    return pl.DataFrame(cached, schema={"call": pl.Int64, "cached": pl.Int64}, orient="row")


def with_just_written(
    frame: pl.DataFrame, placed: pl.DataFrame, found: pl.DataFrame, device: Device | None
) -> pl.DataFrame:
    """`frame` with `JUST_WRITTEN`: bytes of one call, on the mean, and the bound of all calls with these from L2.

    Null where not all calls of the row are in `found`.

    Args:
        frame: Of `sum_rows`, of `placed`.
        placed: Launches with their `row` and `call`.
        found: Of `find_just_written`.
        device: What it ran on.
    """
    calls = placed.select("row", "call").drop_nulls().unique().join(found, on="call", how="left")
    means = calls.group_by("row").agg(
        pl.when(pl.col("cached").is_not_null().all()).then(pl.col("cached").mean()).alias(JUST_WRITTEN[0])
    )
    return frame.join(means, on="row", how="left", maintain_order="left").with_columns(_bound(device))


def _calls(placed: pl.DataFrame, modelled: pl.DataFrame) -> pl.DataFrame:
    """Calls in the order of their first launches, with what one of them moves; a launch without a call is one."""
    ordered = placed.sort("start_ns", maintain_order=True).with_row_index("launch")
    alone = pl.when(pl.col("call").is_null()).then(pl.col("launch")).alias("alone")
    return (
        ordered.group_by("call", alone, *_DEVICE, maintain_order=True)
        .agg(pl.col("row", "op_source", "op_call").first())
        .join(modelled.select("row", *_MOVED), on="row", how="left", maintain_order="left")
    )


def _follow(calls: pl.DataFrame, op_calls: Sequence[OpCalls], l2_bytes: int) -> Iterator[tuple[int, int]]:
    """Each call whose storages are known, and the bytes of its inputs that may lie in L2."""
    moved, written = (
        0,
        dict[int, tuple[int, int]](),
    )  # of a storage: what had moved before it was written, and its bytes
    for call in calls.iter_rows(named=True):
        if call["read_bytes"] is None:
            written.clear()
            continue
        own = call["read_bytes"] + call["write_bytes"]
        storages = _storages_of(call, op_calls)
        if storages is not None:
            read, gave = storages
            recent = {each: size for each, (before, size) in written.items() if moved - before + own <= l2_bytes}
            cached = sum(min(size, recent[each]) for each, size in read if each in recent)
            yield call["call"], min(cached, call["read_bytes"])
            written |= {each: (moved, min(size, call["write_bytes"])) for each, size in gave}
        moved += own


def _storages_of(call: dict[str, Any], op_calls: Sequence[OpCalls]) -> tuple[Any, Any] | None:
    """What it reads and writes; None where that isn't known."""
    if call["op_source"] is None or (known := op_calls[call["op_source"]].storages) is None:
        return None
    texts = known.row(call["op_call"])
    return None if None in texts else (json.loads(texts[0]), json.loads(texts[1]))


def _bound(device: Device | None) -> pl.Expr:
    """With these bytes from L2; all of a call's bytes pass L2, at its rate where that is known."""
    if device is None or device.memory_bandwidth is None:
        return pl.lit(None, dtype=pl.Float64).alias(JUST_WRITTEN[1])
    moved = (pl.col("read_bytes") + pl.col("write_bytes")).cast(pl.Float64)
    memory = (moved - pl.col(JUST_WRITTEN[0])) * 1e9 / device.memory_bandwidth.value
    through = [] if device.l2_bandwidth is None else [moved * 1e9 / device.l2_bandwidth.value]
    bound = pl.max_horizontal("matrix_of_call_ns", "vector_of_call_ns", memory, *through)
    is_known = pl.col("memory_of_call_ns").is_not_null() & pl.col(JUST_WRITTEN[0]).is_not_null()
    return pl.when(is_known).then(bound * pl.col("calls")).alias(JUST_WRITTEN[1])
