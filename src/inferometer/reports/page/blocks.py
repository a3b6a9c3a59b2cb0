"""What a section of the page is made of: words, tables and charts. Rendered as HTML or Markdown by others.

Charts are figures as plain data (`data`, `layout`, in Plotly's words), already down-sampled: nothing here may grow with
the trace but a time line, of which the page takes what has room. `figures.py` says which kinds the page draws.
Colours in them are names of the page's own, `var(--series-1)` to `var(--series-8)`, `var(--good)`, `var(--bad)`,
`var(--muted)`, `var(--ink)`, and `var(--slower-1)` to `var(--slower-3)`, `var(--faster-1)` to `var(--faster-3)` for
small to large changes: the page resolves them for light and dark. Texts from files stay plain: renderers escape.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from inferometer.analyses.timeline.lanes.events import Lanes
from inferometer.reports.views.layout import Section

MOST_POINTS = 4_000  # of one chart: more can't be seen, and every one is in the page
MOST_ROWS = 500  # of one table
ADDITIVE = frozenset({"count", "share", "total_ns", "self_ns", "launches", "calls"})  # by the names all results share


class Words(msgspec.Struct, frozen=True):
    """A paragraph; `kind` sets it apart: a verdict and a warning stand out, a note is small."""

    text: str
    kind: str = "plain"  # plain, verdict, warning, note


class Facts(msgspec.Struct, frozen=True):
    """Labels and what is reported of each; with `heads`, of several runs side by side. "" where nothing is reported."""

    lines: Sequence[tuple[str, ...]]
    heads: Sequence[str] = ()


class Point(msgspec.Struct, frozen=True):
    """One thing of a list. `mark` is its severity in a word, `tone` how grave that is, `detail` unfolds.

    `place` is the address in the page where it is seen; it unfolds with the detail.
    """

    text: str
    mark: str = ""
    tone: str = "plain"  # plain, bad, warning, low, good
    aside: str = ""
    detail: Sequence[str] = ()
    place: str = ""


class Points(msgspec.Struct, frozen=True):
    """A list, the most important first, of which `opened` are unfolded. `title`: where a section has several."""

    points: Sequence[Point]
    title: str = ""
    opened: int = 0


class Band(msgspec.Struct, frozen=True):
    """What sets a number apart: a sign in front of it, a colour, and a word for those who see neither."""

    sign: str
    tone: str  # bad, warning, good
    word: str


class Grid(msgspec.Struct, frozen=True):
    """A table that the reader can sort and filter. `group` is a column whose values fold rows together.

    At most `MOST_ROWS` rows are shown; those after them are one row, with their number and sums.

    Attributes:
        sums: Columns that may be added up, for subtotals of groups, of filtered rows and of rows left out. None: those
            of `ADDITIVE` that the table has.
        bands: By column, what sets a number of it apart.
        instead: By column, a column of the frame with the text that stands where there is no number.
        bars: Columns whose cells have a bar as long as the number is large: to the right above 0, to the left below.
        whole: By column of short names, a column of the frame with the whole ones, empty where they are the same.
    """

    section: Section
    group: str | None = None
    sums: Sequence[str] | None = None
    bands: Mapping[str, Callable[[float], Band]] = msgspec.field(default_factory=dict)
    instead: Mapping[str, str] = msgspec.field(default_factory=dict)
    bars: Sequence[str] = ()
    whole: Mapping[str, str] = msgspec.field(default_factory=dict)


class Chart(msgspec.Struct, frozen=True):
    """A figure. `alt` says in a sentence what it shows, for those who can't see it, and for Markdown.

    A menu (`layout["updatemenus"]`) becomes a plain list to choose from, which a keyboard can use. Of two runs, charts
    of one `kind` stand next to each other; empty: those of one title.
    """

    title: str
    alt: str
    data: Sequence[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 360
    kind: str = ""

    @property
    def pair(self) -> str:
        """What charts of two runs are paired by."""
        return self.kind or self.title


class StepLines(msgspec.Struct, frozen=True):
    """Steps of two runs, one below the other on one time axis: the reader chooses which.

    `data` is that of `step_lines.data`; `title` and `alt` as of a chart.
    """

    title: str
    alt: str
    data: Mapping[str, Any]


class Filters(msgspec.Struct, frozen=True):
    """Choices that parts of `Filtered` follow. `data` is what `filters/sums.js` reads; `title`, `alt` as of a chart."""

    title: str
    alt: str
    data: Mapping[str, Any]


class Filtered(msgspec.Struct, frozen=True):
    """Parts of all there is; where a filter is chosen, what `Filters` has under this name stands in their place."""

    name: str
    parts: Sequence["Part"]


class Mark(msgspec.Struct, frozen=True):
    """A place of a time line that stands out: times in ns from its origin, what is there, and where the page says more.

    `tone`: bad, warning, good, muted. `section` is the name of a section of the same run.
    """

    start_ns: int
    end_ns: int
    text: str
    tone: str = "muted"
    section: str = ""


class TimeLine(msgspec.Struct, frozen=True):
    """What ran when, to zoom into; as much of it as has room in the page. `alt` says in sentences what it shows.

    `shades`: colours of families of kernels, of `shades.family_shades`; None: in the order of their time.
    """

    title: str
    alt: str
    lanes: Lanes
    marks: Sequence[Mark] = ()
    shades: Mapping[str, str] | None = None


class Number(msgspec.Struct, frozen=True):
    """A number to see at a glance. `about` says what it is of; `link` leads to more, if the page has it."""

    label: str
    value: str
    about: str
    link: str = ""


class Numbers(msgspec.Struct, frozen=True):
    """A few of them, side by side."""

    numbers: Sequence[Number]


class Slice(msgspec.Struct, frozen=True):
    """A part of a whole; `shade` a colour of the page, `share` of the whole, 0 to 1; `link` as of `Number`."""

    name: str
    text: str
    share: float
    shade: str
    link: str = ""


class Stack(msgspec.Struct, frozen=True):
    """Parts that add up to a whole, as one bar. `alt` says of what whole, in a sentence."""

    title: str
    alt: str
    slices: Sequence[Slice]


class Tab(msgspec.Struct, frozen=True):
    """One of several views of the same kind."""

    title: str
    parts: Sequence["Part"]


class Tabs(msgspec.Struct, frozen=True):
    """Views of which one is seen at a time; all of them on paper, without a script, and in Markdown.

    `label` says what the choice is between.
    """

    label: str
    tabs: Sequence[Tab]


class Beside(msgspec.Struct, frozen=True):
    """Rows of parts, one column for each of `heads`; on a narrow screen they are below each other, each with its head.

    None where a column has nothing next to what the others have.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence["Part | None"]]


