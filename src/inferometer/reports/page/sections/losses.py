"""What could not be read or was mended, gravest first; of both runs where there are two."""

from inferometer.reports.base import describe_loss, scope_line, shown_losses
from inferometer.reports.page.beside import HEADS
from inferometer.reports.page.blocks import Beside, Block, Point, Points
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.trace.losses import Loss, Losses

_TONES = {"error": "bad", "warning": "warning", "info": "plain"}
_NONE = "Everything in the file was read."
_BY_DESIGN = "Everything that has a place in the trace was read; {n} events of the file have none."


def _build(look: PageData) -> Block:
    runs = [_points(run.trace.losses) for run in look.runs]
    if len(set(map(repr, runs))) == 1:
        return Block("losses", "What was not read", runs[:1])
    return Block("losses", "What was not read", [Beside(HEADS, [runs])])


def _points(losses: Losses) -> Points:
    points = [_point(loss) for loss in shown_losses(losses)]
    if not points:
        points.append(_nothing(losses))
    scope = scope_line(losses)
    return Points([*points, *([Point(scope)] if scope else [])])


def _nothing(losses: Losses) -> Point:
    """Nothing that is news: what is dropped by design is listed where the reader asks for it."""
    n = losses.dropped()
    dropped = [describe_loss(loss) for loss in losses if loss.dropped]
    return Point(_BY_DESIGN.format(n=f"{n:,}"), detail=dropped) if n else Point(_NONE)


def _point(loss: Loss) -> Point:
    return Point(describe_loss(loss), mark=loss.severity, tone=_TONES[loss.severity])


SECTION = PageSection("losses", _build, after="time_budget")
