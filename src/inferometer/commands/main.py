"""The command line: finds the commands, runs one, and turns every failure into one clear message and an exit code.

0 done, 1 a check failed, 2 usage, 3 bad input, 4 a device or extra is missing, 70 a bug of ours.
"""

import atexit
import gc
import io
import os
import sys
from typing import Any, NoReturn

import click

from inferometer import __version__
from inferometer.commands.base import GROUPS, ReaderLeft
from inferometer.commands.settings import explain_settings, find_settings, use_settings
from inferometer.errors import UnknownName, clean
from inferometer.failures import describe_failure
from inferometer.new_files import NO_ROOM
from inferometer.registry import collect, find

_USAGE = 2
_INTERRUPTED = 130
_HELP = """Measure LLM inference, down to the single kernel.

\b
Example:
  inferometer summary trace.json.gz

FILE is a profiler's file (see `inferometer formats`), a folder with one such file a rank, a store made by
`inferometer import`, or - for standard input.
"""


_FIRST = ("summary", "findings", "compare")  # what most people want
_WELCOME = f"""\
Inferometer {__version__} measures LLM inference, down to the single kernel. Try it on the samples that it brings:

  inferometer summary sample:decode               where the time went, and what to look at first
  inferometer compare sample:normal sample:slow   why a run is slower than another

Then on a profiler's file of your own. All commands: inferometer --help
"""


class _Commands(click.Group):
    """The commands found in the folder, in groups, those first that most people want."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = _commands()
        groups = {"Start with": [*_FIRST]} | {group: [] for group in GROUPS}
        for name in sorted(set(commands) - set(_FIRST)):
            group = getattr(commands[name], "group", GROUPS[-1])  # a plugin's may be any of click's
            groups.setdefault(group, []).append(name)
        width = max(map(len, commands))
        for group, names in groups.items():
            if names:
                with formatter.section(group):
                    formatter.write_dl([(name.ljust(width), commands[name].get_short_help_str(200)) for name in names])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _own_command(cmd_name) or _commands().get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches

            near = get_close_matches(args[0], _commands(), n=1)
            guess = f" Did you mean {near[0]}?" if near else f" Commands: {', '.join(sorted(_commands()))}."
            raise click.UsageError(f"No command {args[0]!r}.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:  # click takes it for the user's Ctrl-D; nothing is asked here, so it is a failure
            raise RuntimeError(f"EOFError: {error}") from error


def _commands() -> dict[str, click.Command]:
    commands: dict[str, Any] = collect("inferometer.commands", "run")
    return commands


def _own_command(name: str) -> click.Command | None:
    """The command of the file that is called like it: importing all of them takes time that a short command feels."""
    try:
        command = find("inferometer.commands", "run", name.replace("-", "_"))
    except (UnknownName, AttributeError):  # no file, or none with a command
        return None
    return command if isinstance(command, click.Command) and command.name == name else None


@click.group(
    "inferometer",
    cls=_Commands,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="inferometer")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of failures.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """The group of all commands; alone, a welcome."""
    if ctx.invoked_subcommand is None:
        click.echo(_WELCOME, nl=False)
        return
    if settings := find_settings(_commands):
        use_settings(settings, ctx)


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    words = sys.argv[1:] if args is None else args
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names in files hold what the encoding of a pipe may lack
    gc.disable()  # a command is one short job: collecting cycles while importing and reading only costs time
    atexit.register(gc.freeze)  # so does looking for them once more when all of it ends
    debug = "--debug" in words[: words.index("--")] if "--" in words else "--debug" in words  # what follows isn't ours
    try:
        result = cli.main(args=words, prog_name="inferometer", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, ReaderLeft):
        _leave_stdout()  # nothing to say, nobody to hear
        sys.exit(0)
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.UsageError) and (why := explain_settings(error)):
            click.echo(clean(why), err=True)
        sys.exit(_USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(_INTERRUPTED)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            _leave_stdout()
        failure = describe_failure(error)
        click.echo(f"error: {failure.text}", err=True)
        sys.exit(failure.exit_code)
    sys.exit(result if isinstance(result, int) else 0)


def _replace_closed_streams() -> None:
    """Standard streams that whoever started us has closed lead nowhere: else the next file opened would be one."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
        setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115 as long as the process


def _leave_stdout() -> None:
    """What is still to be written there would fail once more when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
