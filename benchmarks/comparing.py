"""Measures how long a comparison takes next to loading the two traces.

    python -m benchmarks.comparing                    two synthetic Kineto files of about 504 MB
    python -m benchmarks.comparing --steps 8          tries it in seconds

The second file has one kernel that takes 1.3 times as long; no time is reported unless it comes first, within its
interval. Bar: loading and comparing in at most 2.5 times the time of loading. JSON goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import inferometer
from inferometer.analyses.compare.comparison import NEEDED, Comparison, compare

ROOT = Path(__file__).resolve().parents[1]
BAR = 2.5
FACTOR = 1.3


def make_files(folder: Path, steps: int) -> list[Path]:
    """The pair, made once and kept."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"compare-{steps}-{side}.json" for side in ("base", "candidate")]
    for path, more in zip(paths, ([], ["--slow", "silu", str(FACTOR), "--seed", "7"]), strict=True):
        if not path.exists():
            command = [sys.executable, "tools/make_kineto.py", "--steps", str(steps), "--out", str(path), *more]
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return paths


def is_right(found: Comparison) -> bool:
    """Whether the slower kernel comes first, by as much as it was slowed."""
    first = found.changes.changed[0] if found.changes.changed else None
    if first is None or first.interval_ns is None or "silu" not in first.name:
        return False
    return first.interval_ns[0] <= (FACTOR - 1) * first.base_ns <= first.interval_ns[1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=218, help="steps of each trace (218: 504 MB)")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    paths = make_files(ROOT / ".bench", options.steps)
    loads, compares = [], []
    for _ in range(options.repetitions):
        began = time.perf_counter()
        traces = [inferometer.open(path, NEEDED) for path in paths]
        loaded = time.perf_counter()
        found = compare(*traces)
        compares.append(time.perf_counter() - loaded)
        loads.append(loaded - began)
        if not is_right(found):
            print("refused: the slower kernel was not found", file=sys.stderr)
            return 1
    best = min(range(options.repetitions), key=lambda i: loads[i] + compares[i])
    ratio = (loads[best] + compares[best]) / loads[best]
    report = {
        "bytes": [path.stat().st_size for path in paths],
        "load_s": round(loads[best], 3),
        "compare_s": round(compares[best], 3),
        "ratio": round(ratio, 3),
        "bar": BAR,
        "met": ratio <= BAR,
    }
    print(json.dumps(report, indent=1))
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
