"""The loader counts no bytes for a model that it loaded.

Fires when a line of the loader says 0 bytes in a time above 0 and the GPU holds memory afterwards, or the model's
dimensions say that there are weights. Always `low`: nothing is slow, but no rate of loading can be read from the log.
Says what there was to load where the dimensions are known, and which times the log gives for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from inferometer.findings.evidence.weights import ELEMENT_BYTES, weight_sizes
from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_bytes, format_duration


def _find(evidence: Evidence) -> Iterator[Finding]:
    memory = max((entry.get("gpu_bytes") or 0 for entry in evidence.metrics.get("memory", ())), default=0)
    weights = sum(weight_sizes(evidence.model)) if evidence.model is not None else 0
    for load in evidence.metrics.get("loads", ()):
        if load.get("bytes") != 0 or not load.get("dur_ns") or not (memory or weights):
            continue
        held = f"The GPU holds {format_bytes(memory, binary=True)} afterwards." if memory else ""
        yield Finding(
            rule=RULE.name,
            severity="low",
            title=f"the loader counts 0 bytes in {format_duration(load['dur_ns'])}",
            evidence=tuple(filter(None, (held, _real(evidence, weights), *_times(evidence, load)))),
            size_ns=load["dur_ns"],
            next="Count the bytes where they are copied to the GPU, also when they come from the cache.",
        )


def _real(evidence: Evidence, weights: int) -> str:
    if not weights or evidence.model is None:
        return ""
    name = evidence.model.name
    return f"The dimensions of {name} make {format_bytes(weights)} of weights at {ELEMENT_BYTES} bytes an element."


def _times(evidence: Evidence, load: Mapping[str, Any]) -> Iterator[str]:
    """The log's own times of loading, which may contradict each other, with rates where bytes can be known."""
    whole = evidence.number("load_ns")
    if whole is not None and whole > load["dur_ns"]:
        yield (
            f"The metrics give {format_duration(whole)} for loading, of which "
            f"{format_duration(whole - load['dur_ns'])} are outside this."
        )
    for part in evidence.metrics.get("loads", ()):
        dur_ns = part.get("dur_ns") or _since_line_before(evidence, part)
        if part is load or not dur_ns:
            continue
        size = part.get("bytes") or _bytes_of(evidence, part["what"])
        rate = f" for {format_bytes(size)}, {format_bytes(size / dur_ns * 1e9)}/s" if size else ""
        yield f"{str(part['what']).capitalize()}: {format_duration(dur_ns)}{rate}."


def _since_line_before(evidence: Evidence, part: Mapping[str, Any]) -> int | None:
    """Time since the loader's line before, for a part whose own time isn't printed."""
    if part.get("time_ns") is None:
        return None
    others = (*evidence.metrics.get("memory", ()), *evidence.metrics.get("loads", ()))
    before = [each["time_ns"] for each in others if each.get("time_ns") is not None and each is not part]
    last = max((time_ns for time_ns in before if time_ns <= part["time_ns"]), default=None)
    return None if last is None else int(part["time_ns"] - last)


def _bytes_of(evidence: Evidence, what: str) -> int | None:
    """Bytes of a part, by the model's dimensions."""
    if evidence.model is None:
        return None
    embedding, *others = weight_sizes(evidence.model)
    return {"embeddings": embedding, "layers": sum(others)}.get(what)


RULE = Rule("zero_byte_load", _find)
