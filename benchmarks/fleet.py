"""Mines a fleet of generated traces, and holds what it says against what was written.

    python -m benchmarks.fleet                             60 traces, ten broken files, ten later ones
    python -m benchmarks.fleet --traces 1300 --steps 1220  about 40 GB unpacked

Each process is measured from start to exit (`processes`). JSON goes to stdout, the page to `--page FILE`. Exits 1 where
a bar doesn't hold; times hang on what else the machine does, which the page says.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import polars as pl
from benchmarks.fleet_traces import BROKEN, LABELS, REGRESSED, Truth, write_fleet
from benchmarks.machine import describe_machine, our_versions, use_cores
from benchmarks.processes import Run, measure_process

from inferometer.fleet.store import FleetWriter, source_rows

_TOOL: Final = (sys.executable, "-m", "inferometer")
_LATER: Final = 10
_MANY: Final = 1_300  # traces that are asked
_ALONE: Final = 6  # traces that are also opened one by one, by the same analyses
_QUESTIONS: Final = (
    *("overview", "kernels", "families", "operators", "shapes"),
    *("outliers", "changes", "importance", "savings"),
)
_TIMED: Final = """
import sys, time, numpy, polars
from inferometer.commands.main import main
begun, worked = time.perf_counter(), time.process_time()
try:
    main(sys.argv[1:])
finally:
    print(time.perf_counter() - begun, time.process_time() - worked, file=open("asked.txt", "w"))
"""
_WEIGHT_ERROR: Final = 0.02
_QUESTION_S: Final = 1.0
_PEAK_BYTES: Final = 2_000_000_000


@dataclass(frozen=True)
class Bar:
    """What must hold, what was found, and whether it does. `is_time`: it hangs on what else the machine does."""

    name: str
    wanted: str
    found: str
    holds: bool
    is_time: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 where a bar that isn't of time doesn't hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=60, metavar="N", help="whole traces (%(default)s)")
    parser.add_argument("--steps", type=int, default=8, metavar="N", help="steps of a trace (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes of mine (%(default)s)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the traces and the fleet here")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write what was found as Markdown")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="inferometer-fleet-"))
    try:
        found = measure(folder, given.traces, given.steps, given.workers)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=1))
    if given.page:
        given.page.write_text(page_of(found), encoding="utf-8")
    return 0 if all(bar["holds"] or bar["is_time"] for bar in found["bars"]) else 1


def measure(folder: Path, traces: int, steps: int, workers: int) -> dict[str, Any]:
    """Write the traces, mine them, ask, and compare."""
    cores = use_cores(workers)
    machine = describe_machine(cores)
    source, fleet = folder / "traces", folder / "fleet.ifm"
    truth = write_fleet(source, traces, steps=steps)
    mining = (*_TOOL, "mine", source, "-o", fleet, "--workers", str(workers), "--labels", LABELS, "--json")
    first, said = measure_process(mining, folder)
    alone = _alone(folder, source)
    asked = {question: _ask(fleet, question, folder) for question in _QUESTIONS}
    many = _repeated(fleet, folder / "many.ifm")
    asked_many = {question: _ask(many, question, folder) for question in _QUESTIONS}
    bars = [*bars_of(truth, json.loads(said), asked, traces), *_times(first, alone, traces, workers, asked_many)]
    write_fleet(source / "later", _LATER, steps=steps, seed=2)
    for path in (source / "later" / "broken").iterdir():
        path.unlink()
    second, said = measure_process(mining, folder)
    bars.append(_later(json.loads(said), second, first, traces))
    sizes = [file.stat().st_size for file in fleet.glob("digests/*/*.parquet")]
    return {
        "machine": machine | {"load_average_after": round(_load(), 2)},
        "versions": our_versions(["polars"]),
        "traces": traces,
        "steps": steps,
        "workers": workers,
        "packed_bytes": truth.bytes,
        "unpacked_bytes": truth.unpacked_bytes,
        "digest_bytes": sum(sizes) // len(sizes),
        "first": asdict(first),
        "second": asdict(second),
        "alone_s": alone,
        "questions_s": {name: [each.seconds, each.processor_s] for name, each in asked_many.items()},
        "bars": list(map(asdict, bars)),
    }


def _load() -> float:
    import os

    return os.getloadavg()[0]


def _repeated(fleet: Path, target: Path) -> Path:
    """A fleet of 1,300 traces, for questions alone: each digest of `fleet` many times, as that of other contents."""
    found = pl.read_parquet(fleet / "tables" / "sources.parquet").filter(pl.col("reason").is_null())
    sources = [
        row | {"path": f"{number}/{row['path']}", "trace": sha256(f"{row['trace']}{number}".encode()).hexdigest()}
        for number, row in zip(range(_MANY), cycle(found.iter_rows(named=True)), strict=False)
    ]
    digests = [next(fleet.glob(f"digests/*/{trace}.*.parquet")).read_bytes() for trace in found["trace"]]
    with FleetWriter(target) as writer:
        for row, packed in zip(sources, cycle(digests), strict=False):
            writer.keep(row["trace"], packed)
        writer.finish(source_rows(sources))
    return target


def _alone(folder: Path, source: Path) -> tuple[float, float]:
    """Mean seconds, and those of the processor, of a trace that one process mines, without what starting costs."""
    files = sorted(source.glob("*/*/*.json.gz"))
    some = files[:: max(1, len(files) // _ALONE)][:_ALONE]
    command: tuple[str | Path, ...] = (*_TOOL, "mine", *some, "-o", folder / "alone.ifm", "--workers", "1")
    several, _ = measure_process(command, folder)
    one, _ = measure_process((*_TOOL, "mine", some[0], "-o", folder / "one.ifm", "--workers", "1"), folder)
    more = (len(some) - 1) * 1e9
    return (several.wall_ns - one.wall_ns) / more, (several.cpu_ns - one.cpu_ns) / more


@dataclass(frozen=True)
class Asked:
    """A question's time and that of the processor, both without starting Python and Polars, and its answer."""

    seconds: float
    processor_s: float
    answer: Any


