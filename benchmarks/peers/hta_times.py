"""HolisticTraceAnalysis on one rank's trace: its sum over kernels, where the device's window went, and why it was idle.

hta_times.py FILE                               prints JSON, times in µs; what HTA failed at is null
HTA_DISABLE_NS_ROUNDING=1 hta_times.py FILE     without its rounding of every event to whole µs
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from hta.trace_analysis import TraceAnalysis


def main(path: str) -> None:
    analysis = TraceAnalysis(trace_files={0: str(Path(path).resolve())})
    found = {
        "file": Path(path).name,
        "rounded": os.environ.get("HTA_DISABLE_NS_ROUNDING", "0") != "1",
        "kernels": rows_or_none(lambda: analysis.get_gpu_kernel_breakdown(visualize=False)[0]),
        "temporal": rows_or_none(lambda: analysis.get_temporal_breakdown(visualize=False)),
        "idle": rows_or_none(lambda: analysis.get_idle_time_breakdown(visualize=False)[0]),
    }
    print(json.dumps(found, indent=1))


def rows_or_none(ask: Callable[[], pd.DataFrame]) -> list[dict[str, Any]] | None:
    """What HTA answers; None where one of its own checks fails."""
    try:
        return json.loads(ask().to_json(orient="records"))
    except AssertionError:
        return None


if __name__ == "__main__":
    main(sys.argv[1])
