"""What becomes of each category of Kineto's events: a file with one event of it is read, and its rows are looked up.

The categories are those of libkineto's `ActivityType.h` in PyTorch 2.13, and those that Kineto writes without a type.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import inferometer
from inferometer import Trace

TYPES = (
    *("cpu_op", "user_annotation", "gpu_user_annotation", "gpu_memcpy", "gpu_memset", "kernel", "external_correlation"),
    *("cuda_runtime", "cuda_driver", "cpu_instant_event", "python_function", "overhead", "mtia_runtime"),
    *("mtia_ccp_events", "mtia_insight", "cuda_sync", "cuda_event", "mtia_counters", "glow_runtime"),
    *("cuda_profiler_range", "hpu_op", "xpu_runtime", "xpu_driver", "collective_comm", "privateuse1_runtime"),
    *("privateuse1_driver", "xpu_scope_profiler"),
)
OTHERS = ("hip_runtime", "hip_driver", "xpu_sync", "hardware_counters", "Trace", "ac2g", "fwdbwd")
_PHASES = {
    "cpu_instant_event": "i",
    **dict.fromkeys(("mtia_counters", "xpu_scope_profiler", "hardware_counters"), "C"),
    **dict.fromkeys(("ac2g", "fwdbwd"), "s"),
}
_ARGS: dict[str, dict[str, Any]] = {
    "cpu_instant_event": {"Bytes": 512, "Total Allocated": 512, "Device Type": 1, "Device Id": 0},
    "cuda_profiler_range": {"dram__bytes_read.sum": 64},
    "mtia_counters": {"one": 1, "other": 2},
    "xpu_scope_profiler": {"one": 1, "other": 2},
    "hardware_counters": {"": 1},
}
_DEVICE = {"device": 0, "stream": 7, "correlation": 1}


def event_of(category: str) -> dict[str, Any]:
    """One event as Kineto writes it."""
    phase = _PHASES.get(category, "X")
    name = "[memory]" if category == "cpu_instant_event" else "name"
    pid = "GPU 0 Counters" if category == "hardware_counters" else 1
    event = {"ph": phase, "cat": category, "name": name, "pid": pid, "tid": 2, "ts": 1}
    if phase == "X":
        event["dur"] = 1
    return event | {"args": _ARGS.get(category, _DEVICE)}


def read_one(category: str) -> Trace:
    """A trace of that event alone."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event_of(category)]}), "utf-8")
        return inferometer.open(path)


def outcome(trace: Trace) -> tuple[str, str]:
    """The tables that have a row of it, and what else is to say: its device, or the name under which it is counted."""
    tables = [name for name, frame in trace.tables.items() if frame.collect().height]
    if not tables:
        return "", ", ".join(loss.name for loss in trace.losses if loss.dropped)
    first = trace.tables[tables[0]].collect()
    known = {name: first[name][0] for name in ("kind", "device", "domain") if name in first.columns}
    return ", ".join(tables), ", ".join(f"{name} `{value}`" for name, value in known.items() if value is not None)


def rows() -> Sequence[tuple[str, str, str, str]]:
    """Category, phase, tables and remark of each."""
    found = []
    for category in (*TYPES, *OTHERS):
        tables, remark = outcome(read_one(category))
        if not tables:
            remark = f"counted as [`{remark}`](losses.md)"
        links = ", ".join(f"[`{name}`](tables.md#{name})" for name in tables.split(", ") if name)
        found.append((f"`{category}`", f"`{event_of(category)['ph']}`", links or "none", remark))
    return found


def page(markdown_table: Callable[[Sequence[str], Sequence[Sequence[str]]], str]) -> str:
    """The page, as Markdown."""
    table = markdown_table(("Category", "Phase", "Tables", "As"), rows())
    return f"""\
# Events of Kineto

What becomes of each category of events in a PyTorch profile: of each of libkineto's activity types, and of what it
writes under other names. To make this table, a file with one such event was read. A category that isn't here is counted
as `unknown_category` under its name.

{table}

- A launch's device is `gpu:N`, of XPUs, too; MTIA's is `mtia:N`.
- Of MTIA, HPU, XPU and PrivateUse1 no recording was at hand: their events are read by what libkineto says of them.
- Flow arrows (`ac2g`, `fwdbwd`, `async_cpu_to_gpu`) aren't needed: launches join calls by `correlation`. Where arrows
  say something else, they aren't believed.
- Files of Dynolog, also unfinished ones (`.json.tmp`), and those that HolisticTraceAnalysis or TraceLens have trimmed
  are read as any other.
"""
