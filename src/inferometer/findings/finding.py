"""One finding: what is odd, how grave, with which evidence, and the one thing to do next."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Literal, get_args

import msgspec

Severity = Literal["high", "medium", "low", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_CHANGED: ContextVar[Mapping[str, float]] = ContextVar("changed thresholds", default=MappingProxyType({}))


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule found.

    Attributes:
        rule: Name of the rule.
        severity: `high` to `low` by how much of the run's time is at stake; `info` asks for nothing.
        title: One line, with the name of what it is about.
        evidence: Sentences: numbers with units, and the steps or lines that they are from.
        size_ns: Time of the run in what the title names; what of it could be saved is in the evidence. None where
            the matter is no time.
        share: That time of what it belongs to: GPU time of the phase, wall time, time to the first token.
        next: One thing to do.
        not_explained_by: Rules that may name the cause of such findings, but have little of this one's time.
        explained_by: The rule whose finding, further up, names the cause of this one; None where none does.
        idle_ns: Idle time of devices that this finding alone accounts for: of all findings of a trace, these never
            overlap. None where it isn't about idle time, or looks at a part that another one accounts for.
        parts: Rows of the device-time budget that it speaks of, by `part_key` of `timeline.budget`.
    """

    rule: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    size_ns: int | None = None
    share: float | None = None
    next: str
    not_explained_by: frozenset[str] = frozenset()
    explained_by: str | None = None
    idle_ns: int | None = None
    parts: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "title": self.title,
            "evidence": list(self.evidence),
            "size_ns": self.size_ns,
            "share": self.share,
            "next": self.next,
            "explained_by": self.explained_by,
            "idle_ns": self.idle_ns,
            "parts": list(self.parts),
        }


class Scale(msgspec.Struct, frozen=True):
    """From which share of the time at stake a finding is `low`, `medium`, `high`; None: it never is.

    Below `low` there is nothing to say. `name`: the rule and, where it has several scales, after a dot which of them:
    `NAME.low` and so on are the names of the thresholds, under which `changed_thresholds` replaces them.
    """

    name: str
    low: float
    medium: float | None = None
    high: float | None = None

    @property
    def thresholds(self) -> dict[str, float]:
        """Those that it has, by name, as they are declared."""
        values = {"low": self.low, "medium": self.medium, "high": self.high}
        return {f"{self.name}.{severity}": value for severity, value in values.items() if value is not None}

    @property
    def least(self) -> float:
        """The share from which on there is something to say."""
        return self._now("low", self.low) or 0.0

    def severity(self, share: float) -> Severity | None:
        """The severity of a share; None below the lowest."""
        steps: tuple[tuple[Severity, float | None], ...] = (
            ("high", self._now("high", self.high)),
            ("medium", self._now("medium", self.medium)),
            ("low", self.least),
        )
        return next((severity for severity, least in steps if least is not None and share >= least), None)

    def _now(self, severity: Severity, declared: float | None) -> float | None:
        return _CHANGED.get().get(f"{self.name}.{severity}", declared)


@contextmanager
def changed_thresholds(changed: Mapping[str, float]) -> Iterator[None]:
    """Scales judge by these thresholds meanwhile, in this context; those that aren't named stay as declared."""
    token = _CHANGED.set(changed)
    try:
        yield
    finally:
        _CHANGED.reset(token)
