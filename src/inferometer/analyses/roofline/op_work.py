"""What the ops of a trace must do by their arguments, with or without times: calls, FLOPs, bytes, least time.

Ops call ops: a piece of work counts once, at the outermost call whose work is known.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl
from msgspec.structs import replace
from numpy.typing import NDArray

from inferometer.analyses.hardware.devices import device_of
from inferometer.analyses.launched_by.op_calls import NEEDED as CALLS_NEEDED
from inferometer.analyses.launched_by.op_calls import NONE, OpCalls
from inferometer.analyses.result import Result
from inferometer.analyses.roofline.op_nesting import ARGUMENTS, OF_NODES, calls_of
from inferometer.analyses.roofline.work import Bounded, bounded, calls_inside, recorded_call
from inferometer.analyses.rows import compile_match, first_rows, matching
from inferometer.errors import InputError
from inferometer.hardware.device import Device
from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.family import model_of
from inferometer.operators.framework.no_data import why_no_data
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace

NEEDED: Final = {
    "ops": (*CALLS_NEEDED["ops"], "sequence_number"),
    "op_nodes": (*OF_NODES, *ARGUMENTS),
}
_SIGNATURE: Final = ("op", *ARGUMENTS, "kernel_file")
_NUMBERS: Final = ("flops", "read_bytes", "write_bytes")
_SCHEMA: Final = {
    **dict.fromkeys(("op", "family", *ARGUMENTS), pl.String),
    **dict.fromkeys(("calls", "counted", *_NUMBERS), pl.Int64),
    "bound_ns": pl.Float64,
    **dict.fromkeys(("binding", "reason"), pl.String),
    **dict.fromkeys(("total_flops", "total_bytes"), pl.Int64),
    "total_bound_ns": pl.Float64,
}
_MOST: Final = 2**63 - 1
_INSIDE_EACH: Final = 200  # calls that are looked at for each, on the mean; real ones make a few dozen


@dataclass(frozen=True)
class OpWork(Result):
    """`frame`: a row for each op and arguments; the most time first where a device is known, else the most FLOPs.

    `flops` (of matrix units, or of other arithmetic where there are no products), `read_bytes`, `write_bytes` and
    `bound_ns` are of one call, null with a `reason`. `counted`: calls that count; the others are within one that does,
    or unknown, or move no data themselves. Totals are those of the counted calls. `calls` are `counted`, `inside`,
    `without_data` and `unknown` ones.
    """

    view: ClassVar[str] = "op_work"
    source: str
    frame: pl.DataFrame
    shown: pl.DataFrame
    device: str | None
    has_times: bool
    calls: int
    counted: int
    inside: int
    without_data: int
    unknown: int
    flops: int
    bytes: int
    bound_ns: float | None
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """The rows that were asked for."""
        return self.shown

    def as_json(self) -> dict[str, Any]:
        names = (
            *("source", "device", "has_times", "calls", "counted", "inside", "without_data", "unknown"),
            *("flops", "bytes", "bound_ns"),
        )
        return {
            **{name: getattr(self, name) for name in names},
            "rows": self.shown.to_dicts(),
            "losses": self.losses.as_dict(),
        }


def op_work(trace: Trace, *, device: Device | None = None, top: int | None = None, match: str | None = None) -> OpWork:
    """Group the calls by op and arguments.

    Args:
        trace: With `NEEDED`.
        device: Bound by it; else by the one that the trace names, if it does.
        top: Show so many rows.
        match: Show ops whose name this regular expression finds.

    Raises:
        InputError: The trace has no ops, or `match` is no regular expression.
    """
    pattern = compile_match(match)
    calls = calls_of(trace)
    if calls is None:
        raise InputError(
            f"{trace.facts.source}: expected ops of a framework, found none",
            hint="Record them: torch.profiler.profile(record_shapes=True), or an ExecutionTraceObserver.",
        )
    if device is None:
        device = _named(trace)
    found = _Work(calls, device)
    counts, inside = found.count()
    without_data = int((found.has_no_data() & ~inside).sum())
    frame = found.rows(counts).sort(
        *(["total_bound_ns"] if device else []),
        *("total_flops", "total_bytes", "calls", "op", *ARGUMENTS),
        descending=[True] * (4 if device else 3) + [False] * (1 + len(ARGUMENTS)),
        nulls_last=True,
    )
    bounds = frame["total_bound_ns"].drop_nulls()
    return OpWork(
        source=trace.facts.source,
        frame=frame,
        shown=first_rows(matching(frame, "op", pattern), top),
        device=device.name if device else None,
        has_times=not trace.op_nodes.select("op").head(1).collect().height,
        calls=len(calls),
        counted=int(counts.sum()),
        inside=int(inside.sum()),
        without_data=without_data,
        unknown=len(calls) - int(counts.sum()) - int(inside.sum()) - without_data,
        flops=sum(frame["total_flops"].drop_nulls().to_list()),  # of a broken file more than 64 bits hold
        bytes=sum(frame["total_bytes"].drop_nulls().to_list()),
        bound_ns=float(bounds.sum()) if device else None,
        losses=trace.losses,
    )


def _named(trace: Trace) -> Device | None:
    """The one device that the trace names; None where it names none of ours, or several."""
    found = [device_of(each) for each in trace.facts.devices]
    return found[0] if found and all(each == found[0] for each in found) else None


class _Work:
    """The work of each call; that of equal calls is found once."""

    def __init__(self, calls: OpCalls, device: Device | None) -> None:
        self._calls = calls
        self._device = device
        self._signatures: list[dict[str, str | None]] = []
        self._works: list[Bounded] = []
        self._known: dict[Any, int] = {}
        self._effort = _INSIDE_EACH * len(calls)
        recorded = calls.rows(range(len(calls))).select(_SIGNATURE)
        self._number = np.array([self._of(call, row) for call, row in enumerate(recorded.iter_rows())], dtype=np.int64)

    def _of(self, call: int, row: tuple[str | None, ...]) -> int:
        """The number of the call's signature."""
        key = row, self._inside(call, row[0] or "")
        if key not in self._known:
            self._known[key] = len(self._works)
            self._signatures.append(dict(zip(_SIGNATURE, row, strict=True)))
            self._works.append(self._bounded(self._signatures[-1], key[1]))
        return self._known[key]

    def _inside(self, call: int, op: str) -> tuple[OpCall, ...]:
        """What the model of this op looks at; nothing once damaged nesting has taken all the effort there is."""
        model = model_of(op)
        if model is None or not (model.looks_inside or model.forward_op):
            return ()
        self._effort -= len(self._calls.within(call)) if model.looks_inside else 0
        return calls_inside(self._calls, call, model) if self._effort >= 0 else ()

    def _bounded(self, row: dict[str, str | None], inside: tuple[OpCall, ...]) -> Bounded:
        try:
            found = bounded(recorded_call(row, inside=inside), self._device)
        except Unmodelled as unmodelled:
            found = Bounded(None, reason=str(unmodelled))
        why = why_no_data(row["op"] or "") if found.work is None else None
        return replace(found, reason=why) if why else found

    def has_no_data(self) -> NDArray[np.bool_]:
        """Which calls are unknown since their op moves no data."""
        found = [
            work.work is None and why_no_data(row["op"] or "") is not None
            for row, work in zip(self._signatures, self._works, strict=True)
        ]
        return np.array(found, dtype=np.bool_)[self._number]

    def count(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which calls count: their work is known and that of none around them; and which are within such."""
        is_known = np.array([work.work is not None for work in self._works], dtype=np.bool_)[self._number]
        parent = self._calls.parents
        inside = np.where(parent == NONE, False, is_known[parent])  # of those around, as many as were looked at so far
        around = parent
        while (around != NONE).any():
            inside = inside | np.where(around == NONE, False, inside[around])
            around = np.where(around == NONE, NONE, around[around])
        return is_known & ~inside, inside

    def rows(self, counted: NDArray[np.bool_]) -> pl.DataFrame:
        """One for each signature."""
        calls, counts = Counter(self._number.tolist()), Counter(self._number[counted].tolist())
        rows = []
        for number, (row, found) in enumerate(zip(self._signatures, self._works, strict=True)):
            own = {name: row[name] for name in ("op", *ARGUMENTS)}
            rows.append({**own, **_numbers(found, counts[number]), "calls": calls[number], "counted": counts[number]})
        return pl.DataFrame(rows, schema=_SCHEMA)


def _numbers(found: Bounded, counted: int) -> dict[str, Any]:
    work = found.work
    if work is None:
        return {"family": found.family, "reason": found.reason}
    flops = work.matrix_flops if work.products else work.vector_flops + work.special_ops
    numbers = dict(zip(_NUMBERS, (flops, work.read_bytes, work.written_bytes), strict=True))
    totals = {"total_flops": counted * flops, "total_bytes": counted * work.moved_bytes}
    return {
        "family": found.family,
        **numbers,
        **{name: min(total, _MOST) for name, total in totals.items()},
        "bound_ns": found.bound_ns,
        "total_bound_ns": None if found.bound_ns is None else counted * found.bound_ns,
        "binding": None if found.bound_ns is None else found.binding,
        "reason": found.reason or None,
    }
