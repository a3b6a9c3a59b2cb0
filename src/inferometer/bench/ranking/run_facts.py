"""What is reported of a run next to its results, and what of that differs between two."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.bench.results import Run
from inferometer.units import format_sample, format_share

_CLOCKS = 0.02
_HZ = "_hz"
_LONGEST = 200  # characters of a value


@dataclass(frozen=True)
class Change:
    """One thing that isn't alike. None: nothing is known of it."""

    what: str
    base: str | None
    candidate: str | None


def find_changes(base: Run, candidate: Run) -> Iterator[Change]:
    """What may explain a difference of times, the gravest first.

    Metrics of the machine count where the medians differ by more than 2 %, so that steady clocks aren't listed.
    """
    pairs = (_facts(base), _facts(candidate))
    for what in dict.fromkeys((*pairs[0], *pairs[1])):
        before, after = (facts.get(what) for facts in pairs)
        if before != after:
            yield Change(what, before, after)
    yield from _metrics(base, candidate)
    for reason in sorted({*base.conditions.throttled, *candidate.conditions.throttled}):
        before, after = (_share(run.conditions.throttled.get(reason)) for run in (base, candidate))
        if before != after:
            yield Change(f"throttled: {reason}", before, after)


def clock_of(run: Run) -> str | None:
    """Median of each clock while it ran."""
    clocks = {name: values[1] for name, values in run.conditions.metrics.items() if name.endswith("_clock_hz")}
    words = [f"{name.removesuffix('_clock_hz')} {hz / 1e6:,.0f} MHz" for name, hz in clocks.items()]
    return ", ".join(words) or None


def versions_of(run: Run) -> str | None:
    """All versions in one line."""
    return ", ".join(f"{name} {version}" for name, version in run.versions.items()) or None


def _facts(run: Run) -> dict[str, str]:
    """By what it is of; long values are cut."""
    candidates = {each.name: each for each in run.candidates}
    return {
        "device": run.device,
        "on": run.on,
        "stage": run.stage,
        "functional only": _text(run.functional_only),
        **{f"file of {name}": _text(each.sha256) for name, each in candidates.items() if each.sha256},
        **{
            f"setting of {name}: {key}": value
            for name, each in candidates.items()
            for key, value in each.settings.items()
        },
        "inferometer": run.inferometer,
        **{f"version of {name}": value for name, value in run.versions.items()},
        **{f"setting: {name}": _text(value) for name, value in run.settings.items()},
        "remarks": "; ".join(run.conditions.remarks),
    }


def _metrics(base: Run, candidate: Run) -> Iterator[Change]:
    before, after = base.conditions.metrics, candidate.conditions.metrics
    for name in dict.fromkeys((*before, *after)):
        left, right = (_median(metrics, name) for metrics in (before, after))
        if left is None or right is None or abs(right - left) > _CLOCKS * max(abs(left), abs(right)):
            yield Change(f"median of {name.removesuffix(_HZ)}", *(_sample(name, value) for value in (left, right)))


def _median(metrics: Mapping[str, tuple[float, float, float]], name: str) -> float | None:
    found = metrics.get(name)
    return None if found is None else found[1]


def _sample(name: str, value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value / 1e6:,.0f} MHz" if name.endswith(_HZ) else format_sample(value)


def _share(share: float | None) -> str | None:
    return None if share is None else format_share(share)


def _text(value: Any) -> str:
    """As JSON where it isn't text already."""
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
