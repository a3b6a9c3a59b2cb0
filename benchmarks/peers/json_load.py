"""What an engineer writes first: `json.load`, then a sum by kernel. Standard library only."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path


def main(path: str) -> None:
    with Path(path).open(encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    total_ns: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            total_ns[event["name"]] += round(event["dur"] * 1000)
    print(json.dumps({"kernel_ns": total_ns.total()}))


if __name__ == "__main__":
    main(sys.argv[1])
