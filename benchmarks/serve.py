"""How long `inferometer serve` takes to answer a zoom: `python -m benchmarks.serve`.

Makes a store of ten million launches, starts the server as a process, has it lay out the time line, and asks for
windows over HTTP on loopback, as the page does: of all lanes, on 1,400 pixels, from the whole run to 50 µs. Each is
compared with the launches that were written: single events one by one, merged ones by their count and their time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl
from benchmarks.machine import describe_machine, our_versions

_KERNELS = 60
_STREAMS = 4
_MEAN_NS = 5_000
_PIXELS = 1_400
_NARROWEST_NS = 50_000
_SEED = 20_261_126
_PATIENCE_S = 1_800
_BAR_MS = 150.0
_LIBRARIES = ("polars", "numpy", "starlette", "uvicorn")


@dataclass(frozen=True)
class Zoom:
    """One window, how long its answer took, and how large it was."""

    width_ns: int
    ms: float
    bytes: int
    single: int
    slices: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=10_000_000)
    parser.add_argument("--zooms", type=int, default=100)
    parser.add_argument("--check", type=int, default=100, help="Answers to compare with the launches.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="inferometer-serve-") as folder:
        store = Path(folder) / "run.ifm"
        launches = write_store(store, asked.launches)
        with_server = measure(store, launches, zooms=asked.zooms, checked=asked.check, cache=Path(folder) / "cache")
    print(render(with_server, asked.launches))  # into benchmarks/results/serve.md
    return 0 if with_server["median_ms"] <= _BAR_MS else 1


def write_store(store: Path, count: int) -> pl.DataFrame:
    """Launches on some streams, one after the other with gaps; the same ones each time."""
    from inferometer.trace.facts import Device, Facts
    from inferometer.trace.losses import Losses
    from inferometer.trace.tables import ALL_TABLES, TABLES
    from inferometer.trace.trace import Trace

    random = np.random.default_rng(_SEED)
    dur = np.maximum(300, random.lognormal(np.log(_MEAN_NS) - 0.5, 1.0, count)).astype(np.int64)
    gap = random.integers(0, _MEAN_NS, count)
    stream = random.integers(0, _STREAMS, count)
    order = np.argsort(stream, kind="stable")
    ends = np.cumsum((dur + gap)[order])
    firsts = np.searchsorted(stream[order], np.arange(_STREAMS))
    before = np.where(firsts > 0, ends[firsts - 1], 0)
    start = np.empty(count, dtype=np.int64)
    start[order] = ends - dur[order] - before[stream[order]]
    names = [f"void model::kernel_{i:02}<float, {i % 8}>(float*, int)" for i in range(_KERNELS)]
    frame = pl.DataFrame({"start_ns": start, "dur_ns": dur, "stream": stream})
    kernel = pl.Series("kernel", random.integers(0, _KERNELS, count)).cast(pl.UInt32)
    frame = frame.with_columns(
        pl.Series("kernel", names).gather(kernel), pl.lit("kernel").alias("kind"), pl.lit("gpu:0").alias("device")
    ).sort("start_ns")
    whole = TABLES["launches"].complete(frame.lazy())
    facts = Facts("by-hand", "run.ifm", devices=(Device("gpu:0", "H100"),))
    Trace(facts, {"launches": whole}, Losses(ALL_TABLES)).save(store)
    return frame.select("start_ns", "dur_ns", "stream")


def measure(store: Path, launches: pl.DataFrame, *, zooms: int, checked: int, cache: Path) -> dict[str, Any]:
    """The server's times; raises where an answer isn't what was written."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "inferometer", "serve", str(store)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().strip())
        connection = HTTPConnection("127.0.0.1", address.port or 0, timeout=_PATIENCE_S)
        run = _json(connection, f"{address.path}api/state")["runs"][0]["id"]
        laid_out_s = _lay_out(connection, address.path, run)
        begun = time.perf_counter()
        first = _bytes(connection, f"{address.path}api/runs/{run}/line")
        first_ms = 1e3 * (time.perf_counter() - begun)
        truth = Truth(launches)
        marked = truth.check_marks(first)
        found = list(_zooms(connection, f"{address.path}api/runs/{run}/rows", truth, zooms, checked))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
    times = sorted(zoom.ms for zoom in found)
    return {
        "laid_out_s": laid_out_s,
        "kept_bytes": sum(path.stat().st_size for path in cache.rglob("line/*")),
        "store_bytes": sum(path.stat().st_size for path in store.iterdir()) if store.exists() else 0,
        "first_ms": first_ms,
        "first_bytes": len(first),
        "median_ms": statistics.median(times),
        "p90_ms": times[int(0.9 * len(times))],
        "worst_ms": times[-1],
        "zooms": found,
        "checked": min(checked, zooms),
        "marked": marked,
    }


