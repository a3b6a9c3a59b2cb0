"""How a fleet's cost grows with its traces, measured on digests written down many times, and what 1e6 comes to.

    python -m benchmarks.fleet_growth --page FILE                 1,000 and 10,000 traces
    python -m benchmarks.fleet_growth --sizes 1000 10000 100000   a disk of 10 GB

Sixty generated traces are mined. Each of their digests is written down under so many other contents, in `_VARIANTS`
forms that differ in times: the shapes of all are those of the sixty. Joining and each question is a process of its own
(`processes`). Reading the traces isn't measured: it costs as much for each however many there are (`benchmarks.fleet`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import log
from pathlib import Path
from typing import Any, Final

import polars as pl
from benchmarks.fleet_traces import LABELS, write_fleet
from benchmarks.machine import describe_machine, our_versions, use_cores
from benchmarks.processes import measure_process
from isal import isal_zlib

from inferometer.fleet.digest import encode_digest
from inferometer.fleet.files import digest_file, list_digests
from inferometer.fleet.store import FleetWriter, source_rows
from inferometer.fleet.tables import DIGEST

_TOOL: Final = (sys.executable, "-m", "inferometer")
_TRACES: Final = 60
_VARIANTS: Final = 10
_GOAL: Final = 1_000_000
_QUIET: Final = 0.5  # load average
_MORE: Final = 10
_AGAIN: Final = f"join of {_MORE} more"
_QUESTIONS: Final = ("overview", "kernels", "shapes", "outliers", "changes", "importance", "savings")
_JOIN: Final = """
import sys, polars
from pathlib import Path
from inferometer.fleet.store import FleetWriter
with FleetWriter(Path(sys.argv[1])) as writer:
    writer.finish(polars.read_parquet(sys.argv[2]))
"""


@dataclass(frozen=True)
class Cost:
    """A process: seconds, those of the processor, and the most memory it had."""

    seconds: float
    processor_s: float
    peak_mb: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000], metavar="N", help="traces")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write what was found as Markdown")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="inferometer-growth-"))
    try:
        for found in measure(folder, given.sizes):
            if given.page and len(found["rows"]) > 1:
                given.page.write_text(page_of(found), encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=1))
    return 0


def measure(folder: Path, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Make a fleet of each size, join its digests, ask it, and remove it: what was found so far, after each."""
    machine = describe_machine(use_cores(2))
    write_fleet(folder / "traces", _TRACES, steps=8)
    mining = (*_TOOL, "mine", folder / "traces", "-o", folder / "base.ifm", "--labels", LABELS, "--workers", "2")
    measure_process(mining, folder)
    given = list(_variants(folder / "base.ifm"))
    rows = []
    for size in sizes:
        place = folder / f"{size}.ifm"
        costs = {}
        sources = pl.DataFrame()
        for name, numbers in (("join", range(size)), (_AGAIN, range(size, size + _MORE))):
            sources = pl.concat([sources, _write(place, given, numbers)], how="diagonal")
            sources.write_parquet(folder / "sources.parquet")
            costs[name] = _cost((sys.executable, "-c", _JOIN, place, folder / "sources.parquet"), folder)
        costs |= {each: _cost((*_TOOL, "fleet", place, each), folder) for each in _QUESTIONS}
        digests, tables = (sum(file.stat().st_size for file in (place / name).rglob("*.parquet"))
                           for name in ("digests", "tables"))  # fmt: skip
        rows.append({"traces": size, "digest_bytes": digests, "table_bytes": tables,
                     "costs": {name: asdict(cost) for name, cost in costs.items()}})  # fmt: skip
        shutil.rmtree(place)
        yield {"machine": machine, "versions": our_versions(["polars"]), "rows": rows}


