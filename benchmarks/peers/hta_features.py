"""Asks HTA for each feature that `docs/guide/compared.md` says it has, on traces of a folder: `hta_features.py FOLDER`.

Writes a trace with counters into FOLDER, too. Prints JSON: HTA's version, and for each feature what kind of thing
answered, or what it failed with. For the environment of the peers (`make benchmark`), which has no Inferometer.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # with it, a breakdown ends with an AssertionError on such traces


def main(folder: str) -> None:
    """Ask, one feature after the other."""
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]
    from hta.trace_diff import LabeledTrace, TraceDiff  # type: ignore[import-not-found]

    analysis = TraceAnalysis(trace_dir=folder)
    ranks = sorted(analysis.t.traces)
    step = analysis.get_profiler_steps()
    asked: dict[str, Any] = {
        "Kernels by time": lambda: analysis.get_gpu_kernel_breakdown(visualize=False),
        "Who launched a kernel: op, module, line": lambda: analysis.get_aten_op_kernels_and_delay(ranks[:1]),
        "Why a device is idle": lambda: analysis.get_idle_time_breakdown(ranks=ranks[:1], visualize=False),
        "Exposed communication, late ranks": lambda: analysis.get_comm_comp_overlap(visualize=False),
        "Comparing runs": lambda: TraceDiff.compare_traces(
            LabeledTrace(label="a", trace_dir=folder), LabeledTrace(label="b", trace_dir=folder)
        ),
        "Critical path": lambda: analysis.critical_path_analysis(ranks[0], "ProfilerStep", 0),
        "Time line to look at": lambda: analysis.generate_trace_with_counters(output_suffix="_counters"),
        "Queries of one's own": lambda: analysis.t.get_trace(ranks[0]),
        "Many traces at once": lambda: ranks,
    }
    found = {name: _answer(ask) for name, ask in asked.items()}
    print(json.dumps({"hta": version("HolisticTraceAnalysis"), "steps": len(step), "features": found}, indent=2))


def _answer(ask: Any) -> str:
    try:
        return type(ask()).__name__
    except Exception as error:  # noqa: BLE001 - what it fails with is the answer
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
