"""The one row of a digest's table `traces`: what the trace is of, and its times in all."""

from collections.abc import Mapping
from typing import Final

import polars as pl

from inferometer.analyses.roofline.table import Roofline
from inferometer.analyses.steps.engine_marks import FORMS, read_mark
from inferometer.analyses.steps.table import StepTable
from inferometer.analyses.tables.kernels import KernelTable
from inferometer.analyses.tables.summary import device_times
from inferometer.fleet.tables import ABOUT
from inferometer.hardware.known import find_device
from inferometer.trace.facts import Facts
from inferometer.trace.trace import Trace

_PACKAGES: Final = {  # a folder in the paths of an engine's source files
    "vllm/": "vLLM",
    "sglang/": "SGLang",
    "tensorrt_llm/": "TensorRT-LLM",
    "lmdeploy/": "LMDeploy",
    "text_generation_server/": "Text Generation Inference",
}
_SINCE_2001_NS: Final = 10**18
_MOST_NAMES: Final = 10_000


def describe_trace(
    trace: Trace, kernels: KernelTable, modelled: Roofline | None, steps: StepTable | None, launches: int
) -> pl.DataFrame:
    """The row, of results that are made already; `launches` is their number."""
    facts, devices = trace.facts, device_times(trace)
    gpus = devices.filter(pl.col("device").fill_null("") != "cpu")
    engine, version = engine_of(trace)
    stepped_ns, launch_bound_ns = _launch_bound(steps)
    row = {
        "format": facts.format,
        "tool": facts.tool,
        "framework": facts.framework,
        "model": facts.model,
        "engine": engine,
        "version": version,
        "gpu": _gpu(facts, devices, modelled),
        "gpus": gpus.height,
        "rank": facts.ranks[0] if len(facts.ranks) == 1 else None,
        "world_size": facts.world_size,
        "began_ns": _began(trace),
        "basis": kernels.basis,
        "launches": launches,
        "held_ns": int(gpus["window_ns"].sum()),
        "busy_ns": int(gpus["busy_ns"].sum()),
        "kernel_ns": kernels.total_ns,
        "op_ns": 0 if modelled is None else modelled.total_ns,
        "modelled_ns": 0 if modelled is None or modelled.device is None else modelled.modelled_ns,
        "bound_ns": None if modelled is None else modelled.bound_ns,
        "above_ns": None if modelled is None or modelled.device is None else modelled.above_ns,
        "stepped_ns": stepped_ns,
        "launch_bound_ns": launch_bound_ns,
    }
    return pl.DataFrame([row], schema=ABOUT.schema)


def engine_of(trace: Trace) -> tuple[str | None, str | None]:
    """Name and version of the engine.

    A recording of a server says both. Else the name is that of the package most of whose functions were recorded; of a
    trace without such, that of the one engine that names its steps so. Engines use each other's names of steps: an
    SGLang of 2026 marks a step as vLLM does, too. In our own recordings anybody may have marked the steps so.
    """
    server = trace.facts.engine_metrics.get("server")
    if isinstance(server, Mapping) and isinstance(server.get("engine"), str):
        version = server.get("version")
        return server["engine"], version if isinstance(version, str) else None
    functions = _names(trace, "frames", "frame")
    counts = {engine: int(functions.str.contains(part, literal=True).sum()) for part, engine in _PACKAGES.items()}
    most = max(counts, key=counts.__getitem__)
    if counts[most]:
        return most, None
    if trace.facts.tool == "inferometer":
        return None, None
    marks = (read_mark(name) for name in _names(trace, "spans", "span").head(_MOST_NAMES))
    engines = {FORMS[mark[0]].engine for mark in marks if mark is not None}
    return (engines.pop() if len(engines) == 1 else None), None


def _names(trace: Trace, table: str, column: str) -> pl.Series:
    found = trace.tables[table].select(pl.col(column).unique()).collect()[column]
    return found.drop_nulls().cast(pl.String).sort()


def _gpu(facts: Facts, devices: pl.DataFrame, modelled: Roofline | None) -> str | None:
    """Called as in our data where that is the one device that may be meant: the same ones are counted together."""
    if modelled is not None and modelled.device is not None:
        return modelled.device.name
    named = devices.sort("launches", "device", descending=[True, False], nulls_last=True)["name"].drop_nulls()
    name = named[0] if len(named) else next((device.name for device in facts.devices if device.name), None)
    known = None if name is None else find_device(name)
    return name if known is None else known.name


def _began(trace: Trace) -> int | None:
    """When its first launch began, ns since 1970; None where the clock isn't tied to the wall clock.

    Some sources have absolute times and don't say so: no clock that counts from a machine's boot is past 2001.
    """
    start: int | None = trace.launches.select(pl.col("start_ns").min()).collect().item()
    if start is None:
        return None
    if trace.facts.clock_base_ns is not None:
        return start + trace.facts.clock_base_ns
    return start if start > _SINCE_2001_NS else None


def _launch_bound(steps: StepTable | None) -> tuple[int, int]:
    """Windows of the steps whose launch-bound time is known, and that time."""
    if steps is None:
        return 0, 0
    known = steps.steps.filter(pl.col("launch_bound_ns").is_not_null() & pl.col("window_ns").is_not_null())
    return int(known["window_ns"].sum()), int(known["launch_bound_ns"].sum())
