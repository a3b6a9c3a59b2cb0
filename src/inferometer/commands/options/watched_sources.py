"""What a watch looks at: an engine, a recording that is being written, one that is over."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.options.watching import Outputs, Watching

if TYPE_CHECKING:
    from inferometer.commands.base import TraceArgument
    from inferometer.watch.engine import Engine
    from inferometer.watch.kept import Keeper
    from inferometer.watch.session import Session
    from inferometer.watch.watched import Account, Watched
    from inferometer.watch.watcher import Watcher

_LOOK_S = 1.0  # between two looks at a recording


@dataclass(frozen=True)
class Asked:
    """How to watch: `until` ends it. `hz`: of this machine's counters. `is_explained`: whether causes are looked for.

    `store`: what an engine's samples are kept in. `is_profiled`: whether an engine is profiled at an alarm.
    """

    watcher: "Watcher"
    outputs: Outputs
    until: Callable[[], bool]
    store: Path | None
    hz: float
    is_explained: bool
    is_profiled: bool


def replay(source: "TraceArgument", asked: Asked) -> "Watched":
    """Play a recording through.

    Raises:
        InputError: It has no steps.
    """
    from inferometer.trace.tables import TABLES
    from inferometer.watch.recorded import NEEDED, steps_of
    from inferometer.watch.session import Session
    from inferometer.watch.why import NEEDED as WHY_NEEDED

    tables = {*NEEDED, *WHY_NEEDED} if asked.is_explained else {*NEEDED}
    columns = None if asked.outputs.report else {table: tuple(TABLES[table].schema) for table in tables}
    trace = source.open(columns)
    session = Session(asked.watcher)
    session.watch(steps_of(trace))
    if asked.is_explained:
        session.explain(trace)
    if asked.outputs.report:
        from inferometer.reports.watching.incident import made_folder, page_in, write_incident

        folder = made_folder(asked.outputs.report)
        for number in range(len(session.account.slowdowns)):
            page = page_in(folder, number)
            write_incident(trace, session.account.window(number), page, f"{source.path}: slowdown {number + 1}")
            click.echo(f"Written: {page}", err=True)
    return session.result(trace.facts.source, trace.losses)


def ask(url: str, asked: Asked) -> "Watched":
    """Watch an engine.

    Raises:
        InputError: It never gave a step, or what was asked for can't be had.
    """
    import os

    from inferometer.record.server.http import Http
    from inferometer.record.server.server import API_KEY
    from inferometer.watch.engine import Engine
    from inferometer.watch.profiling import Profiling

    troubles: list[str] = []
    http = Http(url, os.environ.get(API_KEY) or None)
    engine = Engine(http, hz=asked.hz, output=asked.store, on_trouble=troubles.append)
    with engine, Watching(url, asked.outputs, engine.place) as watching:
        watching.base_ns = engine.store.clock.base_ns
        keeper, account = _kept(url, asked, watching)
        with _explained(asked, engine.place, watching, account) as session:
            profiling = Profiling(url, asked.store, watching.say) if asked.is_profiled and asked.store else None
            watching.attach(session, profiling)
            with _until_ctrl_c(watching):
                while not asked.until():
                    _look(engine, session, watching, keeper)
                    while troubles:
                        watching.say(troubles.pop())
            with suppress(KeyboardInterrupt):
                session.finish()
        _keep(keeper, session, watching, now=True)
        watching.finish()
        losses = engine.store.losses
    for lack in engine.lacks:
        click.echo(f"Not recorded: {lack}", err=True)
    return session.result(url, losses, unit="interval")


def _look(engine: "Engine", session: "Session", watching: Watching, keeper: "Keeper | None") -> None:
    """Once: the steps that came, and what came of them."""
    before = len(session.account.slowdowns)
    session.watch(engine.steps(1.0))
    watching.tick(engine.trouble, engine.rates)
    _keep(keeper, session, watching, now=len(session.account.slowdowns) > before)


def _keep(keeper: "Keeper | None", session: "Session", watching: Watching, *, now: bool) -> None:
    from inferometer.errors import InputError

    if keeper is None:
        return
    try:
        keeper.keep(session.watcher, session.account, now=now)
    except InputError as error:
        watching.say(error.message)


def _kept(url: str, asked: Asked, watching: Watching) -> "tuple[Keeper | None, Account | None]":
    """What the watch before has learned; learned anew where that can't be read."""
    from inferometer.errors import InputError
    from inferometer.watch.kept import SUFFIX, Keeper

    if asked.store is None:
        return None, None
    keeper = Keeper(asked.store.with_name(asked.store.name + SUFFIX), url)
    try:
        account = keeper.read(asked.watcher)
    except InputError as error:
        watching.say(f"Learned anew: {error.message}")
        return keeper, None
    if account:
        watching.say(f"Goes on with what was learned of {account.steps:,} intervals.")
    return keeper, account


def follow(path: str, asked: Asked) -> "Watched":
    """Follow a recording, or a folder of recordings, that is being written.

    Raises:
        InputError: It never had a step, was damaged, or what was asked for can't be had.
    """
    from inferometer.watch.following import Following

    following = Following(Path(path))
    with Watching(path, asked.outputs, lambda: Path(path)) as watching:
        with _explained(asked, lambda: Path(path), watching, None) as session:
            watching.attach(session)
            with _until_ctrl_c(watching):
                while not asked.until():
                    steps = following.look()
                    watching.base_ns = following.clock_base_ns
                    session.watch(steps)
                    watching.tick(None)
                    if following.is_over:
                        break
                    time.sleep(_LOOK_S)
            with suppress(KeyboardInterrupt):
                session.finish()
        watching.finish()
        for line in following.left:
            watching.say(line)
    return session.result(path, following.losses)


@contextmanager
def _explained(
    asked: Asked, place: Callable[[], Path], watching: Watching, account: "Account | None"
) -> "Iterator[Session]":
    """A session that has causes looked for, if that was asked for."""
    from inferometer.watch.explaining import Explainer
    from inferometer.watch.session import Session

    with ExitStack() as running:
        explainer = None
        if asked.is_explained:
            explainer = Explainer(place, watching.say)
            running.callback(explainer.close)
        yield Session(asked.watcher, account, explainer=explainer, on_event=watching.on_event, on_step=watching.on_step)


@contextmanager
def _until_ctrl_c(watching: Watching) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        watching.say("Ended by Ctrl-C.")
