"""How cells of each kind, and losses, are written for people."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from inferometer.analyses.result import Field, Kind, Section
from inferometer.trace.losses import Losses
from inferometer.units import format_bytes, format_count, format_duration, format_share

_FORMATS: dict[Kind, Callable[[Any], str]] = {
    "count": format_count,
    "ns": format_duration,
    "share": format_share,
    "bytes": format_bytes,
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_RIGHT: frozenset[Kind] = frozenset({"count", "ns", "share", "bytes", "number"})


def cell(field: Field, value: Any) -> str:
    """One value as people write it; `-` where there is none."""
    if value is None:
        return "-"
    return _FORMATS.get(field.kind, str)(value)


def is_right(field: Field) -> bool:
    """Whether the column is set flush right."""
    return field.kind in _RIGHT


def shown_fields(section: Section) -> Sequence[Field]:
    """The columns worth showing to people: one that can be spared and holds nothing at all is left out."""
    rows = section.frame.height
    return [
        field
        for field in section.fields
        if not (rows and field.spare and section.frame[field.column].null_count() == rows)
    ]


def clean(text: str) -> str:
    """`text` with control and direction characters shown as a space: a hostile name must not drive a terminal."""
    return _CONTROL.sub(" ", text)


def loss_lines(losses: Losses) -> Sequence[str]:
    """What was lost or mended, gravest first; empty when there is nothing to say.

    Events that are dropped by design (flow arrows, metadata) are no news to a reader and are left to `--json`.
    """
    lines = []
    for loss in losses:
        if loss.severity == "info" and (loss.dropped or loss.name == "text_id"):
            continue
        where = f" [{loss.category}]" if loss.category else ""
        example = f" ({loss.example})" if loss.example and loss.severity != "info" else ""
        lines.append(clean(f"{loss.severity}: {loss.count:,} {loss.name}{where}: {loss.meaning}{example}"))
    return lines


def scope_line(losses: Losses) -> str | None:
    """Says which tables were read, unless it was all of them."""
    from inferometer.trace.tables import ALL_TABLES

    if losses.scope == ALL_TABLES:
        return None
    return f"Only {', '.join(sorted(losses.scope))} were read; losses count those alone."
