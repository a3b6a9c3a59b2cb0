"""What each launch that communicates exchanges: by its record, else as like calls' records say, else by its call.

A record is of one launch and has bytes, ranks and kind. Launches without one (queued before the window) take that of
recorded calls of the same op and arguments, where all of these agree. An op's arguments come next: bytes, rarely ranks;
and where they don't say the bytes, the range around the call that `named_exchanges` reads.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.launched_by.op_calls import NONE, OpCalls, or_null
from inferometer.analyses.numbering import number_by_first
from inferometer.analyses.roofline.named_exchanges import named_exchanges
from inferometer.analyses.roofline.work import calls_inside, recorded_call
from inferometer.analyses.timeline.collectives import BY_NAME_ALONE, describe_collectives, recorded_collectives
from inferometer.names.communication import find_collective, read_collective
from inferometer.operators.framework.call import Unmodelled
from inferometer.operators.framework.collectives import NAME, exchange_of, kept_shares
from inferometer.operators.framework.exchange import Exchange
from inferometer.operators.framework.family import model_of
from inferometer.trace.trace import Trace

_ROOTED: Final = ("gather", "scatter")  # which names of kernels don't distinguish from other sends
_RECORD: Final = ("recorded_as", "collective", "in_bytes", "out_bytes", "group_size", "splits_in", "splits_out")
_RANGE: Final = "range"


class Exchanges(msgspec.Struct, frozen=True):
    """What launches exchange, each different exchange once.

    `launches`: a row per launch that communicates, with `at`, its place in those given, `exchange`, a number of
    `distinct`, `collective`, as matching of ranks takes it, and `group`.
    """

    launches: pl.DataFrame
    distinct: tuple[Exchange, ...]


def find_exchanges(
    trace: Trace, launches: pl.DataFrame, signatures: pl.DataFrame, op_calls: Sequence[OpCalls]
) -> Exchanges:
    """What they exchange.

    Args:
        trace: Of these launches; its tables `collectives` and `spans` are read, if they are there.
        launches: Of `infer_signatures`.
        signatures: Of `owned_launches`.
        op_calls: Of the attribution.
    """
    kernels = launches.filter(pl.col("kind") == "kernel")["kernel"].unique().cast(pl.String)
    names = {kernel: kind for kernel in kernels if (kind := find_collective(kernel)) is not None}
    collectives = (
        launches.with_row_index("at")
        .filter(pl.col("kind") == "kernel", pl.col("kernel").is_in(list(names)))
        .with_columns(pl.col("kernel").cast(pl.String))
        .with_columns(pl.col("kernel").replace_strict(names, default=None, return_dtype=pl.String).alias("collective"))
    )
    described = describe_collectives(collectives, recorded_collectives(trace))
    by_op, (range_of, of_ranges) = _by_op(collectives, signatures, op_calls), named_exchanges(trace, collectives)
    keyed = described.select("signature", *_RECORD, pl.Series(_RANGE, range_of))
    number, first = number_by_first(keyed)
    rows = []
    for row in keyed[first].iter_rows(named=True):
        of_call = _by_call(by_op.get(row["signature"]), of_ranges[row[_RANGE]] if row[_RANGE] >= 0 else None)
        rows.append((row["signature"], row["recorded_as"] is not None, _exchange(row, of_call)))
    of_like = _unanimous(rows)
    each = [found if is_recorded else of_like.get(signature, found) for signature, is_recorded, found in rows]
    numbers: dict[Exchange, int] = {}
    chosen = described.with_columns(
        pl.Series("exchange", [numbers.setdefault(found, len(numbers)) for found in each], dtype=pl.Int64)[number],
        pl.Series("kind", [found.kind for found in each], dtype=pl.String)[number],
    )
    says_more = pl.col("collective").is_in(BY_NAME_ALONE) & (pl.col("kind") != "other")
    matched_as = pl.when(says_more).then("kind").otherwise("collective").alias("collective")
    return Exchanges(chosen.with_columns(matched_as).select("at", "exchange", "collective", "group"), tuple(numbers))


def with_exchange(launches: pl.DataFrame, found: Exchanges) -> pl.DataFrame:
    """`launches` with `exchange`, null of those that don't communicate."""
    exchange = np.full(launches.height, NONE, dtype=np.int64)
    exchange[found.launches["at"].to_numpy()] = found.launches["exchange"].to_numpy()
    return launches.with_columns(or_null("exchange", exchange))