def _ask(fleet: Path, question: str, folder: Path) -> Asked:
    """The question, asked in a process of its own."""
    top = ("--top", "200") if question in ("importance", "savings") else ()
    command = (sys.executable, "-c", _TIMED, "fleet", str(fleet), question, "--json", *top)
    _, said = measure_process(command, folder)
    seconds, processor_s = map(float, (folder / "asked.txt").read_text().split())
    return Asked(seconds, processor_s, json.loads(said))


def bars_of(truth: Truth, mined: dict[str, Any], asked: dict[str, Asked], traces: int) -> list[Bar]:
    """What the fleet says next to what was written; `asked` by question, `mined` as `mine --json` says it."""

    def answer(name: str) -> Any:
        return asked[name].answer

    aside = {each["path"] for each in mined["aside"]}
    kernels = {row["kernel"]: row["total_ns"] for row in answer("kernels")["rows"]}
    is_exact = kernels == truth.kernels_ns
    total = sum(truth.total_ns.values())
    weights = {(row["op"], row["input_dims"]): row["time_weight"] for row in answer("importance")["rows"]}
    errors = [abs(weights.get(key, 0.0) * total / ns - 1) for key, ns in truth.total_ns.items()]
    changes = [(row["model"], row["after"]) for row in answer("changes")["rows"]]
    outliers = {row["path"] for row in answer("outliers")["rows"]}
    return [
        Bar("traces", f"{traces:,}", f"{mined['traces']:,}", mined["traces"] == traces),
        Bar("broken files set aside", f"{BROKEN}", f"{len(aside)}", aside == set(truth.broken)),
        Bar("sums of kernels", "exact", "exact" if is_exact else "other", is_exact),
        Bar("weights", "within 2 %", f"{max(errors):.4%} off at most", max(errors) <= _WEIGHT_ERROR),
        Bar("the regressed version", " ".join(REGRESSED), f"{changes}", changes == [REGRESSED]),
        Bar("the faulty traces", "these two out of line", f"{len(outliers & {*truth.faulty})} of {len(outliers)} found",
            outliers == set(truth.faulty)),
    ]  # fmt: skip


