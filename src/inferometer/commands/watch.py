"""`inferometer watch`: since when an engine's steps are slow, how much, and why."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import Number
from inferometer.commands.options.watching import Outputs

WEBHOOK = "INFEROMETER_WEBHOOK"
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
    "FILE is a recording, or http://HOST:PORT of a vLLM, SGLang or TGI. A recording that is over is played through. "
    "One that is still being written (run.ifm, or the folder run.ifm.parts of `inferometer record`) is followed until "
    "it ends. Of an engine, metrics and this machine's counters are sampled; the time per output token is judged, a "
    "second at a time.\n\n"
    "What a step should take is learned from the first ones, for its phase, tokens, requests and context. An alarm is "
    "raised when chance is ruled out, and dated back to the first slow step; then the slow time is compared with the "
    "normal time before it.\n\n"
    "With -o, a watch that was ended goes on when it is started again. With --fail-on alarm the exit code is 1 where "
    "an alarm was raised.",
    example="inferometer watch run.ifm --fail-on alarm",
)
@source_argument
@click.option(
    "-o",
    "--output",
    metavar="NAME.ifm",
    help="Of an engine: keep what is sampled in this store, below 200 MB, and what is learned next to it.",
)
@click.option("--for", "length", metavar="TIME", callback=_duration, help="Watch so long, such as 10m.")
@click.option(
    "--min-slowdown", type=Number(0, 1000), default=5.0, show_default=True, metavar="PCT", help="Don't look for less."
)
@click.option(
    "--false-alarm-every",
    "false_alarm",
    metavar="TIME",
    callback=_duration,
    default="168h",
    show_default=True,
    help="Accept one false alarm in so much time.",
)
@click.option("--why/--no-why", default=True, show_default=True, help="Compare slow times with the normal ones.")
@click.option("--fail-on", type=click.Choice(["alarm"]), help="Exit 1 where an alarm was raised.")
@click.option(
    "--hz",
    type=click.FloatRange(0.1, 100),
    default=1,
    show_default=True,
    help="Of an engine: samples of this machine's counters a second.",
)
@click.option(
    "--webhook",
    metavar="URL",
    envvar=WEBHOOK,
    help=f"Post each event to URL as JSON. {WEBHOOK} keeps a secret URL out of the list of processes.",
)
@click.option("--listen", metavar="HOST:PORT", help="Serve /metrics for Prometheus, such as on 127.0.0.1:9464.")
@click.option(
    "--report",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Write a page about each slowdown into FOLDER: the normal time and the slow time compared.",
)
@click.option(
    "--profile-on-alarm",
    "profile",
    is_flag=True,
    help="Profile the engine for 3 s at an alarm, once an hour at most. Needs -o.",
)
@click.option("--live/--no-live", default=None, help="Draw what goes on.  [default: on a terminal]")
@output_options(*FORMATS)
def run(source: TraceArgument, length: int | None, out: Output, **given: Any) -> int:
    asks = source.path.startswith(("http://", "https://"))
    if asks:
        _use_one_core()
    from inferometer.commands.options.watched_sources import Asked, ask, follow, replay
    from inferometer.watch.growing import is_growing
    from inferometer.watch.watcher import Watcher

    follows = not asks and is_growing(Path(source.path))
    _refuse(given, length, asks=asks, follows=follows)
    store = None if given["output"] is None else Path(given["output"])
    outputs = Outputs(given["webhook"], given["listen"], given["report"], given["live"])
    watcher = Watcher(least=given["min_slowdown"] / _PERCENT, false_alarm_ns=given["false_alarm"])
    asked = Asked(watcher, outputs, _until(length), store, given["hz"], given["why"], given["profile"])
    found = ask(source.path, asked) if asks else follow(source.path, asked) if follows else replay(source, asked)
    out.show(found)
    return 1 if given["fail_on"] and found.slowdowns else 0


def _use_one_core() -> None:
    """A watch runs beside an engine for weeks: libraries must not start a thread per core, nor spin on them."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")  # before they are imported


def _refuse(given: dict[str, Any], length: int | None, *, asks: bool, follows: bool) -> None:
    """What makes no sense for this source."""
    if length is not None and not follows and not asks:
        raise click.UsageError("--for goes with an engine, or a recording that is still being written.")
    if given["output"] is not None and not asks:
        raise click.UsageError("-o goes with an engine: a recording is there already.")
    if given["profile"] and (not asks or given["output"] is None):
        raise click.UsageError("--profile-on-alarm goes with an engine, and needs -o.")
    for name in ("webhook", "listen"):
        if given[name] is not None and not asks and not follows and _is_typed(name):
            raise click.UsageError(f"--{name} goes with an engine, or a recording that is still being written.")


def _is_typed(name: str) -> bool:
    """Whether an option is on the command line, and doesn't come from the environment."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _until(length: int | None) -> Callable[[], bool]:
    end = None if length is None else time.monotonic_ns() + length
    return lambda: end is not None and time.monotonic_ns() >= end