def _lay_out(connection: HTTPConnection, path: str, run: str) -> float:
    begun = time.perf_counter()
    body = json.dumps({"kind": "line", "run": run})
    connection.request("POST", f"{path}api/jobs", body)
    job = json.loads(connection.getresponse().read())
    while job["state"] in ("queued", "running"):
        time.sleep(0.2)
        job = _json(connection, f"{path}api/jobs/{job['id']}")
    if job["state"] != "done":
        raise SystemExit(f"the time line isn't laid out: {job['error']}")
    return time.perf_counter() - begun


def _zooms(connection: HTTPConnection, path: str, truth: Truth, zooms: int, checked: int) -> Any:
    from inferometer.reports.page.time_line.pack import unpack

    random = np.random.default_rng(_SEED + 1)
    widths = np.geomspace(truth.length_ns, _NARROWEST_NS, zooms).astype(np.int64)
    lanes = ",".join(map(str, range(_STREAMS)))
    for i, width in enumerate(random.permutation(widths).tolist()):
        start = int(random.integers(0, max(1, truth.length_ns - width)))
        address = f"{path}?lanes={lanes}&start={start}&end={start + width}&pixels={_PIXELS}"
        begun = time.perf_counter()
        packed = _bytes(connection, address)
        ms = 1e3 * (time.perf_counter() - begun)
        header, columns = unpack(packed)
        if i < checked:
            truth.check(header, columns, start, start + width)
        yield Zoom(width, ms, len(packed), len(header["places"]), len(columns["count"]))