def _variants(fleet: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Each digest of the fleet, in several forms, with the row of its path."""
    sources = pl.read_parquet(fleet / "tables" / "sources.parquet").filter(pl.col("reason").is_null())
    files = list_digests(fleet)
    for number in range(_VARIANTS):
        for row in sources.iter_rows(named=True):
            packed = pl.read_parquet(files[row["trace"]])
            tables = {name: packed[name].explode().struct.unnest() for name in DIGEST if len(packed[name][0])}
            tables |= {name: table.empty.collect() for name, table in DIGEST.items() if name not in tables}
            yield row, encode_digest(tables | {"ops": _other_ops(tables["ops"], number)})


def _other_ops(ops: pl.DataFrame, number: int) -> pl.DataFrame:
    """Other times."""
    return ops.with_columns((pl.col("total_ns") * (100 + number) // 100).alias("total_ns"))


def _write(place: Path, given: Sequence[tuple[dict[str, Any], bytes]], numbers: range) -> pl.DataFrame:
    """Add these digests to a fleet, not joined yet, without waiting for the disk: the rows of their paths."""
    rows = []
    with FleetWriter(place):
        for number in numbers:
            row, packed = given[number % len(given)]
            trace = sha256(f"{row['trace']}{number}".encode()).hexdigest()
            rows.append(row | {"path": f"{number}/{row['path']}", "trace": trace})
            file = digest_file(place, trace, isal_zlib.crc32(packed))
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(packed)
    return source_rows(rows)


def _cost(command: tuple[str | Path, ...], folder: Path) -> Cost:
    run, _ = measure_process(command, folder)
    return Cost(run.wall_ns / 1e9, run.cpu_ns / 1e9, run.peak_bytes / 1e6)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The exponent between the two largest sizes: 1 is in proportion."""
    return log(values[-1] / values[-2]) / log(sizes[-1] / sizes[-2])


def page_of(found: dict[str, Any]) -> str:
    """The page: what was measured, and what each comes to at 1e6 with the exponent between the two largest sizes."""
    rows, versions, machine = found["rows"], found["versions"], found["machine"]
    sizes = [row["traces"] for row in rows]
    steps = _GOAL / sizes[-1]

    def line(name: str, values: Sequence[float], unit: str) -> str:
        power = slope(sizes, values)
        cells = " | ".join(f"{value:,.2f} {unit}" for value in values)
        return f"| {name} | {cells} | {power:.2f} | {values[-1] * steps**power:,.1f} {unit} |"

    def of(name: str, what: str) -> list[float]:
        return [row["costs"][name][what] for row in rows]

    names = ("join", _AGAIN, *_QUESTIONS)
    lines = [
        line("digests on disk", [row["digest_bytes"] / 1e6 for row in rows], "MB"),
        line("tables on disk", [row["table_bytes"] / 1e6 for row in rows], "MB"),
        *(line(f"{name}, processor", of(name, "processor_s"), "s") for name in names),
        *(line(f"{name}, memory", of(name, "peak_mb"), "MB") for name in names),
    ]
    head = " | ".join(f"{size:,} traces" for size in sizes)
    join_ms = of("join", "processor_s")[-1] / sizes[-1] * 1e3
    load = float(machine["load_average_1min"])
    others = ": other work ran on them" if load > _QUIET else ""
    return f"""\
# How a fleet grows

`python -m benchmarks.fleet_growth --sizes {" ".join(map(str, sizes))}`,
{time.strftime("%Y-%m-%d", time.gmtime())}, inferometer {versions["inferometer"]} ({versions["commit"]}), Polars
{versions["polars"]}, Python {versions["python"]}. {machine["cpu"]}, {machine["cores_used"]} cores, load average
{load:.2f} before{others}. Times are of the processor, Python's start included.

The digests of {_TRACES} generated traces in {_VARIANTS} forms with other times, each under as many
contents as the fleet has traces: the shapes of all are those of the {_TRACES}, and few.
What 1e6 traces come to is not measured: it is what the growth between the two
largest sizes leads to, where that goes on. Memory below that of the measuring process can't be seen.

| What | {head} | Exponent | At 1e6 |
| --- |{" --- |" * len(sizes)} --- | --- |
{chr(10).join(lines)}

A digest that is new takes {join_ms:.1f} ms of the processor to join, however many there are; those that were joined
before stay. What grows with them is the writing of the tables. The files are {_GOAL:,} in 256 folders of
{_GOAL // 256:,} each. A question starts in half a second or more, which hides how the rest grows:
at 1e6 expect more than the last column says, up to {_GOAL // sizes[-1]:,} times what {sizes[-1]:,} traces cost.
Intervals take no draws from 10,000 clusters on.
"""


if __name__ == "__main__":
    sys.exit(main())
