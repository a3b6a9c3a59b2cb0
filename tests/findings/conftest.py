"""What tests of rules ask: the findings of a log made for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.webgpu_log_files import write_log

from inferometer.findings.engine import find_findings
from inferometer.findings.finding import Finding
from inferometer.findings.rules import launches
from inferometer.trace.trace import Trace

Find = Callable[..., dict[str, Finding]]
OF_LAUNCHES = frozenset(path.stem for path in Path(*launches.__path__).glob("[!_]*.py"))
"""Rules that read single launches, and are silent about logs: one file each, named as its rule."""


@pytest.fixture
def find(read: Callable[..., Trace]) -> Find:
    """The gravest finding of each rule, in order: `find(text, model=…)`, or `find(gap_ms=9)` of a log so changed."""

    def find(text: str | None = None, *, options: dict[str, Any] | None = None, **changes: Any) -> dict[str, Finding]:
        trace = read(write_log(**changes) if text is None else text, name="engine.log")
        found: dict[str, Finding] = {}
        for finding in find_findings(trace, **(options or {})).findings:
            found.setdefault(finding.rule, finding)
        return found

    return find