class Truth:
    """The launches by stream, in order."""

    def __init__(self, launches: pl.DataFrame) -> None:
        ordered = launches.sort("stream", "start_ns")
        origin = int(launches["start_ns"].min())  # type: ignore[arg-type]
        self.start = ordered["start_ns"].to_numpy() - origin
        self.dur = ordered["dur_ns"].to_numpy()
        self.row_at = np.searchsorted(ordered["stream"].to_numpy(), np.arange(_STREAMS + 1))
        self.length_ns = int((self.start + self.dur).max())

    def check_marks(self, first: bytes) -> int:
        """How many gaps are marked: they are as long as the longest times in which no stream ran anything."""
        from inferometer.reports.page.time_line.pack import unpack

        marks = [mark for mark in unpack(first)[0]["marks"] if "idle for" in mark["text"]]
        in_time = np.argsort(self.start, kind="stable")
        idle = self.start[in_time][1:] - np.maximum.accumulate((self.start + self.dur)[in_time])[:-1]
        longest = np.sort(idle[idle > 0])[::-1][: len(marks)].tolist()
        assert [mark["end"] - mark["start"] for mark in marks] == longest, "a mark isn't one of the longest gaps"
        return len(marks)

    def check(self, header: Mapping[str, Any], columns: Mapping[str, Any], start: int, end: int) -> None:
        """Each single event is one that was written; with the merged ones, all are there that begin in whole slices."""
        places = np.array(header["places"], dtype=np.int64)
        assert (columns["dur"] == self.dur[places]).all(), "a single event has another duration"
        row_events, row_slices = np.cumsum(columns["row_events"]), np.cumsum(columns["row_slices"])
        for row in range(_STREAMS):
            size = 1 << header["lanes"][row]["level"]
            low, high = -(-start // size) * size, end // size * size  # whole slices inside of the window
            if low >= high:
                continue
            own = places[row_events[row] - columns["row_events"][row] : row_events[row]]
            at = slice(row_slices[row] - columns["row_slices"][row], row_slices[row])
            # each slice of a category tells its number less the one before it
            number = np.cumsum(columns["at"][at])
            inside = (number * size >= low) & (number * size < high)
            first, last = self.row_at[row] + np.searchsorted(
                self.start[self.row_at[row] : self.row_at[row + 1]], (low, high)
            )
            single = own[(own >= first) & (own < last)]
            count = int(columns["count"][at][inside].sum()) + len(single)
            assert count == last - first, f"{count} events in place of {last - first} between {low} and {high}"
            begun = max(self.row_at[row], first - 1)
            starts = self.start[begun:last]
            cut = np.minimum(starts + self.dur[begun:last], high) - np.maximum(starts, low)
            singles = np.minimum(self.start[own] + self.dur[own], high) - np.maximum(self.start[own], low)
            ns = int(columns["ns"][at][inside].sum()) + int(np.maximum(singles, 0).sum())
            assert ns == int(np.maximum(cut, 0).sum()), f"{ns} ns between {low} and {high}"


def _bytes(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path.partition('?')[0]}: {answer.status} {body[:300]!r}")
    return body


def _json(connection: HTTPConnection, path: str) -> Any:
    return json.loads(_bytes(connection, path))


def render(found: Mapping[str, Any], launches: int) -> str:
    zooms: list[Zoom] = found["zooms"]
    kept = f"{found['kept_bytes'] / 1e6:,.0f} MB in the cache"
    first = f"{found['first_ms']:,.0f} ms, {found['first_bytes'] / 1e3:,.0f} kB"
    said = (
        f"{len(zooms)} windows of all lanes on {_PIXELS:,} pixels, over HTTP, from request to last byte: median "
        f"{found['median_ms']:.0f} ms, 90 % within {found['p90_ms']:.0f} ms, the slowest {found['worst_ms']:.0f} ms. "
        f"The bar is a median of {_BAR_MS:.0f} ms."
    )
    lines = [
        "# How long serve takes to answer a zoom",
        "",
        f"- Repeat: `python -m benchmarks.serve --launches {launches} --zooms {len(zooms)}`",
        f"- {_machine()}",
        f"- {launches:,} launches on {_STREAMS} streams, a store of {found['store_bytes'] / 1e6:,.0f} MB",
        f"- Laid out once, by a job, in {found['laid_out_s']:.1f} s: {kept}",
        f"- The whole time line, as the viewer begins, the first time: {first}",
        f"- {found['marked']} gaps are marked on it: the longest of the launches that were written",
        f"- {found['checked']} answers were compared with the launches that were written: equal to the ns",
        "",
        said,
        "",
        "| width of the window | windows | median | slowest | single events | slices | kB |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    edges = [0, 1e6, 1e7, 1e8, 1e9, 1e10, float("inf")]
    words = ["below 1 ms", "1 to 10 ms", "10 to 100 ms", "0.1 to 1 s", "1 to 10 s", "above 10 s"]
    for low, high, word in zip(edges, edges[1:], words, strict=False):
        some = [zoom for zoom in zooms if low <= zoom.width_ns < high]
        if some:
            single, slices = (statistics.median(getattr(zoom, name) for zoom in some) for name in ("single", "slices"))
            median, worst = statistics.median(zoom.ms for zoom in some), max(zoom.ms for zoom in some)
            size = statistics.median(zoom.bytes for zoom in some) / 1e3
            times = f"{median:.0f} ms | {worst:.0f} ms"
            lines.append(f"| {word} | {len(some)} | {times} | {single:,.0f} | {slices:,.0f} | {size:,.0f} |")
    return "\n".join(lines)


def _machine() -> str:
    about = describe_machine(os.cpu_count() or 1)
    memory = int(str(about["memory_bytes"])) / 1e9
    versions = ", ".join(f"{name} {number}" for name, number in our_versions(_LIBRARIES).items() if name != "commit")
    return (
        f"Machine: {about['cpu']}, {about['cores']} cores, {memory:.0f} GB, {about['system']}; load average at the end "
        f"{about['load_average_1min']}; {versions}"
    )


if __name__ == "__main__":
    sys.exit(main())
