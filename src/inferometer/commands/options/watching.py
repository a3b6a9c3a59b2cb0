"""Where a watch's events go: lines on stderr or a screen, a webhook, an endpoint, pages, profiles."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click
import msgspec

from inferometer.errors import clean
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.reports.watching.incident import Incidents
    from inferometer.reports.watching.live import Screen
    from inferometer.watch.intervals import Rates
    from inferometer.watch.outputs.gauges import Gauges
    from inferometer.watch.outputs.webhook import Webhook
    from inferometer.watch.profiling import Profiling
    from inferometer.watch.session import Event, Session
    from inferometer.watch.watcher import Judged

EVENT_SCHEMA = Schema("watch_event", 1)
_PAST_S = 30.0  # what was noticed so long before the watch began is no news


class Outputs(msgspec.Struct, frozen=True):
    """What was asked for. `is_live`: None, as there is a terminal."""

    webhook: str | None = None
    listen: str | None = None
    report: Path | None = None
    is_live: bool | None = None


class Watching:
    """Hands what a watch finds to all that was asked for, while the `with` block runs.

    Args:
        source: What is watched.
        outputs: What was asked for.
        place: Brings what was recorded so far to disk, and gives the store or the folder of stores.

    Raises:
        InputError: One of them can't be had.
    """

    def __init__(self, source: str, outputs: Outputs, place: Callable[[], Path]) -> None:
        self._source, self._outputs, self._place = source, outputs, place
        self._running = ExitStack()
        self._webhook: Webhook | None = None
        self._gauges: Gauges | None = None
        self._screen: Screen | None = None
        self._incidents: Incidents | None = None
        self._profiling: Profiling | None = None
        self._session: Session | None = None
        self._began_s = time.time()
        self._said: str | None = None
        self.base_ns: int | None = None

    def __enter__(self) -> Self:
        with ExitStack() as running:
            self._open(running)
            self._running = running.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def say(self, line: str) -> None:
        """A line on stderr, above the screen where there is one."""
        if self._screen:
            self._screen.say(line)
        else:
            click.echo(clean(line), err=True)

    def attach(self, session: "Session", profiling: "Profiling | None" = None) -> None:
        """The session whose events these are, with what came before where it goes on."""
        self._session = session
        if profiling:
            self._profiling = profiling
            self._running.callback(profiling.close)
        if self._gauges:
            self._gauges.resume(session.account.slowdowns, session.watcher.state)

    def on_step(self, judged: "Judged") -> None:
        """A step that was judged."""
        if self._screen:
            self._screen.add_step(judged)
        if self._gauges and self._session:
            self._gauges.add_step(judged, self._session.watcher.state)

    def on_event(self, event: "Event") -> None:
        """Something that a person should know."""
        from inferometer.reports.watching.events import document, sentence

        self.say(sentence(event))
        if self._gauges:
            self._gauges.add_event(event)
        if self._is_past(event):
            return
        if self._webhook:
            self._webhook.send(EVENT_SCHEMA.document(document(event, self._source, self.base_ns)))
        self._follow_up(event)

    def tick(self, trouble: str | None, rates: "Rates | None" = None) -> None:
        """Once a second: why there is nothing new, if there is a reason, and what the engine does."""
        if trouble != self._said:
            self.say(f"Waiting: {trouble}" if trouble else f"{self._source} answers again.")
            self._said = trouble
        if self._gauges:
            self._gauges.base_ns, self._gauges.is_up = self.base_ns, trouble is None
        if self._screen and self._session:
            self._screen.draw(self._session.watcher.state, rates, trouble)

    def finish(self) -> None:
        """Have pages made of what is slow to the end."""
        if self._session and self._incidents:
            for number, one in enumerate(self._session.account.slowdowns):
                if one.recovered is None:
                    self._incidents.ask(number, self._session.account.window(number), self._title(number))

    def _open(self, running: ExitStack) -> None:
        outputs = self._outputs
        if outputs.webhook:
            from inferometer.watch.outputs.webhook import Webhook

            self._webhook = Webhook(outputs.webhook, self.say)
            running.callback(self._webhook.close)
        if outputs.listen:
            from inferometer.watch.outputs.endpoint import Endpoint
            from inferometer.watch.outputs.gauges import Gauges

            self._gauges = Gauges()
            endpoint = Endpoint(outputs.listen, self._gauges.text)
            running.callback(endpoint.close)
            self.say(f"Prometheus can scrape {endpoint.url}")
        if outputs.report:
            from inferometer.reports.watching.incident import Incidents

            self._incidents = Incidents(outputs.report, self._place, self.say)
            running.callback(self._incidents.close)
        if sys.stderr.isatty() if outputs.is_live is None else outputs.is_live:
            from rich.console import Console

            from inferometer.reports.watching.live import Screen

            self._screen = Screen(self._source, Console(stderr=True))
            running.callback(self._close_screen)

    def _close_screen(self) -> None:
        screen, self._screen = self._screen, None
        if screen:
            screen.close()

    def _follow_up(self, event: "Event") -> None:
        from inferometer.watch.session import What

        if event.what is What.ALARM and self._profiling and self._profiling.start():
            self.say("The engine is being profiled.")
        if event.what in (What.CAUSE, What.RECOVERED) and self._incidents and self._session:
            window = self._session.account.window(event.number)
            self._incidents.ask(event.number, window, self._title(event.number))

    def _title(self, number: int) -> str:
        return f"{self._source}: slowdown {number + 1}"

    def _is_past(self, event: "Event") -> bool:
        if self.base_ns is None or event.change is None:
            return False
        return (event.change.at_ns + self.base_ns) / 1e9 < self._began_s - _PAST_S
