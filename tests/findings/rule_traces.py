"""Traces for rules about launches: calls and their work side by side, by hand or from the generator."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.generated_traces import generated_trace
from tests.traces import trace_of
from tools.kineto_maker import Options

import inferometer
from inferometer.findings.engine import known_rules
from inferometer.findings.finding import Finding
from inferometer.findings.rule import NEEDED, Evidence
from inferometer.trace.trace import Trace

US = 1_000
PROCESS, THREAD = 1, 2
HOST = {"process": PROCESS, "thread": THREAD}
SMALL = Options(steps=6, layers=4, lean=True, mode="graph", prefill_every=0)


def launched(
    called_us: float, start_us: float, dur_us: float, *, api: str = "cudaLaunchKernel", call_us: float = 4, **work: Any
) -> dict[str, Any]:
    """One call and the work that it queued. Times in μs; `work` are columns of the launch."""
    times = {"start_ns": round(start_us * US), "dur_ns": round(dur_us * US)}
    call = {"api": api, "start_ns": round(called_us * US), "dur_ns": round(call_us * US), **HOST}
    return {"call": call, "work": {"process": PROCESS} | times | work}


def called(api: str, start_us: float, end_us: float) -> dict[str, Any]:
    """A call without device work."""
    return {"api": api, "start_ns": round(start_us * US), "dur_ns": round((end_us - start_us) * US), **HOST}


def frame(name: str, start_us: float, end_us: float) -> dict[str, Any]:
    """A Python frame on the launching thread."""
    return {"frame": name, "start_ns": round(start_us * US), "dur_ns": round((end_us - start_us) * US), **HOST}


def op(name: str, start_us: float, end_us: float) -> dict[str, Any]:
    """An op on the launching thread."""
    return {"op": name, "start_ns": round(start_us * US), "dur_ns": round((end_us - start_us) * US), **HOST}


def marked(starts_us: Iterable[float], dur_us: float) -> list[dict[str, Any]]:
    """SGLang's marks of decode steps."""
    return [
        {"span": "step[DECODE bs=8]", "start_ns": round(start * US), "dur_ns": round(dur_us * US), **HOST}
        for start in starts_us
    ]


def trace_with(rows: Sequence[Mapping[str, Any]], *, calls: Sequence[Mapping[str, Any]] = (), **others: Any) -> Trace:
    """A trace of rows of `launched`, and `calls` that launch nothing."""
    launches = [{"correlation_id": number, **row["work"]} for number, row in enumerate(rows, start=1)]
    queued = [{"correlation_id": number, **row["call"]} for number, row in enumerate(rows, start=1)]
    return trace_of(launches, calls=[*queued, *calls], **others)


def generated(folder: Path, **changes: Any) -> Trace:
    """A trace of `SMALL` so changed; of a `world`, all its ranks."""
    options = replace(SMALL, **changes)
    for rank in range(options.world):
        (folder / f"rank{rank}.json").write_bytes(generated_trace(replace(options, rank=rank))[0])
    return inferometer.open(folder if options.world > 1 else folder / "rank0.json", NEEDED)


def findings(trace: Trace, rule: str) -> list[Finding]:
    """What one rule finds."""
    return list(known_rules()[rule].find(Evidence(trace)))


def only(trace: Trace, rule: str) -> Finding:
    """The one finding of a rule."""
    found = findings(trace, rule)
    assert len(found) == 1
    return found[0]


def said(finding: Finding) -> str:
    """All that a finding says."""
    return " ".join((finding.title, *finding.evidence, finding.next))
