"""Profile reports written as warnings: real warnings drown in them. `info`.

Fires when lines of reports have the level `warning` and are more than half of the lines that do.
"""

from collections.abc import Iterator

from inferometer.findings.finding import Finding
from inferometer.findings.rule import WARNINGS, Evidence, Rule


def _find(evidence: Evidence) -> Iterator[Finding]:
    warnings = evidence.lines(*WARNINGS)
    reports = [row for row in warnings if row["kind"] == "profile"]
    if len(reports) * 2 <= len(warnings):
        return
    yield Finding(
        rule=RULE.name,
        severity="info",
        title=f"{len(reports):,} of {len(warnings):,} warnings are profile reports",
        evidence=(f"First at line {reports[0]['line']:,}; {len(warnings) - len(reports):,} warn of something.",),
        next="Write reports at a level of their own, so that warnings are seen.",
    )


RULE = Rule("reports_as_warnings", _find)
