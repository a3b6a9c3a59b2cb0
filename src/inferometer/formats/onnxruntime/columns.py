"""Rows of events: of nodes and of the session, and which nodes compute."""

from typing import Any, Final

import polars as pl

from inferometer.formats.onnxruntime.events import Args, Event, shapes_of

CPU: Final = "CPUExecutionProvider"
RUN: Final = "model_run"
_SUFFIX: Final = "_kernel_time"
_US: Final = 1000
MOST_US: Final = (2**63 - 1) // _US
_COPIES: Final = ("memcpy", "memset")


def is_kernel_time(event: Event) -> bool:
    """Whether it is a node's own time, and not that of a fence around it."""
    return event.name.endswith(_SUFFIX)


def node_name(event: Event) -> str:
    """The node's name in the model."""
    return event.name.removesuffix(_SUFFIX)


def host_columns(events: list[Event]) -> dict[str, Any]:
    """When, how long, and where on the host."""
    return {
        "start_ns": [event.ts * _US for event in events],
        "dur_ns": [event.dur * _US for event in events],
        "process": [_positive(event.pid) for event in events],
        "thread": [_positive(event.tid) for event in events],
    }


def op_columns(nodes: list[Event], first: int) -> dict[str, Any]:
    """Of `ops`: `first` is the number of the first node."""
    shapes = [shapes_of(event.args.input_type_shape) for event in nodes]
    return host_columns(nodes) | {
        "op": [op_of(event) for event in nodes],
        "external_id": range(first, first + len(nodes)),
        "input_dims": [dims for dims, _ in shapes],
        "input_dtypes": [dtypes for _, dtypes in shapes],
    }


def op_of(event: Event) -> str:
    """What the node does (`MatMul`); its name where the file doesn't say."""
    return event.args.op_name or node_name(event)


def kernel_columns(kernels: list[Event]) -> dict[str, Any]:
    """Columns of `launches`, from kernels as a GPU's provider writes them."""
    names = [event.name for event in kernels]
    return {
        "kind": [next((kind for kind in _COPIES if name.lower().startswith(kind)), "kernel") for name in names],
        "kernel": names,
        "stream": [_number(event.args.stream) for event in kernels],
        "start_ns": [event.ts * _US for event in kernels],
        "dur_ns": [event.dur * _US for event in kernels],
        "grid": [_sizes(event.args, "grid") for event in kernels],
        "block": [_sizes(event.args, "block") for event in kernels],
    }


def computing(nodes: pl.DataFrame) -> pl.DataFrame:
    """Nodes of the CPU provider that run no other node, as rows of `launches` of the device `cpu`.

    Args:
        nodes: `op`, `provider`, `process`, `thread`, `start_ns`, `dur_ns`, `external_id`, in the order of the file,
            where a node comes after those that it runs.
    """
    lane = ["process", "thread"]
    ordered = nodes.with_row_index("place").sort(
        [*lane, "start_ns", "dur_ns", "place"], descending=[False, False, False, True, True], nulls_last=True
    )
    end = pl.col("start_ns") + pl.col("dur_ns")
    runs_another = (pl.col("start_ns").shift(-1).over(lane) < end).fill_null(value=False)
    return (
        ordered.filter(~runs_another, pl.col("provider") == CPU)
        .sort("place")
        .select(
            pl.lit("kernel").alias("kind"),
            pl.col("op").alias("kernel"),
            pl.lit("cpu").alias("device"),
            pl.col("thread").alias("stream"),
            *("process", "start_ns", "dur_ns", "external_id"),
        )
    )


def _sizes(args: Args, what: str) -> list[int] | None:
    sizes = [_number(getattr(args, f"{what}_{axis}")) for axis in "xyz"]
    return None if None in sizes else [size for size in sizes if size is not None]


def _number(value: str | int | None) -> int | None:
    """A whole number of 0 or more; -1 is none."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) < 19 else None
    return _positive(value)


def _positive(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None
