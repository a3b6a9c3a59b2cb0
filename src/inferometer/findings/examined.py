"""What the rules looked at, and how much of the devices' idle time no finding is about: so that "none" is an answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import polars as pl

from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.finding import Finding
from inferometer.trace.trace import Trace

_TABLES: Final = ("launches", "calls", "ops", "frames", "spans", "steps", "totals", "log")


class Examined(msgspec.Struct, frozen=True):
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
