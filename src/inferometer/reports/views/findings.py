"""What to look at first: findings as a table, explained below it, and what was examined."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import polars as pl

from inferometer.errors import clean
from inferometer.findings.engine import Findings
from inferometer.findings.examined import Examined
from inferometer.findings.finding import Finding
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View
from inferometer.units import format_count, format_counted, format_duration, format_share

TITLE: Final = "What to look at first"

_FIELDS = (
    Field("severity", "Severity", "severity"),
    Field("title", "Finding", "sentence"),
    Field("size_ns", "Time", "ns"),
    Field("share", "Share", "share"),
    Field("rule", "Rule", "text", spare=1),
)
_TABLE = (
    Field("number", "Number", "count"),
    Field("severity", "Severity", "severity"),
    Field("rule", "Rule", "text"),
    Field("title", "Finding", "sentence"),
    Field("size_ns", "Time", "ns"),
    Field("share", "Share", "share"),
    Field("evidence", "Evidence", "text"),
    Field("next", "Next", "text"),
    Field("explained_by", "Explained by", "text"),
)
_ROWS: Final = {  # of a table
    "launches": ("launch", "launches"),
    "calls": ("call", "calls"),
    "ops": ("op", "ops"),
    "frames": ("frame", "frames"),
    "spans": ("span", "spans"),
    "steps": ("step", "steps"),
    "totals": ("sum", "sums"),
    "log": ("line of the log", "lines of the log"),
}


def first_findings(found: Findings, top: int) -> Section:
    """The first ones that no other explains; below the table the best evidence and the next step of each."""
    causes = found.causes[:top]
    notes = [
        _note(number, finding, "".join(finding.evidence[:1]))
        for number, finding in enumerate(causes, start=1)
        if finding.severity != "info"
    ]
    more = len(found.findings) - len(causes)
    if more:
        notes.append(f"{more:,} more, and all evidence: inferometer findings {found.source}")
    notes += what_was_examined(found)
    frame = found.to_polars().filter(pl.col("explained_by").is_null()).head(top)
    return Section(TITLE, _FIELDS, frame, tuple(notes))


def _note(number: int, finding: Finding, words: str) -> str:
    """What is known of a finding, and its next step on a line of its own."""
    return f"{number}. {clean(words)}\nNext: {clean(finding.next)}"


def number_by_part(found: Findings, top: int) -> dict[str, str]:
    """By row of the budget (`part_key`), the numbers of the findings in `first_findings` that speak of it."""
    numbers: dict[str, list[str]] = {}
    for number, finding in enumerate(found.causes[:top], start=1):
        for part in finding.parts:
            numbers.setdefault(part, []).append(str(number))
    return {part: ", ".join(each) for part, each in numbers.items()}


def what_was_examined(found: Findings) -> Iterator[str]:
    """What the rules looked at and, where all of them were asked, how much of the idle time they explain."""
    examined = found.examined
    rows = ", ".join(f"{format_count(n)} {_ROWS[table][n != 1]}" for table, n in examined.rows.items() if n)
    of = f" on {examined.devices:,} device{'' if examined.devices == 1 else 's'}" if examined.devices else ""
    asked = format_counted(examined.rules, "rule")
    nothing = "" if found.findings else ": nothing is above their thresholds"
    yield f"{asked} looked at {rows or 'no rows'}{of}{nothing}."
    if found.thresholds:
        yield f"Thresholds of the settings: {'; '.join(map(str, found.thresholds))}."
    if examined.of_all_rules:
        yield from _idle_time(examined)


def _idle_time(examined: Examined) -> Iterator[str]:
    window_ns, idle_ns, rest_ns = examined.window_ns, examined.idle_ns, examined.unexplained_ns
    if not window_ns or idle_ns is None or rest_ns is None:
        return
    where = "the device's window" if examined.devices == 1 else f"the windows of {examined.devices:,} devices"
    share = format_share(idle_ns / window_ns)
    total = f"Idle time is {format_duration(idle_ns)}, {share} of {where}"
    if not idle_ns:
        yield f"No time of {where} is idle."
    elif rest_ns == idle_ns:
        yield f"{total}; no finding is about it."
    elif not rest_ns:
        yield f"{total}; the findings account for all of it."
    else:
        yield (
            f"{total}: the findings account for {format_duration(idle_ns - rest_ns)}; "
            f"{format_duration(rest_ns)} ({format_share(rest_ns / window_ns)}) are in none."
        )


def _sections(found: Findings) -> Sequence[Section]:
    """One table; what is more than `info` is explained below it."""
    return [Section(TITLE, _FIELDS, found.to_polars(), tuple(_notes(found)))]


def _notes(found: Findings) -> Iterable[str]:
    for number, finding in enumerate(found.findings, start=1):
        if finding.severity != "info":
            yield _note(number, finding, f"{finding.title}: {' '.join(finding.evidence)}")
    if found.left_out:
        yield f"{found.left_out:,} more are not listed."
    yield from what_was_examined(found)


def _table(found: Findings) -> Section:
    """One row per finding with all its text; sentences of evidence are joined."""
    rows = found.to_polars().with_columns(pl.col("evidence").list.join(" ")).with_row_index("number", offset=1)
    return Section(TITLE, _TABLE, rows.select(field.column for field in _TABLE))


VIEW = View(schema=Schema("findings", 1), sections=_sections, table=_table)
