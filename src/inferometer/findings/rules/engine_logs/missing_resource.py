"""Something that the run asked for wasn't there: lines of level `error` that say so in a run that went on. `info`.

Counted are lines with "404", "not found", "failed to load" or "failed to fetch".
"""

import re
from collections.abc import Iterator

from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule

_WORDS = re.compile(r"\b404\b|not found|failed to (?:load|fetch)", re.IGNORECASE)
_LISTED = 3


def _find(evidence: Evidence) -> Iterator[Finding]:
    lines = [row for row in evidence.lines("error") if _WORDS.search(row["text"])]
    if not lines:
        return
    shown = tuple(f"Line {row['line']:,}: {row['text'].strip()}" for row in lines[:_LISTED])
    more = (f"{len(lines) - _LISTED:,} more lines say so.",) if len(lines) > _LISTED else ()
    yield Finding(
        rule=RULE.name,
        severity="info",
        title="a resource was missing" if len(lines) == 1 else f"{len(lines):,} resources were missing",
        evidence=(*shown, *more),
        next="See which one in the browser's network panel; the run went on without it.",
    )


RULE = Rule("missing_resource", _find)
