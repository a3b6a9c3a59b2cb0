"""Windows of Kineto text whose marks and clock are known."""

import io
import json
from pathlib import Path
from typing import Any

from tools.kineto_maker import Options, write_trace

from inferometer.record.profiler.clock_marks import Mark
from inferometer.record.profiler.window_tables import MARK

BASE_NS = 1_767_225_600_000_000_000
Event = dict[str, Any]


def event(cat: str, name: str, start_ns: int, dur_ns: int, *, thread: int = 1, **args: int) -> Event:
    times = {"ts": start_ns / 1000, "dur": dur_ns / 1000}
    return {"ph": "X", "cat": cat, "name": name, "pid": 10, "tid": thread, **times, "args": args}


def kernel(name: str, start_ns: int, dur_ns: int, **args: int) -> Event:
    return event("kernel", name, start_ns, dur_ns) | {"pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, **args}}


def write_window(path: Path, events: list[Event], *, marks: bool = True) -> tuple[Path, list[Mark]]:
    """A window of ours whose marks say that the recording's clock is the profiler's time minus `BASE_NS`, plus 500."""
    made, ranges = [], []
    for group, at in ((0, 1_000), (1, 900_000)):
        name = f"{MARK} 1 {group}"
        made.append(Mark(name, group, at + 490, at + 510, at + 690, at + 710))
        ranges.append(event("user_annotation", name, at, 200, thread=99))
    text = {"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, "traceEvents": [*events, *(ranges if marks else [])]}
    path.write_text(json.dumps(text))
    return path, made


def write_gpu_window(path: Path) -> Path:
    """Two steps of a made up engine: kernels, calls, ops and ranges."""
    text = io.BytesIO()
    write_trace(Options(steps=2, layers=2, stack=False), text)
    path.write_bytes(text.getvalue())
    return path
