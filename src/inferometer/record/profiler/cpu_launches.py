"""The framework's ops as launches of device `cpu`: on a machine without a GPU, the processor is the device.

A launch is an op that computes, the outermost one: what it calls within is its own doing. Ops that PyTorch makes of
other ops (`aten::linear`) are none, those others are; so the launches are the ops that an interception below such
compositions would see. Views and allocations (`aten::t`, `aten::empty`) compute nothing.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import polars as pl

Kind = Literal["compute", "composed", "view"]
_ALLOCATES = ("aten::empty", "aten::new_empty", "aten::resize_", "aten::set_")
_OP = r"^\w+::\w+(\.\w+)?$"  # what the dispatcher knows has a namespace; autograd's nodes have none, or two


def find_cpu_launches(ops: pl.DataFrame, kind_of: Callable[[str], Kind]) -> pl.DataFrame:
    """Rows of `launches`: the thread is the lane (`stream`), since ops of one thread follow each other.

    Args:
        ops: `op`, `process`, `thread`, `start_ns`, `dur_ns`, `external_id`, any order.
        kind_of: What an op of that name does.
    """
    known = ops.filter(pl.col("op").str.contains(_OP))
    kinds = {name: kind_of(name) for name in known["op"].unique()}
    known = known.with_columns(pl.col("op").replace_strict(kinds, return_dtype=pl.String, default="").alias("does"))
    known = known.filter(pl.col("does") != "composed").sort(
        ["thread", "start_ns", "dur_ns"], descending=[False, False, True], nulls_last=True, maintain_order=True
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    around = end.cum_max().shift(1).over("thread")
    outermost = known.filter(around.is_null() | (pl.col("start_ns") >= around))
    return outermost.filter(pl.col("does") == "compute").select(
        pl.lit("kernel").alias("kind"),
        pl.col("op").alias("kernel"),
        pl.lit("cpu").alias("device"),
        pl.col("thread").alias("stream"),
        *("process", "start_ns", "dur_ns", "external_id"),
    )


class OpKinds:
    """What an op of a name does, as PyTorch's dispatcher knows it; an op that it doesn't know computes."""

    def __init__(self) -> None:
        self._known: dict[str, Kind] = {}

    def __call__(self, name: str) -> Kind:
        """Of one name, with its namespace; an overload's name behind a dot may be there."""
        if name not in self._known:
            self._known[name] = _kind(name.partition(".")[0])
        return self._known[name]


def _kind(name: str) -> Kind:
    if name.startswith(_ALLOCATES):
        return "view"
    try:
        import torch

        dispatcher: Any = torch._C
        _, overloads = dispatcher._jit_get_operation(name)
        for overload in overloads or ():
            full = f"{name}.{overload}" if overload else name
            if not dispatcher._dispatch_has_kernel(full):
                continue
            if dispatcher._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
                return "composed"
            returned = [each.alias_info for each in dispatcher._get_schema(name, overload).returns]
            return (
                "view" if returned and all(each is not None and not each.is_write for each in returned) else "compute"
            )
    except (ImportError, AttributeError, RuntimeError):  # another version of torch, or no such op
        pass
    return "compute"


def is_dispatched(names: pl.Series) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which names are of the dispatcher's ops (`aten::mm`, `vllm::rms_norm`): those an interception sees."""
    return names.str.contains(_OP).fill_null(value=False).to_numpy()
