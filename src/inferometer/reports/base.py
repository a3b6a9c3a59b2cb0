"""How cells of each kind, and losses, are written for people."""

from collections.abc import Callable, Sequence
from typing import Any

from inferometer.errors import clean
from inferometer.reports.views.layout import Field, Kind, Section
from inferometer.trace.losses import Loss, Losses
from inferometer.units import format_bytes, format_count, format_duration, format_list, format_sample, format_share


def _format_ns(ns: float) -> str:
    """As a duration; a slope or mean below 1 ns with its digits, since it is no `0 ns`."""
    return f"{ns:.3g} ns" if 0 < abs(ns) < 1 else format_duration(ns)


_FORMATS: dict[Kind, Callable[[Any], str]] = {
    "count": format_count,
    "ns": _format_ns,
    "share": format_share,
    "bytes": format_bytes,
    "ratio": format_sample,
}
_RIGHT: frozenset[Kind] = frozenset({"count", "ns", "share", "bytes", "ratio", "number"})


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


def shown_losses(losses: Losses) -> Sequence[Loss]:
    """What was lost or mended and is news to a reader, gravest first.

    Events that are dropped by design (flow arrows, metadata) are none and are left to `--json`.
    """
    return [loss for loss in losses if loss.severity != "info" or not (loss.dropped or loss.name == "text_id")]


def loss_lines(losses: Losses, *, verbose: bool = True) -> Sequence[str]:
    """The losses worth showing, a line each; empty when there is nothing to say. Not `verbose`: no mere information."""
    shown = [loss for loss in shown_losses(losses) if verbose or loss.severity != "info"]
    return [clean(f"{loss.severity}: {describe_loss(loss)}") for loss in shown]


def describe_loss(loss: Loss) -> str:
    """Count, name, category and meaning, with the example where it matters."""
    where = f" [{loss.category}]" if loss.category else ""
    example = f" ({loss.example})" if loss.example and loss.severity != "info" else ""
    return f"{loss.count:,} {loss.name}{where}: {loss.meaning}{example}"


def scope_line(losses: Losses) -> str | None:
    """Says which tables were read, unless it was all of them."""
    from inferometer.trace.tables import ALL_TABLES

    if losses.scope == ALL_TABLES:
        return None
    cover = "only that table" if len(losses.scope) == 1 else "only those tables"
    return f"Read only {format_list(sorted(losses.scope))}; loss counts cover {cover}."
