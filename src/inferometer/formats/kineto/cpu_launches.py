"""Ops as launches of device `cpu`: on a machine without a GPU, the processor is the device.

A launch is an op that computes, the outermost one: what it calls within is its own doing. Ops that PyTorch makes of
other ops (`aten::linear`) are none, those others are; so the launches are the ops that an interception below such
compositions would see. Views and allocations (`aten::t`, `aten::empty`) compute nothing.

A file is of such a run if PyTorch's profiler says that it saw no device (`deviceProperties` is empty), and nothing in
it is a device's work or a call to a device's driver. What PyTorch's own ops do stands in `torch_ops.json`, as a file is
read without PyTorch; any other op (`vllm::…`, a custom one) computes.
"""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import numpy as np
import polars as pl

from inferometer.trace.builder import TraceBuilder

Kind = Literal["compute", "composed", "view"]
NOTE = (
    "Ops that compute count as launches of the device `cpu`: the file knows no GPU. A launch takes as long as its op, "
    "without the ops that PyTorch only composes of others."
)
OP_COLUMNS = ("op", "process", "thread", "start_ns", "dur_ns", "external_id", "rank")
_THREAD = ("process", "thread")
_OP = r"^\w+::\w+(\.\w+)?$"  # what the dispatcher knows has a namespace; autograd's nodes have none, or two


def find_cpu_launches(ops: pl.DataFrame, kind_of: Callable[[str], Kind]) -> pl.DataFrame:
    """Rows of `launches`: the thread is the lane (`stream`), since ops of one thread follow each other.

    Args:
        ops: `op`, `process`, `thread`, `start_ns`, `dur_ns`, `external_id`, maybe `rank`, any order.
        kind_of: What an op of that name does.
    """
    known = ops.filter(pl.col("op").str.contains(_OP))
    kinds = {name: kind_of(name) for name in known["op"].unique()}
    known = known.with_columns(pl.col("op").replace_strict(kinds, return_dtype=pl.String, default="").alias("does"))
    known = known.filter(pl.col("does") != "composed").sort(
        [*_THREAD, "start_ns", "dur_ns"], descending=[False, False, False, True], nulls_last=True, maintain_order=True
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    around = end.cum_max().shift(1).over(_THREAD)
    outermost = known.filter(around.is_null() | (pl.col("start_ns") >= around))
    return outermost.filter(pl.col("does") == "compute").select(
        pl.lit("kernel").alias("kind"),
        pl.col("op").alias("kernel"),
        pl.lit("cpu").alias("device"),
        pl.col("thread").alias("stream"),
        *("process", "start_ns", "dur_ns", "external_id"),
        *(name for name in ("rank",) if name in ops.columns),
    )


def add_cpu_launches(out: TraceBuilder, host: TraceBuilder) -> bool:
    """Launches of the ops that `host` holds, into `out`; whether there are any."""
    ops = host.frame("ops").select(OP_COLUMNS).collect()
    found = find_cpu_launches(ops, kind_of_torch_op)
    out.add("launches", found.height, found.to_dict())
    return found.height > 0


def kind_of_torch_op(name: str) -> Kind:
    """Of an op of PyTorch, with or without the name of an overload; any other computes."""
    return _known_kinds().get(name.partition(".")[0], "compute")


class _TorchOps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    composed: tuple[str, ...]
    views: tuple[str, ...]


@cache
def _known_kinds() -> dict[str, Kind]:
    known = msgspec.json.decode((files("inferometer.formats.kineto") / "torch_ops.json").read_bytes(), type=_TorchOps)
    kinds: dict[str, Kind] = {f"aten::{name}": "composed" for name in known.composed}
    return kinds | {f"aten::{name}": "view" for name in known.views}


def is_dispatched(names: pl.Series) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which names are of the dispatcher's ops (`aten::mm`, `vllm::rms_norm`): those an interception sees."""
    return names.str.contains(_OP).fill_null(value=False).to_numpy()
