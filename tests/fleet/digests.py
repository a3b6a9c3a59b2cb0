"""Fleets of digests that are written down here, without a trace behind them."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from inferometer.bench.exchange.traced_shapes import TracedShape, encode_shapes
from inferometer.fleet.digest import encode_digest
from inferometer.fleet.opening import Fleet, open_fleet
from inferometer.fleet.store import FleetWriter, source_rows
from inferometer.fleet.tables import DIGEST
from inferometer.trace.tables import Table

_ABOUT = {"format": "kineto", "basis": "launches", "gpus": 1, "launches": 1, "busy_ns": 0, "held_ns": 0, "kernel_ns": 0}
_ABOUT |= {"op_ns": 0, "modelled_ns": 0, "stepped_ns": 0, "launch_bound_ns": 0}
Rows = Sequence[Mapping[str, Any]]


def fleet_of(place: Path, traces: Mapping[str, Mapping[str, Any]]) -> Fleet:
    """By path: `about` (what differs from a trace that has nothing), `labels`, and rows of any table; or a `reason`."""
    sources = []
    with FleetWriter(place) as writer:
        for path, given in traces.items():
            if "reason" in given:
                sources.append({"path": path, "reason": given["reason"], "labels": "{}"})
                continue
            tables = {name: _frame(table, given.get(name, ())) for name, table in DIGEST.items()}
            tables["traces"] = _frame(DIGEST["traces"], [_ABOUT | dict(given.get("about", {}))])
            trace = sha256(path.encode()).hexdigest()
            writer.keep(trace, encode_digest(tables))
            labels = msgspec.json.encode(given.get("labels", {})).decode()
            sources.append({"path": path, "trace": trace, "bytes": 1, "stamp": "1", "labels": labels})
        writer.finish(source_rows(sources))
    return open_fleet(place)


def fleet_of_everything(place: Path) -> Fleet:
    """A fleet in whose answers every field has a value: a change, an outlier, ops of the catalogue, a broken file."""
    traces = {}
    for number in range(24):
        version, slow = ("1.0", 1.0) if number < 12 else ("2.0", 1.4)
        given = steps(1e6 * slow * (1 + number % 12 / 1000), version=version, deployment="d")
        given["about"] = {"gpu": "g", "held_ns": 10**9, "bound_ns": 1e8, "above_ns": 2e8, "modelled_ns": 3 * 10**8,
                          "stepped_ns": 100, "launch_bound_ns": 10}  # fmt: skip
        given["kernels"] = [kernel("k", 10**8)]
        given["classes"] = [{"phase": "decode", "class": "gemm", "total_ns": 5}]
        own = {"input_dtypes": "[]", "scalars": "[]", "family": "norms", "bound_ns": 1e7}
        catalogued = {"operator": "rms_norm", "operator_args": '{"token_count":1,"hidden_size":8}'}
        given["ops"] = [op("norm", 10**8, "[[1,8]]", **own, **catalogued), op(None, 10**7, kernel="k")]
        traces[f"t{number:02}"] = given
    sizes = ((4096, 3072), (2048, 4096), (4096, 14336), (7168, 4096), (4096, 64128))  # of Llama-3.1-8B over two devices
    traces["t01"]["ops"] += [op("aten::mm", 10**6, f"[[7,{inner}],[{inner},{outer}]]") for inner, outer in sizes]
    traces["slow"] = traces["t00"] | {"phases": steps(1e8)["phases"]}
    return fleet_of(place, traces | {"broken": {"reason": "no trace"}})


def write_shapes(file: Path) -> Path:
    """A file of three shapes with weights, one of them large."""
    args = {"rms_norm": [(1, 8, 0.1), (100_000, 8192, 0.6)], "fused_add_rms_norm": [(16, 2048, 0.3)]}
    shapes = [
        TracedShape(name, {"token_count": tokens, "hidden_size": hidden}, f"{tokens} x {hidden}", weight)
        for name, each in args.items()
        for tokens, hidden, weight in each
    ]
    file.write_bytes(encode_shapes(shapes))
    return file


def steps(ns: float, *, phase: str = "decode", **labels: str) -> dict[str, Any]:
    """A trace with one phase, whose median step takes so long."""
    row = {"phase": phase, "steps": 10, "used": 10, "window_median_ns": ns}
    return {"labels": {"model": "m", "engine": "vLLM", **labels}, "phases": [row]}


def op(name: str | None, total_ns: int, dims: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of `ops`."""
    return {"op": name, "input_dims": dims, "launches": 1, "calls": 1, "total_ns": total_ns, **more}


def kernel(name: str, total_ns: int, count: int = 1) -> dict[str, Any]:
    """A row of `kernels`."""
    return {"kernel": name, "short": name, "family": "gemm", "library": "x", "count": count, "total_ns": total_ns}


def _frame(table: Table, rows: Rows) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in table.schema} for row in rows], schema=table.schema)
