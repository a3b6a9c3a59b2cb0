"""`inferometer watch`: since when an engine's steps are slow, how much, and why."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import Number

if TYPE_CHECKING:
    from inferometer.watch.session import Session
    from inferometer.watch.watched import Slowdown, Watched
    from inferometer.watch.watcher import Change

_PERCENT = 100


def _duration(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    from inferometer.errors import InputError
    from inferometer.units import parse_duration

    if text is None:
        return None
    try:
        duration_ns = parse_duration(re.sub(r"(?<=[\d\s])m$", "min", text.strip()), default_unit="s")
    except InputError as error:
        raise click.BadParameter(error.message) from error
    if duration_ns <= 0:
        raise click.BadParameter(f"expected a time above 0, found {text}")
    return duration_ns


@command(
    "watch",
    group="Record",
    help="Watch an engine's steps: since when they are slow, how much, and why.\n\n"
    "FILE is a recording, or http://HOST:PORT of a vLLM or SGLang. A recording that is over is played through, one "
    "that `inferometer record` is still writing is followed until it ends. Of an engine, metrics and this machine's "
    "counters are sampled; the time per output token is judged, a second at a time.\n\n"
    "What a step should take is learned from the first ones, for its phase, tokens, requests and context. An alarm is "
    "raised when chance is ruled out, and dated back to the first slow step; then the slow time is compared with the "
    "normal time before it.\n\n"
    "With --fail-on alarm the exit code is 1 where an alarm was raised.",
    example="inferometer watch run.ifm --fail-on alarm",
)
@source_argument
@click.option("-o", "--output", metavar="NAME.ifm", help="Of an engine: keep what is sampled in this store.")
@click.option("--for", "length", metavar="TIME", callback=_duration, help="Watch so long, such as 10m.")
@click.option("--min-slowdown", type=Number(0, 1000), default=5.0, show_default=True, metavar="PCT",
              help="Don't look for less.")  # fmt: skip
@click.option("--false-alarm-every", "false_alarm", metavar="TIME", callback=_duration, default="168h",
              show_default=True, help="Accept one false alarm in so much time.")  # fmt: skip
@click.option("--why/--no-why", default=True, show_default=True, help="Compare slow times with the normal ones.")
@click.option("--fail-on", type=click.Choice(["alarm"]), help="Exit 1 where an alarm was raised.")
@output_options(*FORMATS)
def run(
    source: TraceArgument,
    output: str | None,
    length: int | None,
    min_slowdown: float,
    false_alarm: int,
    why: bool,
    fail_on: str | None,
    out: Output,
) -> int:
    from inferometer.watch.session import Session, is_growing
    from inferometer.watch.watcher import Watcher

    asks = source.path.startswith(("http://", "https://"))
    follows = not asks and is_growing(Path(source.path))
    if length is not None and not follows and not asks:
        raise click.UsageError("--for goes with an engine, or a recording that is still being written.")
    if output is not None and not asks:
        raise click.UsageError("-o goes with an engine: a recording is there already.")
    watcher = Watcher(least=min_slowdown / _PERCENT, false_alarm_ns=false_alarm)
    session = Session(watcher, _say if asks or follows else None)
    until = _until(length)
    if asks:
        found = _ask(session, source.path, output, until, why=why)
    else:
        found = _follow(session, source, until, why=why) if follows else _replay(session, source, why=why)
    out.show(found)
    return 1 if fail_on and found.slowdowns else 0


def _replay(session: "Session", source: TraceArgument, *, why: bool) -> "Watched":
    from inferometer.trace.tables import TABLES
    from inferometer.watch.recorded import NEEDED, steps_of
    from inferometer.watch.why import NEEDED as WHY_NEEDED

    tables = {*NEEDED, *WHY_NEEDED} if why else {*NEEDED}
    trace = source.open({table: tuple(TABLES[table].schema) for table in tables})
    session.watch(steps_of(trace))
    if why:
        session.explain(trace)
    return session.result(trace.facts.source, trace.losses)


def _until(length: int | None) -> Callable[[], bool]:
    end = None if length is None else time.monotonic_ns() + length
    return lambda: end is not None and time.monotonic_ns() >= end


def _ask(session: "Session", url: str, output: str | None, until: Callable[[], bool], *, why: bool) -> "Watched":
    import os
    from contextlib import ExitStack

    from inferometer.record.journal.journal import Journal
    from inferometer.record.server.http import Http
    from inferometer.record.server.server import API_KEY
    from inferometer.watch.engine import Engine
    from inferometer.watch.session import require_steps

    http = Http(url, os.environ.get(API_KEY) or None)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(Path(output))) if output else None
        engine = stack.enter_context(Engine(http, onward=journal))
        said = None
        try:
            while not until():
                session.watch(engine.steps(1.0))
                if engine.trouble != said:
                    said = engine.trouble
                    click.echo(f"Waiting: {said}" if said else f"{url} answers again.", err=True)
        except KeyboardInterrupt:
            click.echo("Ended by Ctrl-C.", err=True)
        trace = engine.trace()
    for lack in engine.lacks:
        click.echo(f"Not recorded: {lack}", err=True)
    require_steps(session.account, url)
    if why:
        session.explain(trace)
    return session.result(url, trace.losses, unit="interval")


def _follow(session: "Session", source: TraceArgument, until: Callable[[], bool], *, why: bool) -> "Watched":
    from inferometer.trace.store import read_store
    from inferometer.watch.session import follow, require_steps
    from inferometer.watch.why import NEEDED as WHY_NEEDED

    path = Path(source.path)
    try:
        for steps in follow(path, until=until):
            session.watch(steps)
    except KeyboardInterrupt:
        click.echo("Ended by Ctrl-C.", err=True)
    require_steps(session.account, str(path))
    trace = read_store(path, [*WHY_NEEDED] if why else ["steps"])
    if why:
        session.explain(trace)
    return session.result(trace.facts.source, trace.losses)


def _say(slowdown: "Slowdown", change: "Change", first_ns: int) -> None:
    """Writes a change to stderr as it is noticed."""
    from inferometer.reports.views.watched import sentence_of

    click.echo(sentence_of(slowdown, change, first_ns), err=True)