def _times(first: Run, alone: tuple[float, float], traces: int, workers: int, asked: dict[str, Asked]) -> list[Bar]:
    ratio = first.wall_ns / 1e9 / (traces * alone[0] / workers)
    work = first.cpu_ns / 1e9 / (traces * alone[1])
    slowest = max(asked, key=lambda name: asked[name].seconds)
    busiest = max(asked, key=lambda name: asked[name].processor_s)
    seconds, processor_s = asked[slowest].seconds, asked[busiest].processor_s
    peak = first.peak_bytes * (workers + 1)
    return [
        Bar("time next to single loads", "1.3 at most", f"{ratio:.2f}", ratio <= 1.3, is_time=True),
        Bar("the same, of the processor", "1.3 at most", f"{work:.2f}", work <= 1.3, is_time=True),
        Bar("peak, largest process times processes", "2 GB", f"{peak / 1e9:.2f} GB", peak < _PEAK_BYTES),
        Bar("slowest question", "1 s", f"{slowest}: {seconds:.2f} s", seconds < _QUESTION_S, is_time=True),
        Bar("slowest question, of the processor", "1 s", f"{busiest}: {processor_s:.2f} s", processor_s < _QUESTION_S),
    ]


def _later(mined: dict[str, Any], second: Run, first: Run, traces: int) -> Bar:
    """Ten more cost ten: no other is opened."""
    share = second.wall_ns / first.wall_ns
    found = f"{mined['made']} digests, {share:.0%} of the first time for {_LATER / traces:.0%} of the traces"
    return Bar("ten later traces", "ten digests", found, mined["made"] == _LATER)


def page_of(found: dict[str, Any]) -> str:
    """The page of results."""
    machine, first, second = found["machine"], found["first"], found["second"]
    bars = "\n".join(
        f"| {bar['name']} | {bar['wanted']} | {bar['found']} | {'yes' if bar['holds'] else 'no'} |"
        for bar in found["bars"]
    )
    asked = "\n".join(
        f"| {name} | {seconds:.2f} s | {worked:.2f} s |" for name, (seconds, worked) in found["questions_s"].items()
    )
    versions, today = found["versions"], time.strftime("%Y-%m-%d", time.gmtime())
    alone_s, alone_work_s = found["alone_s"]
    loads = f"{machine['load_average_1min']} before, {machine['load_average_after']} after"
    return f"""\
# A fleet of generated traces

`python -m benchmarks.fleet --traces {found["traces"]} --steps {found["steps"]}`, {today}, inferometer
{versions["inferometer"]} ({versions["commit"]}), Polars {versions["polars"]}, Python {versions["python"]}.
{machine["cpu"]}, {machine["cores_used"]} cores. Load average {loads}, with our own processes;
what else ran on these cores made times longer.

{found["traces"]:,} traces in four versions of an engine, {found["packed_bytes"] / 1e6:,.0f} MB packed,
{found["unpacked_bytes"] / 1e6:,.0f} MB unpacked; ten broken files; then ten more traces. `mine` with
{found["workers"]} processes took {first["wall_ns"] / 1e9:.1f} s, and {second["wall_ns"] / 1e9:.1f} s once there were
ten more. The largest process took {first["peak_bytes"] / 1e6:,.0f} MB. Mined alone, a trace took
{alone_s:.2f} s, of the processor {alone_work_s:.2f} s. A digest has {found["digest_bytes"] / 1e3:.0f} kB on the mean.

| Bar | Wanted | Found | Holds |
| --- | --- | --- | --- |
{bars}

Questions are asked of {_MANY:,} traces: the digests of these, each many times.

| Question | Time, without starting Python and Polars | Of the processor |
| --- | --- | --- |
{asked}
"""


if __name__ == "__main__":
    sys.exit(main())
