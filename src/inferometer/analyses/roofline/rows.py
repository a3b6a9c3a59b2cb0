"""Equal calls, their work and bounds, as rows of the table; launches without an op have rows by kernel and reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.launched_by.op_calls import OpCalls
from inferometer.analyses.launched_by.site_times import REASONS
from inferometer.analyses.nesting import Numbers
from inferometer.analyses.numbering import number_by_first
from inferometer.analyses.roofline.calls import ARGUMENTS, SIGNATURE, kernels_of_calls
from inferometer.analyses.roofline.likeness import LIKENESS, Likeness
from inferometer.analyses.roofline.work import (
    Bounded,
    bounded,
    bounded_exchange,
    calls_inside,
    has_sizes,
    recorded_call,
)
from inferometer.hardware.device import Device
from inferometer.operators.framework.call import Unmodelled
from inferometer.operators.framework.collectives import NAME as COLLECTIVES
from inferometer.operators.framework.counterparts import counterpart_of
from inferometer.operators.framework.exchange import Exchange
from inferometer.operators.framework.family import Found, model_of
from inferometer.operators.framework.lengths import Context, Lengths
from inferometer.operators.framework.output_code import OutputCode

_NUMBERS: Final = ("flops", "vector_flops", "special_ops", "read_bytes", "write_bytes", "link_bytes")
PARTS: Final = ("matrix_of_call_ns", "vector_of_call_ns", "memory_of_call_ns")
"""Of the bound, what matrix units take, other arithmetic, and memory; null where a link or the host binds."""
MODELLED: Final[dict[str, Any]] = {
    "row": pl.Int64,
    **dict.fromkeys((*SIGNATURE, "family", "dtype"), pl.String),
    **dict.fromkeys(_NUMBERS, pl.Int64),
    "bound_of_call_ns": pl.Float64,
    "warm_bound_of_call_ns": pl.Float64,
    **dict.fromkeys(PARTS, pl.Float64),
    "binding": pl.String,
    "assumes": pl.List(pl.String),
    **dict.fromkeys(("operator", "operator_args"), pl.String),
    "sizes_recorded": pl.Boolean,
    "reason": pl.String,
}
"""What is modelled of a row: FLOPs, bytes and bounds are those of one call."""
_MAY_BE_WINDOWED: Final = (
    "its layers run two kinds of kernels in turn: the quicker one may see a window of each sequence alone; "
    "--window says how long that is"
)
_QUICKER: Final = 0.75  # of the slowest kind's time; kernels that a tuner chose for one and the same are closer
_GROUPED = ("signature", "call", "node", "exchange", "kernel", "dur_ns")
_BY_REASON = ("kernel", "how", "likeness")
_REPLAYED = "it is of a graph's replay"
_CAPTURE = "--capture FILE, a trace of the graph's capture, tells its op"


class _Group(msgspec.Struct, frozen=True):
    """Calls with one signature, one set of kernels, one context and one exchange."""

    signature: int
    kernels: tuple[str, ...]
    context: Context | None
    exchange: int | None
    mean_ns: float


class RowMaker:
    """Makes rows of launches.

    Args:
        signatures: Of `owned_launches`.
        op_calls: Of the attribution.
        contexts: Of each node of the tree that has one.
        device: For bounds; None: rows have none.
        lengths: What the user says of them.
        exchanges: What launches exchange, by the number that they have as `exchange`.
        output_code: Sources of compiled kernels.
    """

    def __init__(
        self,
        signatures: pl.DataFrame,
        op_calls: tuple[OpCalls, ...],
        contexts: Mapping[int, Context],
        device: Device | None,
        lengths: Lengths,
        exchanges: Sequence[Exchange] = (),
        output_code: OutputCode | None = None,
    ) -> None:
        self._signatures = {row["signature"]: row for row in signatures.iter_rows(named=True)}
        self._models: dict[int, Found | None] = {
            number: model_of(row["op"] or "") for number, row in self._signatures.items()
        }
        self._op_calls = op_calls
        self._contexts = contexts
        self._device = device
        self._lengths = lengths
        self._exchanges = exchanges
        self._output_code = output_code

    def place(self, launches: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """`launches` with the number of each one's `row`, and the rows: columns `MODELLED`.

        Args:
            launches: Of `infer_signatures`, with `exchange` and `likeness`.
        """
        is_owned = launches["signature"].is_not_null()
        group, groups = self._grouped(launches.select(_GROUPED).filter(is_owned))
        rows: dict[tuple[Any, ...], int] = {}
        of_group = [
            rows.setdefault((*self._arguments(group.signature), found), len(rows))
            for group, found in zip(groups, self._evaluate(groups), strict=True)
        ]
        reason, reasons = _by_reason(launches.select(_BY_REASON).filter(~is_owned), len(rows))
        row = np.empty(launches.height, dtype=np.int64)
        row[is_owned.to_numpy()] = np.array(of_group, dtype=np.int64)[group]
        row[~is_owned.to_numpy()] = reason
        described = [_describe(number, key[:-1], key[-1]) for key, number in rows.items()]
        return launches.with_columns(pl.Series("row", row)), pl.DataFrame([*described, *reasons], schema=MODELLED)

    def _grouped(self, owned: pl.DataFrame) -> tuple[Numbers, list[_Group]]:
        """The group of each of these launches, and the groups by their first launches.

        Contexts part only calls whose model asks for them, exchanges only collectives.
        """
        sets, names = kernels_of_calls(owned)
        distinct = list(dict.fromkeys(self._contexts.values()))
        exchange = owned.select("call", "exchange").drop_nulls().unique("call", keep="first", maintain_order=True)
        keyed = (
            owned.select("call", "signature", "dur_ns", self._context(distinct))
            .join(exchange, on="call", how="left", maintain_order="left")
            .join(sets, on="call", how="left", maintain_order="left")
        )
        parting = ["signature", "kernels", "context", "exchange"]
        group, first = number_by_first(keyed.select(parting))
        mean_ns = (pl.col("dur_ns").sum() / pl.col("call").n_unique()).alias("mean_ns")
        means = keyed.select("call", "dur_ns", group=group).group_by("group").agg(mean_ns).sort("group")
        parted = keyed.select(parting)[first].with_columns(means["mean_ns"])
        groups = [
            _Group(signature, names[kernel_set], None if at is None else distinct[at], number, mean_ns)
            for signature, kernel_set, at, number, mean_ns in parted.iter_rows()
        ]
        return group, groups

    def _context(self, distinct: Sequence[Context]) -> pl.Expr:
        """The place of the context of each call whose model asks for it: that of its first launch."""
        place = {context: number for number, context in enumerate(distinct)}
        of_node = {node: place[context] for node, context in self._contexts.items()}
        needing = [number for number, found in self._models.items() if found and found.needs_lengths]
        if not of_node or not needing:
            return pl.lit(None, dtype=pl.Int64).alias("context")
        context = pl.col("node").replace_strict(of_node, default=None, return_dtype=pl.Int64)
        return pl.when(pl.col("signature").is_in(needing)).then(context.first().over("call")).alias("context")

    def _arguments(self, signature: int) -> tuple[str | None, ...]:
        row = self._signatures[signature]
        return tuple(row[name] for name in SIGNATURE)

    def _evaluate(self, groups: list[_Group]) -> list[Bounded]:
        """What one call of each group takes."""
        kinds = [(self._arguments(group.signature), group.context) for group in groups]
        sets = Counter(kinds)
        slowest = dict.fromkeys(kinds, 0.0)
        for group, kind in zip(groups, kinds, strict=True):
            slowest[kind] = max(slowest[kind], group.mean_ns)
        return [
            self._bounded(group, is_only=sets[kind] == 1, is_quicker=group.mean_ns < _QUICKER * slowest[kind])
            for group, kind in zip(groups, kinds, strict=True)
        ]

    def _bounded(self, group: _Group, *, is_only: bool, is_quicker: bool) -> Bounded:
        row, found = self._signatures[group.signature], self._models[group.signature]
        if found is None or found.family == COLLECTIVES:
            exchange = self._exchanges[group.exchange] if group.exchange is not None else None
            if exchange is not None and exchange.message_bytes is not None:
                return bounded_exchange(exchange, self._device)
        inside = (
            calls_inside(self._op_calls[row["op_source"]], row["op_call"], found)
            if found and found.looks_inside
            else ()
        )
        window = self._lengths.window if is_only or is_quicker else None
        if found and found.needs_lengths and group.context and is_quicker and window is None:
            return Bounded(found.family, reason=_MAY_BE_WINDOWED)
        try:
            lengths = replace(self._lengths, context=group.context, window=window)
            source = self._output_code.find(row["op"], row["kernel_file"]) if self._output_code else None
            call = recorded_call(row, group.kernels, lengths, inside, source)
        except Unmodelled as unmodelled:
            return Bounded(found.family if found else None, reason=str(unmodelled))
        return replace(bounded(call, self._device), counterpart=counterpart_of(call))


def _by_reason(unowned: pl.DataFrame, first: int) -> tuple[Numbers, list[dict[str, Any]]]:
    """The row of each launch without an op, and these rows: one for each kernel and reason, numbered from `first`."""
    number, places = number_by_first(unowned)
    keys = unowned[places].select(pl.col("how", "likeness").cast(pl.String))
    rows = [
        {**dict.fromkeys(MODELLED), "row": row, "reason": _why(*why)} for row, why in enumerate(keys.iter_rows(), first)
    ]
    return number + first, rows


def _why(how: str, likeness: Likeness | None) -> str:
    of_known = "" if likeness is None else f"; {LIKENESS[likeness]}"
    if how == "graph_launch":
        return f"{_REPLAYED}{of_known}: {_CAPTURE}"
    return REASONS.get(how, "no op was open where it was launched") + of_known


def _describe(number: int, arguments: tuple[str | None, ...], found: Bounded) -> dict[str, Any]:
    work = found.work
    described: dict[str, Any] = {**dict.fromkeys(MODELLED), "row": number, "family": found.family}
    described |= dict(zip(SIGNATURE, arguments, strict=True))
    op_and_arguments = arguments[: 1 + len(ARGUMENTS)]
    described |= {"sizes_recorded": work is not None or has_sizes(*op_and_arguments), "reason": found.reason or None}
    if found.counterpart is not None:
        described |= {"operator": found.counterpart.operator, "operator_args": found.counterpart.args}
    if work is not None:
        other = work.vector_flops + work.special_ops
        described |= {
            "dtype": work.dtype,
            "flops": work.matrix_flops if work.products else other,
            "vector_flops": work.vector_flops,
            "special_ops": work.special_ops,
            "read_bytes": work.read_bytes,
            "write_bytes": work.written_bytes,
            "link_bytes": work.link_bytes,
            "bound_of_call_ns": found.bound_ns,
            "warm_bound_of_call_ns": found.warm_ns,
            **dict(zip(PARTS, found.parts_ns or (None, None, None), strict=True)),
            "binding": found.binding if found.bound_ns is not None else None,
            "assumes": list(work.assumes),
        }
    return described
