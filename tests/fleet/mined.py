"""Fleets of small traces, made for tests."""

import gzip
import json
from pathlib import Path

from inferometer.fleet.mining import Mined, mine
from inferometer.fleet.workers import WorkerLimits, Workers

LIMITS = WorkerLimits(1 << 30, 60.0)


def write_trace(path: Path, *kernels: tuple[str, float], seed: int = 0) -> Path:
    """A Kineto file with these kernels, each with its time in µs, one after another; `seed` only makes it another."""
    at, events = float(seed), []
    for number, (name, dur) in enumerate(kernels):
        args = {"correlation": number, "device": 0, "stream": 7}
        events.append(
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": args}
        )
        at += dur + 1
    data = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def mined(place: Path, *words: str | Path, workers: int = 1, labels: str | None = None, retry: bool = False) -> Mined:
    """A fleet of what these words name."""
    return mine(map(str, words), place, readers=Workers(workers, LIMITS), labels=labels, retry=retry)


def bytes_of(fleet: Path) -> dict[str, bytes]:
    """All files of a fleet."""
    return {str(file.relative_to(fleet)): file.read_bytes() for file in sorted(fleet.rglob("*")) if file.is_file()}
