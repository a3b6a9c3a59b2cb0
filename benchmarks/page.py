"""The page of a million launches: how long it takes to write, to open, and between two frames as one zooms and pans.

    python -m benchmarks.page
    python -m benchmarks.page --kernels 100000 --out -

An Nsight Systems export of eager decoding is made (`tools/make_nsys.py`), `inferometer report` writes its page, and
headless Chromium opens it on two cores, without a GPU, each time in a browser that was just started: both three times.
Frames are counted by `requestAnimationFrame`: the gaps between them are what a reader sees. Memory is the script's heap
after a collection, before and after 200 zooms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import describe_machine, our_versions, use_cores
from benchmarks.processes import Run, measure_process
from benchmarks.trace_files import ROOT, run_python

CORES = 2
ZOOMS = 200
WRITES = OPENINGS = 3
RESULTS = ROOT / "benchmarks" / "results" / "page.md"
BARS = {"write_s": 15.0, "peak_gb": 1.5, "open_s": 2.0, "frame_ms": 1000 / 30}
_VIEWER = "document.querySelector('.time-line').viewer"
_MOVES = {
    "zoom": "v.zoom(i % 40 < 20 ? 1.25 : 1 / 1.25, v.width * 0.4)",
    "pan": "v.pan(i % 40 < 20 ? 0.05 : -0.05)",
}
_FRAMES = """(async (v) => {
  const frame = () => new Promise(requestAnimationFrame);
  v.showAll();
  if (%s) v.zoom(40, v.width / 3);
  await frame();
  let last = await frame();
  const gaps = [];
  for (let i = 0; i < %d; i += 1) {
    %s;
    const now = await frame();
    gaps.push(now - last);
    last = now;
  }
  return gaps;
})(%s)"""


@dataclass(frozen=True)
class Found:
    """What one run found: the command's cost, and of the browser times in ms and bytes of its heap.

    `busy_ms`: processor time of the page's main thread until the time line was drawn, whatever else runs.
    """

    kernels: int
    events: int
    write: Run
    page_bytes: int
    open_ms: float
    busy_ms: float
    gaps: dict[str, list[float]]
    heap: tuple[int, int]


def main(arguments: list[str] | None = None) -> int:
    """Measures and writes the results. Exit 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--out", default=str(RESULTS), help="where the results go; - is stdout")
    given = parser.parse_args(arguments)
    cores = use_cores(CORES)
    machine = describe_machine(cores)
    with tempfile.TemporaryDirectory() as folder:
        found, browser = measure(given.kernels, Path(folder))
    text = render(found, machine, browser)
    if given.out == "-":
        print(text, end="")
    else:
        Path(given.out).write_text(text, "utf-8")
    return 0 if all(good for *_, good in verdicts(found)) else 1


def measure(kernels: int, folder: Path) -> tuple[Found, str]:
    """Writes the page in `folder` and opens it; what was found, and the browser's version."""
    from tests.reports.page.browser import chromium

    trace, page = folder / "trace.sqlite", folder / "page.html"
    run_python(ROOT / "tools" / "make_nsys.py", "--kernels", str(kernels), "--out", str(trace))
    command: list[str | Path] = [sys.executable, "-m", "inferometer", "report", trace, "-o", page, "--force"]
    writes = [measure_process(command, folder)[0] for _ in range(WRITES)]
    write = replace(_middle(writes), peak_bytes=max(each.peak_bytes for each in writes))
    opened_ms = [_open_once(folder / f"profile-{number}", page) for number in range(OPENINGS - 1)]
    with chromium(folder / "profile") as tab:
        tab.call("Performance.enable", timeDomain="threadTicks")
        opened_ms.append(_open(tab, page))
        open_ms = median(opened_ms)
        counted = {each["name"]: each["value"] for each in tab.call("Performance.getMetrics")["metrics"]}
        tab.run("document.querySelector('.time-line').scrollIntoView({behavior: 'instant'})")
        version = str(tab.call("Browser.getVersion")["product"])
        gaps = {name: _gaps(tab, move, is_near=name == "pan") for name, move in _MOVES.items()}
        heap = []
        for _ in range(2):
            _gaps(tab, _MOVES["zoom"], is_near=False)
            tab.call("HeapProfiler.collectGarbage")
            heap.append(int(tab.call("Runtime.getHeapUsage")["usedSize"]))
        events = int(tab.run(f"{_VIEWER}.source.about.name_count.reduce((a, b) => a + b, 0)"))
    busy_ms = counted["TaskDuration"] * 1e3
    return Found(kernels, events, write, page.stat().st_size, open_ms, busy_ms, gaps, (heap[0], heap[1])), version


