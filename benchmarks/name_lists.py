"""Writes kernel names one a line, all different, and prints what labels say of them with the fields of `Truth`.

    python -m benchmarks.name_lists NUMBER FILE

The labelled names of the tests, and the same with other numbers, which change neither library nor family.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from benchmarks.names import distinct_names, read_labels
from benchmarks.trace_files import NAME_LABELS

_MORE: Final = 4


def main(number: str, path: str) -> None:
    labels = {row["name"]: row for file in sorted(NAME_LABELS.glob("*.json")) for row in read_labels(file)}
    wanted = int(number)
    names = distinct_names(list(labels), _MORE * wanted)[:wanted]  # some have no number that could change
    assert len(names) == wanted
    Path(path).write_text("".join(f"{name}\n" for name in names), "utf-8")
    known = {name: {key: labels[name][key] for key in ("library", "family")} for name in names if name in labels}
    said = {"launches": 0, "kernel_ns": 0, "events": len(names), "rows": {}, "tables": {"names": known}}
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
