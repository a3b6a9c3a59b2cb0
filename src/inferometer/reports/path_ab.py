"""An A/B by call path as one page: who wins and where, icicles of the arms side by side, the tree, every layer.

The width of a box is its mean time in a repetition, without interruptions; all icicles have one scale, so that the
faster arm's is narrower. Boxes are coloured by the verdict of the candidate, which is written in them too, for those
who don't see the colours.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inferometer import __version__
from inferometer.reports.page.blocks import Block, Chart, Facts, Fold, Folds, Grid, Part, Point, Points, Words
from inferometer.reports.page.document import Page, render_page
from inferometer.reports.page.drawing import ICICLE, cut
from inferometer.reports.page.grids import TableLimits
from inferometer.reports.page.text import render_text
from inferometer.reports.themes import Theme
from inferometer.reports.views.ab.sections import difference_sections, tree_section, whole_sections
from inferometer.reports.views.view import facts_of, remarks_of
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.analyses.ab.comparison import PathComparison
    from inferometer.analyses.ab.rows import ArmPath, PathRow

BOXES = 1_500
"""Of each icicle, the heaviest first: callers are never lighter than what they call."""

_LEVEL_PX = 26
_GAP = 0.02  # of the page's width, between two icicles
_SIGNS = {"faster": "▼", "slower": "▲", "same": "=", "unclear": "?", "too few": "?", "carried over": "~", "wrong": "✗"}
_COLORS = {"faster": "var(--good)", "slower": "var(--bad)", "wrong": "var(--bad)"}
_PLAIN = "var(--line)"
_WORDS = (
    "One model, the same tokens, other kernels. Each arm ran it in turns with the others; paths are joined by name. A "
    "verdict holds for all paths together: of those called faster or slower, at most 5 % are chance."
)


def render_page_of(
    found: "PathComparison", apart: "PathComparison | None", *, command: str, theme: Theme = "auto"
) -> Page:
    """As HTML that loads nothing. `apart` is the same with each layer its own; `command` makes it again."""
    return render_page(_blocks(found, apart), title=_title(found), footer=[f"Made with: {command}"], theme=theme)


def render_text_of(found: "PathComparison", apart: "PathComparison | None", *, command: str) -> str:
    """As Markdown; charts are what they say in a sentence."""
    footer = [f"Made by inferometer {__version__}.", f"Made with: {command}"]
    return render_text(_blocks(found, apart), title=_title(found), footer=footer, limits=TableLimits())


def _title(found: "PathComparison") -> str:
    model = found.measured.facts.get("model", "A model")
    return f"{model}: {', '.join(found.candidates)} against {found.arms[0]}"


def _blocks(found: "PathComparison", apart: "PathComparison | None") -> list[Block]:
    tree = tree_section(found)
    remarks = remarks_of(found)
    blocks = [
        Block("facts", "The runs", [Facts(_facts(found)), Words(_WORDS)]),
        Block("verdict", "Result", [Words(line, tone) for line, tone in _verdicts(found)]),
        Block("remarks", "To know first", [Points([Point(each) for each in remarks])]) if remarks else None,
        Block("whole", "Whole runs", [Grid(section, sums=()) for section in whole_sections(found)]),
        Block("differences", "Where they differ", [Grid(section, sums=()) for section in difference_sections(found)]),
        Block("icicles", "Side by side", [_icicles(found)]) if found.rows else None,
        Block("paths", tree.title, [Grid(tree, sums=()), *_every_layer(apart)]),
    ]
    return [block for block in blocks if block is not None]


def _facts(found: "PathComparison") -> tuple[tuple[str, str], ...]:
    """All but the verdict, which stands by itself below."""
    return tuple((label, text) for label, text in facts_of(found) if label != "Verdict")


def _verdicts(found: "PathComparison") -> Iterator[tuple[str, str]]:
    """A sentence a candidate: right or wrong first, then the whole run, then the largest difference."""
    for arm in found.candidates:
        if any(row.versus[arm].error.failure is not None for row in found.rows):
            yield f"{arm} is wrong: see below where. Its times say nothing.", "warning"
            continue
        root = next((row for row in found.rows if row.parent is None), None)
        if root is None or root.versus[arm].ratio is None:
            yield f"Nothing whole was measured of {arm}.", "warning"
            continue
        held = root.versus[arm]
        within = "" if held.interval is None else f" ({held.interval[0]:.4g} to {held.interval[1]:.4g})"
        words = f"{arm} takes {held.ratio:.4g} times as long as {found.arms[0]}{within}: {held.verdict}."
        largest = next(iter(found.differences[arm]), None)
        if largest is not None:
            sign = "+" if largest.difference_ns > 0 else "−"
            size = format_duration(abs(largest.difference_ns))
            words += f" Most of it: {largest.path}{largest.replaced}, {sign}{size} a repetition."
        yield words, "verdict"


def _every_layer(apart: "PathComparison | None") -> Iterator[Part]:
    if apart is not None:
        yield Folds([Fold("Every layer", [Grid(tree_section(apart), sums=())], aside=f"{len(apart.rows):,} paths")])


def _icicles(found: "PathComparison") -> Chart:
    """All arms side by side, widths on one scale."""
    totals = {arm: sum(row.arms[arm].steady_ns for row in found.rows if row.parent is None and arm in row.arms)
              for arm in found.arms}  # fmt: skip
    arms = [arm for arm in found.arms if totals[arm]]
    room = (1 - _GAP * (len(arms) - 1)) / max(len(arms), 1)
    longest = max(totals.values(), default=1)
    data = []
    for i, arm in enumerate(arms):
        left = i * (room + _GAP)
        name = f"{cut(arm)}: {format_duration(totals[arm])}"
        data.append({**_icicle(found, arm, [left, left + room * totals[arm] / longest]), "name": name})
    levels = 1 + max(row.depth for row in found.rows)
    layout: dict[str, Any] = {}
    stated = ", ".join(f"{arm} {format_duration(totals[arm])}" for arm in arms)
    alt = f"Time of a repetition by call path: {stated}. {_main_fact(found)}"
    return Chart("Icicles of the arms, one scale", alt, data, layout, height=80 + _LEVEL_PX * levels)


def _icicle(found: "PathComparison", arm: str, where: Sequence[float]) -> dict[str, Any]:
    kept = _heaviest(found.rows, arm)
    rows = [(i, row, row.arms[arm]) for i, row in enumerate(found.rows) if i in kept]
    return {
        **ICICLE,
        "ids": [f"{arm}{i}" for i, _, _ in rows],
        "parents": ["" if row.parent is None else f"{arm}{row.parent}" for _, row, _ in rows],
        "labels": [_label(row, arm) for _, row, _ in rows],
        "values": [own.steady_ns for _, _, own in rows],
        "text": [_hover(row, own, found, arm) for _, row, own in rows],
        "customdata": [row.path for _, row, _ in rows],
        "domain": {"x": [*where], "y": [0, 1]},
        "marker": {"colors": [_COLORS.get(_verdict(row, arm), _PLAIN) for _, row, _ in rows],
                   "line": {"width": 1, "color": "var(--paper)"}},
    }  # fmt: skip


def _heaviest(rows: Sequence["PathRow"], arm: str) -> frozenset[int]:
    """Indices of the heaviest paths of an arm; of equals the first, so that callers are always among them."""
    own = [(-row.arms[arm].steady_ns, i) for i, row in enumerate(rows) if arm in row.arms]
    return frozenset(i for _, i in sorted(own)[:BOXES])


def _verdict(row: "PathRow", arm: str) -> str:
    """Empty of the base, which has none, and of a path that one arm alone calls."""
    held = row.versus.get(arm)
    if held is None:
        return ""
    return "wrong" if held.error.failure is not None else held.verdict or ""


def _label(row: "PathRow", arm: str) -> str:
    return cut(f"{row.name} {_SIGNS.get(_verdict(row, arm), '')}".rstrip())


def _hover(row: "PathRow", own: "ArmPath", found: "PathComparison", arm: str) -> str:
    share = "" if own.share is None else f", {format_share(own.share)}"
    lines = [
        f"{format_duration(own.steady_ns)}{share}; self {format_duration(own.steady_self_ns)}; {own.calls:,.6g} calls"
    ]
    if own.backend:
        lines.append(f"ran: {own.backend}")
    held: Mapping[str, Any] = row.versus
    if arm in held and held[arm].ratio is not None:
        lines.append(f"{held[arm].ratio:.4g} times {found.arms[0]}: {held[arm].verdict}")
    elif arm in held and held[arm].absent:
        lines.append(held[arm].absent)
    return "\n".join(lines)


def _main_fact(found: "PathComparison") -> str:
    return " ".join(words for words, _ in _verdicts(found))
