"""How many times as long a peer takes as we do, of every suite's last run, as bars: `benchmarks/results/ratios.md`.

    python -m benchmarks.ratios            write the page; `make benchmark` does at its end

A ratio is of medians of one run of a suite, on the same file. HTA and `json.load` load a file and add up its kernels;
those of SQLite do what `kernels` does.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.trace_files import ROOT

_RESULTS: Final = ROOT / "benchmarks" / "results"
_BESIDE: Final[Mapping[str, Sequence[str]]] = {
    "ingest": ("kernels", "import", "summary", "findings", "report"),
    "scaling": ("kernels", "import", "summary"),
    "nsys": ("kernels",),
}
_FILE: Final = re.compile(r"\S+\.(?:json|sqlite)(?!\S)")
_OPENING: Final = """\
# Ours and the peers', as bars

A bar is a peer's time over ours on the same file in the same run: above 1 we are quicker. Written by
`python -m benchmarks.ratios` from the runs below; ranges, memory and how it was measured are there.
"""
_WIDTH: Final = 40  # characters of the longest bar
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True)
class Beside:
    """One of our commands next to a peer on one file: `ratio` is the peer's time over ours."""

    file: str
    ours: str
    peer: str
    ratio: float


def find_ratios(run: Mapping[str, Any], ours: Sequence[str]) -> list[Beside]:
    """Of each peer and each of our commands on the peer's file; `run` is what `benchmarks.run` wrote as JSON."""
    found = []
    for peer in (case for case in run["cases"] if case["peer"]):
        title, _, command = peer["command"].rpartition(": ")
        file = _file_of(command)
        for case in run["cases"]:
            words = case["command"].split()
            if case["peer"] or words[1] not in ours or _file_of(case["command"]) != file or "--by" in words:
                continue
            found.append(Beside(file, words[1], title, peer["wall_ns"]["median"] / case["wall_ns"]["median"]))
    return found


def render(runs: Sequence[Mapping[str, Any]]) -> str:
    """The page of so many runs."""
    parts = [_OPENING]
    for run in runs:
        suite = run.get("suite", "ingest")
        ratios = find_ratios(run, _BESIDE[suite])
        versions = ", ".join(f"{name} {version}" for name, version in run["versions"].get("peers", {}).items())
        parts.append(f"## [{suite}]({suite}.md), {run['date']}, commit {run['versions']['ours']['commit']}\n\n"
                     f"{versions}\n\n" + "\n".join(_lines(ratios)) + "\n")  # fmt: skip
    return "\n".join(parts)


def bar(ratio: float, longest: float) -> str:
    """So long a bar, of eighths of a character; the longest has `_WIDTH`."""
    eighths = max(1, round(_WIDTH * 8 * ratio / longest))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def last_runs(results: Path) -> list[Mapping[str, Any]]:
    """Of each suite the run with the latest date.

    Raises:
        FileNotFoundError: A suite has none.
    """
    runs = []
    for suite in _BESIDE:
        files = sorted(results.glob(f"{suite}-????-??-??.json"))
        if not files:
            raise FileNotFoundError(f"{results}: no run of the suite {suite}: python -m benchmarks.run --suite {suite}")
        runs.append(json.loads(files[-1].read_bytes()))
    return runs


def _lines(ratios: Sequence[Beside]) -> Iterator[str]:
    longest = max((each.ratio for each in ratios), default=1.0)
    yield "| file | ours | the peer | its time over ours | |"
    yield "| --- | --- | --- | ---: | --- |"
    for each in sorted(ratios, key=lambda each: (each.file, each.ours, -each.ratio)):
        yield (f"| `{each.file}` | `{each.ours}` | {each.peer} | {each.ratio:.1f} × | `{bar(each.ratio, longest)}` |")


def _file_of(command: str) -> str:
    found = _FILE.search(command)
    return found.group() if found else ""


def main() -> int:
    try:
        page = render(last_runs(_RESULTS))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    (_RESULTS / "ratios.md").write_text(page, "utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
