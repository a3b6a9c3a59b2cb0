"""The screen of a watch: step times next to what is expected, what the engine does, the last events.

Drawn on a terminal alone, on stderr, once a second at most. Each line of step times ends with the times over the
expected time of the last steps as bars: full height is `_HIGHEST` times.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from inferometer.errors import clean
from inferometer.units import format_duration
from inferometer.watch.intervals import Rates
from inferometer.watch.recent import Now, Recent
from inferometer.watch.watcher import Judged, State

_BARS = "▁▂▃▄▅▆▇█"
_HIGHEST = 2.0
_SHOWN_BARS = 40
_MOST_EVENTS = 6
_MOST_LINES = 16
_EVERY_S = 1.0
_STYLES = {State.LEARNING: "yellow", State.NORMAL: "green", State.SLOW: "bold red"}


class Screen:
    """Draws on `console` until `close`.

    Args:
        source: What is watched.
        console: A terminal.
    """

    def __init__(self, source: str, console: Console) -> None:
        self._source, self._began_s, self._drawn_s = clean(source), time.monotonic(), 0.0
        self._recent = Recent()
        self._ratios: dict[tuple[str | None, str | None], deque[float]] = {}
        self._events: deque[str] = deque(maxlen=_MOST_EVENTS)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def add_step(self, judged: Judged) -> None:
        """One step."""
        self._recent.add(judged)
        if judged.expected_ns:
            key = judged.step.owner, judged.step.phase
            ratios = self._ratios.setdefault(key, deque(maxlen=_SHOWN_BARS))
            ratios.append(judged.step.dur_ns / judged.expected_ns)

    def say(self, line: str) -> None:
        """An event, a trouble: it stays above the screen, and among the last ones on it."""
        self._events.append(clean(line))
        self._live.console.print(Text(clean(line)))

    def draw(self, state: State, rates: Rates | None, trouble: str | None) -> None:
        """Anew, where a second has passed."""
        if time.monotonic() - self._drawn_s >= _EVERY_S:
            self._drawn_s = time.monotonic()
            self._live.update(self.content(state, rates, trouble), refresh=True)

    def content(self, state: State, rates: Rates | None, trouble: str | None) -> RenderableType:
        """What is drawn."""
        length = format_duration(round((time.monotonic() - self._began_s) * 1e9))
        head = Text.assemble(f"{self._source}  ", (state.value, _STYLES[state]), f"  {length}")
        parts: list[RenderableType] = [head, self._steps()]
        if rates is not None:
            parts.append(Text("  ".join(_rates(rates))))
        if trouble:
            parts.append(Text(f"Waiting: {clean(trouble)}", "yellow"))
        return Group(*parts, *(Text(line, "dim") for line in self._events))

    def close(self) -> None:
        """Take it away; the lines above it stay."""
        self._live.stop()

    def _steps(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("Steps", "Last", "Expected", "98 % Between"):
            table.add_column(name, justify="left" if name == "Steps" else "right", no_wrap=True)
        table.add_column("Times Expected")
        for now in _first(self._recent.now(), _MOST_LINES):
            name = " ".join(filter(None, (now.owner, now.phase))) or "steps"
            bars = _bars(self._ratios.get((now.owner, now.phase), ()))
            table.add_row(f"{clean(name)} {now.steps:,}", format_duration(round(now.took_ns)), *_expected(now), bars)
        return table


def _first(some: Iterator[Now], most: int) -> Iterator[Now]:
    for number, one in enumerate(some):
        if number < most:
            yield one


def _expected(now: Now) -> tuple[str, str]:
    if now.expected_ns is None or now.low_ns is None or now.high_ns is None:
        return "learning", ""
    low, high = format_duration(round(now.low_ns)), format_duration(round(now.high_ns))
    return format_duration(round(now.expected_ns)), f"{low} to {high}"


def _bars(ratios: Iterable[float]) -> Text:
    ratios = [*ratios]
    if not ratios:
        return Text("")
    heights = (min(len(_BARS) - 1, max(0, int(ratio / _HIGHEST * len(_BARS)))) for ratio in ratios)
    mean = sum(ratios[-4:]) / len(ratios[-4:])
    return Text(f"{mean:.2f} " + "".join(_BARS[height] for height in heights))


def _rates(rates: Rates) -> Iterator[str]:
    for name, value, unit in (
        ("generated", rates.generated_per_s, " tokens/s"),
        ("prompts", rates.prompt_per_s, " tokens/s"),
        ("running", rates.running, ""),
        ("waiting", rates.waiting, ""),
        ("KV cache", rates.cache_percent, " %"),
    ):
        if value is not None:
            yield f"{name} {value:,.0f}{unit}"
