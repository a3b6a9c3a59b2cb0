"""What the rules looked at, and how much of the devices' idle time no finding is about: so that "none" is an answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.finding import Finding
from inferometer.trace.trace import Trace
from inferometer.units import format_count, format_duration, format_share

_TABLES: Final = {  # with a row of each in words
    "launches": ("launch", "launches"),
    "calls": ("call", "calls"),
    "ops": ("op", "ops"),
    "frames": ("frame", "frames"),
    "spans": ("span", "spans"),
    "steps": ("step", "steps"),
    "totals": ("sum", "sums"),
    "log": ("line of the log", "lines of the log"),
}


@dataclass(frozen=True)
class Examined:
    """What rules looked at. The times are sums over all devices, ns.

    `rules`: how many were asked; `of_all_rules`: whether that is all. `rows`: of each table. `idle_ns` of the devices'
    `window_ns` was idle; findings account for `explained_ns` of it. None where no single launches were looked at.
    """

    rules: int
    rows: Mapping[str, int]
    devices: int
    window_ns: int | None
    idle_ns: int | None
    explained_ns: int | None
    of_all_rules: bool = True

    @property
    def unexplained_ns(self) -> int | None:
        """Idle time that no finding accounts for."""
        return None if self.idle_ns is None or self.explained_ns is None else self.idle_ns - self.explained_ns

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names."""
        return {
            "rules": self.rules,
            "rows": dict(self.rows),
            "devices": self.devices,
            "window_ns": self.window_ns,
            "idle_ns": self.idle_ns,
            "explained_idle_ns": self.explained_ns,
            "unexplained_idle_ns": self.unexplained_ns,
        }

    def sentences(self, *, found: bool) -> Iterator[str]:
        """What was examined and, where all rules were asked, the idle time; `found`: whether there are findings."""
        rows = ", ".join(f"{format_count(n)} {_TABLES[table][n != 1]}" for table, n in self.rows.items() if n)
        of = f" on {self.devices:,} device{'' if self.devices == 1 else 's'}" if self.devices else ""
        asked = "1 rule" if self.rules == 1 else f"{self.rules:,} rules"
        nothing = "" if found else ": nothing is above their thresholds"
        yield f"{asked} looked at {rows or 'no rows'}{of}{nothing}."
        if self.of_all_rules and self.window_ns and self.idle_ns is not None and self.explained_ns is not None:
            yield self._idle(self.window_ns, self.idle_ns, self.idle_ns - self.explained_ns)

    def _idle(self, window_ns: int, idle_ns: int, rest_ns: int) -> str:
        where = "the device's window" if self.devices == 1 else f"the windows of {self.devices:,} devices"
        share = format_share(idle_ns / window_ns)
        stated = f"Idle time is {format_duration(idle_ns)}, {share} of {where}"
        if not idle_ns:
            return f"No time of {where} is idle."
        if rest_ns == idle_ns:
            return f"{stated}; no finding is about it."
        if not rest_ns:
            return f"{stated}; the findings account for all of it."
        return (
            f"{stated}: the findings account for {format_duration(idle_ns - rest_ns)}; "
            f"{format_duration(rest_ns)} ({format_share(rest_ns / window_ns)}) are in none."
        )


def examine(
    trace: Trace,
    rules: int,
    launches: Sequence[LaunchEvidence | None],
    findings: Sequence[Finding],
    *,
    of_all_rules: bool,
) -> Examined:
    """What was looked at.

    Args:
        trace: The whole.
        rules: How many were asked.
        launches: Of each run; None where its launches were not looked at.
        findings: All of them.
        of_all_rules: Whether these are all rules there are.
    """
    tables: list[str] = [name for name in _TABLES if name in trace.scope]
    counted = pl.collect_all([trace.tables[name].select(pl.len()) for name in tables])
    rows = {name: int(frame.item()) for name, frame in zip(tables, counted, strict=True)}
    known = [each.devices for each in launches if each is not None]
    window_ns, idle_ns = (
        (sum(int(frame[name].sum()) for frame in known) if known else None) for name in ("window_ns", "idle_ns")
    )
    explained_ns = sum(finding.idle_ns or 0 for finding in findings) if known else None
    devices = sum(frame.height for frame in known)
    return Examined(rules, rows, devices, window_ns, idle_ns, explained_ns, of_all_rules)
