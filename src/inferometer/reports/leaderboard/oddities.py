"""Shapes whose figures don't fit together, by what is odd: the bound above a measured time, a label that disagrees."""

from collections.abc import Iterator, Sequence

from inferometer.analyses.operators.bounds import FLAGS, BoundShape
from inferometer.analyses.operators.leaderboard import Leaderboard
from inferometer.reports.page.blocks import Block, Part, Point, Points, Words
from inferometer.units import format_duration

_TITLE = "Warnings"
_TONES = {
    "above_deployed": "bad",
    "above_traced": "bad",
    "trace_mean_below_bound": "bad",
    "t_prod_far_from_trace": "warning",
    "label_disagrees_with_kwargs": "warning",
    "tokens_guessed_from_grid": "warning",
    "dtype_differs_from_operator": "warning",
    "inferred_in_label": "low",
}  # what only reflects a shape's size or cache, and isn't wrong, isn't here


def build_oddities(board: Leaderboard) -> Block:
    """One line per oddity, with its shapes."""
    points = [point for flag, tone in _TONES.items() if (point := _point(board, flag, tone))]
    words = "Read the figures of these shapes with care: what was published or traced of them doesn't fit together."
    parts: list[Part] = [Words(words), Points(points)] if points else []
    if not any("above_deployed" in shape.flags() for each in board.timed.operators for shape in each.shapes):
        parts.append(Words("No bound is above the time of a deployed kernel: S is nowhere above 100 %."))
    return Block("warnings", _TITLE, parts)


def _point(board: Leaderboard, flag: str, tone: str) -> Point | None:
    lines, count = [], 0
    for each in board.timed.operators:
        odd = [shape for shape in each.shapes if flag in shape.flags()]
        count += len(odd)
        if odd:
            lines.append(f"{each.operator.name}: {', '.join(_labels(odd, flag))}")
    if not count:
        return None
    meaning = FLAGS[flag]
    return Point(f"{meaning[0].upper()}{meaning[1:]} ({flag})", f"{count} of {board.shapes}", tone, detail=lines)


def _labels(shapes: Sequence[BoundShape], flag: str) -> Iterator[str]:
    """The index of each, with the two times that disagree where there are two."""
    for shape in shapes:
        traced, deployed = shape.shape.traced.mean_ns, shape.deployed_ns
        compared = {
            "above_deployed": ("bound", shape.bounds.bound_ns, "deployed", deployed),
            "above_traced": ("bound", shape.bounds.bound_ns, "traced", traced),
            "trace_mean_below_bound": ("published", shape.published_bound_ns, "traced", traced),
            "t_prod_far_from_trace": ("deployed", deployed, "traced", traced),
        }.get(flag)
        if compared is None:
            yield f"#{shape.shape.index}"
        else:
            first, time, second, other = compared
            yield f"#{shape.shape.index} ({first} {format_duration(time)}, {second} {format_duration(other)})"
