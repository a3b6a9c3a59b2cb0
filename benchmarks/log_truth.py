"""What a WebGPU engine's log says, added up line by line, printed as JSON with the fields of `Truth`.

    python -m benchmarks.log_truth FILE

Nothing of inferometer is used. Made for logs of `tools/make_webgpu_log.py`: every report is a title, a table of labels
with milliseconds, and a total.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

_TITLE: Final = re.compile(r"\]\[Profile\] (Prefill|Batch decode) ")
_TIME: Final = re.compile(r"(\S+) +(\d+)\.(\d{3}) +\d+\.\d")
_TOTAL: Final = "TOTAL"


def main(path: str) -> None:
    kernels: dict[str, Counter[str]] = defaultdict(Counter)
    steps: dict[str, Counter[str]] = defaultdict(Counter)
    phase, times = "", 0
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            if title := _TITLE.search(line):
                phase = "prefill" if title[1] == "Prefill" else "decode"
                steps[phase]["steps"] += 1
            elif (time := _TIME.fullmatch(line.rstrip("\n"))) and time[1] != _TOTAL:
                ns = (int(time[2]) * 1000 + int(time[3])) * 1000
                kernels[time[1]]["total_ns"] += ns
                times += 1
    said = {
        "launches": 0,
        "kernel_ns": sum(kernel["total_ns"] for kernel in kernels.values()),
        "events": times,
        "rows": {"totals": times, "steps": sum(phase["steps"] for phase in steps.values())},
        "tables": {"kernels": kernels, "steps": steps},
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
