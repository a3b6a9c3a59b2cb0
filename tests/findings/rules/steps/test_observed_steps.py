"""Steps whose ops weren't observed are in no count of those that were out of line: of a real recording, thinned."""

import re
from pathlib import Path

import polars as pl

import inferometer
from inferometer import Trace
from inferometer.findings.engine import find_findings

RUN = Path(__file__).resolve().parents[4] / "samples" / "recorded" / "cpu_stop" / "fault.ifm"


def thinned(every: int) -> Trace:
    """The recording with ops in one of so many steps, as `record --ops-every` would have it."""
    whole = inferometer.open(RUN)
    steps = whole.steps.sort("start_ns").collect().with_row_index("at")
    kept = steps.filter(pl.col("at") % every == 0)
    spans = [(start, start + dur) for start, dur in kept.select("start_ns", "dur_ns").iter_rows()]
    inside = pl.any_horizontal(pl.col("start_ns").is_between(first, last) for first, last in spans)
    tables = dict(whole.tables)
    for name in ("launches", "ops", "frames"):
        tables[name] = tables[name].filter(inside)
    source = pl.when(pl.col("at") % every == 0).then("source").otherwise(pl.lit("unobserved")).alias("source")
    tables["steps"] = steps.with_columns(source).drop("at").lazy()
    return Trace(whole.facts, tables, whole.losses)


def test_the_disturbed_are_counted_among_the_observed() -> None:
    trace = thinned(4)
    observed = trace.steps.filter(pl.col("source") != "unobserved").collect()
    (found,) = [one for one in find_findings(trace).findings if one.rule == "disturbed_steps"]
    said = re.match(r"(\d+) of (\d+) steps took longer", found.title)
    assert said is not None
    assert int(said[2]) == observed.height
    assert int(said[1]) < observed.height
    assert f"of the time of the {observed.height} steps that were observed" in found.evidence[0]
    assert found.size_ns is not None
    assert found.share == found.size_ns / sum(observed["dur_ns"].to_list())