def _middle(runs: Sequence[Run]) -> Run:
    return sorted(runs, key=lambda run: run.wall_ns)[len(runs) // 2]


def _open_once(profile: Path, page: Path) -> float:
    from tests.reports.page.browser import chromium

    with chromium(profile) as tab:
        return _open(tab, page)


def _open(tab: Any, page: Path) -> float:
    """How long it takes until the page is drawn, ms, in a browser that shows a small page before, as readers' do."""
    small = page.with_name("small.html")
    small.write_text("<!doctype html><title>small</title><p>before", "utf-8")
    tab.open(small)
    began = time.monotonic()
    tab.open(page)
    tab.wait(f"{_VIEWER}?.drawn > 0")
    return (time.monotonic() - began) * 1e3


def _gaps(tab: Any, move: str, *, is_near: bool) -> list[float]:
    return sorted(tab.run(_FRAMES % ("true" if is_near else "false", ZOOMS, move, _VIEWER)))


def quantile(ordered: list[float], share: float) -> float:
    """The value at this share of them."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def verdicts(found: Found) -> list[tuple[str, str, str, bool]]:
    """What is asked, what was found, the bar, and whether it holds."""
    wall_s, peak_gb, open_s = found.write.wall_ns / 1e9, found.write.peak_bytes / 1e9, found.open_ms / 1e3
    rows = [
        (
            f"`inferometer report`, wall time, median of {WRITES}",
            f"{wall_s:.1f} s",
            f"{BARS['write_s']:g} s",
            wall_s <= BARS["write_s"],
        ),
        ("its largest peak of memory", f"{peak_gb:.2f} GB", f"{BARS['peak_gb']:g} GB", peak_gb <= BARS["peak_gb"]),
        ("the page", f"{found.page_bytes / 1e6:.2f} MB", "8 MB", found.page_bytes <= 8e6),
        (
            f"opened and drawn after, median of {OPENINGS}",
            f"{open_s:.2f} s",
            f"{BARS['open_s']:g} s",
            open_s <= BARS["open_s"],
        ),
    ]
    for name, gaps in found.gaps.items():
        middle, late = quantile(gaps, 0.5), quantile(gaps, 0.95)
        bar = BARS["frame_ms"]
        said = f"{middle:.1f} ms (95 %: {late:.1f} ms)"
        rows.append((f"between frames, {name}, median", said, f"{bar:.1f} ms", middle <= bar))
    grown = found.heap[1] - found.heap[0]
    rows.append((f"heap after {ZOOMS} zooms more", f"{grown / 1e6:+.2f} MB", "+2 MB", grown <= 2e6))
    return rows


def render(found: Found, machine: dict[str, object], browser: str) -> str:
    """The results as Markdown."""
    versions = ", ".join(f"{name} {value}" for name, value in our_versions(("polars", "numpy")).items())
    cores = f"{machine['cores_used']} of {machine['cores']} cores"
    lines = [
        "# The page of a million launches" if found.kernels == 10**6 else f"# The page of {found.kernels:,} launches",
        "",
        f"- Date: {datetime.now(UTC):%Y-%m-%d}; repeat: `python -m benchmarks.page`",
        f"- {machine['cpu']}, {cores}; load average before: {machine['load_average_1min']}",
        f"- {versions}; {browser}, headless, without a GPU, 1400 by 900 pixels",
        f"- `tools/make_nsys.py --kernels {found.kernels}`: {found.events:,} events on the time line",
        f"- CPU time: the command {found.write.cpu_ns / 1e9:.1f} s, drawing the page {found.busy_ms / 1e3:.2f} s",
        "",
        "| What | Found | Bar | |",
        "| --- | ---: | ---: | --- |",
        *(
            f"| {what} | {said} | {bar} | {'holds' if good else 'missed'} |"
            for what, said, bar, good in verdicts(found)
        ),
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