def _by_op(collectives: pl.DataFrame, signatures: pl.DataFrame, op_calls: Sequence[OpCalls]) -> dict[int, Exchange]:
    """What calls of these signatures exchange, as far as their arguments show."""
    found = {}
    for row in signatures.filter(pl.col("signature").is_in(collectives["signature"].unique().to_list())).iter_rows(
        named=True
    ):
        model = model_of(row["op"] or "")
        if model is None or model.family != NAME:
            continue
        try:
            call = recorded_call(row, inside=calls_inside(op_calls[row["op_source"]], row["op_call"], model))
            found[row["signature"]] = exchange_of(call)
        except Unmodelled:
            continue
    return found


def _unanimous(rows: Sequence[tuple[int | None, bool, Exchange]]) -> dict[int | None, Exchange]:
    """For signatures whose recorded launches all exchange the same: that."""
    seen: dict[int | None, set[Exchange]] = {}
    for signature, is_recorded, found in rows:
        if is_recorded and signature is not None:
            seen.setdefault(signature, set()).add(found)
    return {signature: next(iter(all_of)) for signature, all_of in seen.items() if len(all_of) == 1}


def _by_call(of_op: Exchange | None, of_range: Exchange | None) -> Exchange | None:
    """As the op's arguments say, or where these say no bytes, the range around it."""
    if of_op is None or of_range is None or of_op.message_bytes is not None:
        return of_op or of_range
    return replace(of_range, ranks=of_op.ranks)


def _exchange(row: dict[str, Any], of_call: Exchange | None) -> Exchange:
    """By the record, with what it lacks as the call has it; without either, what the kernel's name says."""
    if row["recorded_as"] is None:
        return of_call or Exchange(row["collective"], None, None, row["group_size"])
    found = Exchange(_kind(row), row["in_bytes"], row["out_bytes"], _ranks(row["group_size"]))
    if of_call is not None and found.message_bytes is None:
        found = replace(found, in_bytes=of_call.in_bytes, out_bytes=of_call.out_bytes)
    if of_call is not None and found.ranks is None:
        found = replace(found, ranks=of_call.ranks)
    return _with_splits(found, _whole(row["splits_in"]), _whole(row["splits_out"]))


def _kind(row: dict[str, Any]) -> str:
    """As recorded, where that says what it is: an uneven all-gather is made of kernels that broadcast."""
    name = str(row["recorded_as"]).replace("_", "").lower()
    if name in _ROOTED:
        return name
    found = read_collective(row["recorded_as"])
    return str(row["collective"] if found == "other" else found)


def _ranks(recorded: int | None) -> int | None:
    return recorded if recorded is not None and recorded > 0 else None


def _with_splits(found: Exchange, given: tuple[int, ...] | None, got: tuple[int, ...] | None) -> Exchange:
    """Of an all-to-all with its splits: lists that are empty mean equal ones."""
    if found.kind != "all_to_all" or given is None or got is None:
        return found
    kept: tuple[Fraction, Fraction] | None = None
    if given and got and len(given) == len(got) == found.ranks:
        kept = kept_shares(given, got)
    return replace(found, kept=kept, has_splits=kept is not None or not (given or got))


def _whole(text: str | None) -> tuple[int, ...] | None:
    """A list of whole numbers; None where it isn't recorded, or was cut short."""
    try:
        listed = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    are_counts = isinstance(listed, list) and all(type(each) is int and each >= 0 for each in listed)
    return tuple(listed) if are_counts else None
