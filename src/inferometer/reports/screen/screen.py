"""What text is printed on: as wide as the screen, in color on a terminal; and how much of a result was asked for."""

import io
import shutil
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.theme import Theme as Styles

from inferometer.reports.themes import Theme

_PIPE_WIDTH: Final = 120
_LEAST_WIDTH: Final = 40  # in less, numbers would have to be cut
_LINES: Final = 50  # no table depends on it
_DARK: Final = {"grave": "bold bright_red", "notable": "bright_yellow", "mild": "bright_cyan"}
_STYLES: Final[Mapping[Theme, Mapping[str, str]]] = {
    "auto": {"grave": "bold red", "notable": "yellow", "mild": "cyan"},
    "light": {"grave": "bold red3", "notable": "dark_orange3", "mild": "deep_sky_blue4"},
    "dark": _DARK,
    "none": _DARK,
}
_LOSSES: Final = {"warning": "notable"}


class Detail(msgspec.Struct, frozen=True):
    """How much of a result was asked for.

    Attributes:
        full: Names as long as they are, and every column, however wide the table gets.
        raw: Names of kernels as in the file, as long as they are.
        verbose: Also which tables were read, and losses that are only information.
        theme: In which colors, on a terminal.
    """

    full: bool = False
    raw: bool = False
    verbose: bool = False
    theme: Theme = "auto"

    @property
    def fits(self) -> bool:
        """Whether names and columns give way to the width of the screen."""
        return not (self.full or self.raw)


def screen_width() -> int:
    """COLUMNS, else as wide as the terminal is, else what a pipe gets."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size((_PIPE_WIDTH, _LINES)).columns)


class Page:
    """Text in the making, wrapped to the width of the screen; in color on a terminal, unless NO_COLOR is set."""

    def __init__(self, detail: Detail, *, is_terminal: bool) -> None:
        self.detail = detail
        self.width = screen_width()
        self._is_terminal = is_terminal
        self._text = io.StringIO()
        self._console = Console(
            file=self._text,
            highlight=False,
            force_terminal=is_terminal,
            width=self.width,
            height=_LINES,
            theme=Styles(_STYLES[detail.theme]),
            no_color=True if detail.theme == "none" else None,  # None: as NO_COLOR says
        )

    def text(self) -> str:
        """All that was printed."""
        text = self._text.getvalue()
        return text if self._is_terminal else "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def print(self, what: object, *, width: int | None = None) -> None:
        """Anything that rich prints, on lines of this width."""
        self._console.width = width or self.width
        self._console.print(what)
        self._console.width = self.width

    def sentence(self, text: Text | str, *, style: str = "", mark: Text | str = "", room: int = 0) -> None:
        """Words on as many lines as they need, next to a mark: `1.` or `•`, or a label in `room` columns of its own."""
        words = Text(text, style=style) if isinstance(text, str) else text
        if not mark:
            self._console.print(words)
            return
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=max(room, cell_len(str(mark))), no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(mark, words)
        self._console.print(grid)

    def losses(self, lines: Iterable[str]) -> None:
        """A line per loss, the grave ones in color."""
        for line in lines:
            self.sentence(line, style=_LOSSES.get(line.partition(":")[0], "dim"))