class Fold(msgspec.Struct, frozen=True):
    """Parts that a line unfolds. `aside` stands small next to the title, `band` sets it apart."""

    title: str
    parts: Sequence["Part"]
    aside: str = ""
    band: Band | None = None


class Folds(msgspec.Struct, frozen=True):
    """Several of them, that can be unfolded together."""

    folds: Sequence[Fold]


Drawn = Chart | StepLines | Filters
"""Whose data is in the page for the script, as much as has room."""

Part = Words | Facts | Numbers | Stack | Points | Grid | Drawn | TimeLine | Tabs | Beside | Folds | Filtered


class Block(msgspec.Struct, frozen=True):
    """A section: its heading and parts. `lacking` says what the trace would need for it; then there are no parts."""

    name: str
    title: str
    parts: Sequence[Part] = ()
    lacking: str = ""


def find_charts(parts: Sequence[Part]) -> Iterator[Drawn]:
    """All charts, those inside of other parts too, in the order of the page."""
    return (part for part in _every(parts) if isinstance(part, Drawn))


def find_time_lines(parts: Sequence[Part]) -> Iterator[TimeLine]:
    """All time lines, as `find_charts`."""
    return (part for part in _every(parts) if isinstance(part, TimeLine))


def _every(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Tabs):
            for tab in part.tabs:
                yield from _every(tab.parts)
        elif isinstance(part, Beside):
            for row in part.rows:
                yield from _every([each for each in row if each is not None])
        elif isinstance(part, Folds):
            for fold in part.folds:
                yield from _every(fold.parts)
        elif isinstance(part, Filtered):
            yield from _every(part.parts)
        else:
            yield part
