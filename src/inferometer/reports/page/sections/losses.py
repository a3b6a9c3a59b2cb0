"""What could not be read, gravest first, and apart from that what was mended or noted; of two runs, of both."""

from typing import Final

from inferometer.reports.base import describe_loss, scope_line, shown_losses
from inferometer.reports.page.beside import beside
from inferometer.reports.page.blocks import Block, Fold, Folds, Part, Point, Points
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.trace.losses import Loss, Losses

UNREAD: Final = frozenset(
    {
        *("truncated", "broken_compression", "trailing_data", "unreadable_header", "environment", "missing_file"),
        *("unreadable_file", "missing_column", "unreadable_rank_file", "same_recording", "recording_ended_early"),
        *("not_recorded", "counter_unavailable", "unfinished_run", "truncated_report", "unended_line"),
        *("not_finite", "wrong_type", "number_out_of_range", "unknown_column"),
    }
)
"""Losses other than dropped events of which something isn't in the trace."""

_TITLE = "What was not read"
_TONES = {"warning": "warning", "info": "plain"}
_NONE = "Everything in the file was read."
_BY_DESIGN = "Everything that has a place in the trace was read; {n} events of the file have none."


def _build(look: PageData) -> Block:
    return Block(
        "losses",
        _TITLE,
        [*beside(*(_parts(run.trace.losses) for run in look.runs))]
        if look.candidate
        else _parts(look.base.trace.losses),
    )


def _parts(losses: Losses) -> list[Part]:
    shown = shown_losses(losses)
    unread = [_point(loss) for loss in shown if loss.dropped or loss.name in UNREAD]
    noted = [_point(loss) for loss in shown if not (loss.dropped or loss.name in UNREAD)]
    scope = scope_line(losses)
    points = [*(unread or [_nothing(losses)]), *([Point(scope)] if scope else [])]
    fold = Fold("Mended, or noted while it was read", [Points(noted)], aside=f"{len(noted):,}")
    return [Points(points), *([Folds([fold])] if noted else [])]


def _nothing(losses: Losses) -> Point:
    """Nothing that is news: what is dropped by design is listed where the reader asks for it."""
    n = losses.dropped()
    dropped = [describe_loss(loss) for loss in losses if loss.dropped]
    return Point(_BY_DESIGN.format(n=f"{n:,}"), detail=dropped) if n else Point(_NONE)


def _point(loss: Loss) -> Point:
    return Point(describe_loss(loss), mark=loss.severity, tone=_TONES[loss.severity])


SECTION = PageSection("losses", _build, after="time_budget")
