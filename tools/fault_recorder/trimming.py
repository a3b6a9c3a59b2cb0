"""Writes some seconds of a recorded pair, without names of the machine: a sample to bundle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fault_recorder.recording import RUNS

if TYPE_CHECKING:
    from inferometer.trace.facts import Facts
    from inferometer.trace.trace import Trace

SETTLED_NS = 500_000_000
_SOMEWHERE = "machine"
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/]+/)*([^\s/]+)")


def trim_pair(pair: Path, out: Path, seconds: float) -> None:
    """Write some seconds of both runs, without names of this machine, and the truth."""
    from inferometer.trace.store import read_store

    out.mkdir(parents=True, exist_ok=True)
    for run in RUNS:
        with read_store(pair / f"{run}.ifm") as trace:
            shorten(trace, seconds).save(out / f"{run}.ifm", force=True)
    (out / "truth.json").write_text((pair / "truth.json").read_text())


def shorten(trace: Trace, seconds: float) -> Trace:
    """From half a second after the first step on: rows that lie within, of all tables that have any."""
    from inferometer.trace.tables import TABLES
    from inferometer.trace.trace import Trace

    steps = trace.steps.select("start_ns", (pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns")).collect()
    first_ns = int(steps["start_ns"].sort()[0]) + SETTLED_NS
    whole = steps.filter(pl.col("start_ns") >= first_ns, pl.col("end_ns") <= first_ns + seconds * 1e9)
    start_ns, end_ns = whole["start_ns"].sort()[0], whole["end_ns"].sort()[-1]
    frames = {}
    for name, frame in trace.tables.items():
        time, columns = TABLES[name].time, frame.collect_schema()
        if time is None:
            continue
        end = pl.col(time) + pl.col("dur_ns") if "dur_ns" in columns else pl.col(time)
        within = frame.filter(pl.col(time) >= start_ns, end <= end_ns)
        unknown = {"host": _SOMEWHERE} if "host" in columns else {}
        if "frame" in columns:
            within = within.with_columns(pl.col("frame").str.replace(r"^.*/", ""))
        frames[name] = within.with_columns(pl.lit(value).alias(column) for column, value in unknown.items())
    return Trace(_without_names(trace.facts, seconds), frames, trace.losses, scope=trace.scope)


def _without_names(facts: Facts, seconds: float) -> Facts:
    from msgspec.structs import replace

    notes = [_PATH.sub(r"\1", note) for note in facts.notes]
    notes.append(f"Trimmed to {seconds:g} s of steps; the machine's name and folders were taken out.")
    return replace(facts, hosts=(_SOMEWHERE,), notes=tuple(notes))
