"""What all commands share: how one is declared, the source argument, the ways to print a result.

Nothing heavy is imported at the top, so that `inferometer --help` is quick.
"""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from inferometer.analyses.result import Result
    from inferometer.reports.schemas.schema import Schema
    from inferometer.reports.screen.screen import Detail
    from inferometer.reports.themes import Theme
    from inferometer.trace.builder import Wanted
    from inferometer.trace.losses import Losses
    from inferometer.trace.trace import Trace

FORMATS = ("json", "csv", "tsv", "markdown")
GROUPS = ("Look", "Explain", "Compare", "Fleet", "Record", "Bench", "Models", "Tools")  # as help lists commands


class Command(click.Command):
    """A command whose help opens with an example; `name` is what the registry finds it by, `group` one of `GROUPS`."""

    name: str

    def __init__(self, name: str, *, group: str, example: str, help: str, **kwargs: Any) -> None:
        self.group = group
        kwargs["help"] = f"{help}\n\n\b\nExample:\n  {example}"
        super().__init__(name, short_help=help.split("\n", maxsplit=1)[0], **kwargs)


def command(name: str, *, group: str = GROUPS[-1], help: str, example: str) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command; the module calls it `run`, where the registry looks."""

    def declare(function: Callable[..., Any]) -> Command:
        params = getattr(function, "__click_params__", [])
        function.__click_params__ = []  # type: ignore[attr-defined]
        params = [*reversed(params), _debug_option()]
        return Command(name, group=group, help=help, example=example, callback=function, params=params)

    return declare


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"], is_flag=True, hidden=True, expose_value=False, callback=_remember, help="Show tracebacks."
    )


def wants_tracebacks() -> bool:
    """Whether the command that runs was given --debug."""
    return bool(click.get_current_context().meta.get(f"{__name__}.debug"))


class TraceArgument(msgspec.Struct, frozen=True):
    """The file that a command was pointed at. Opening it shows progress on a terminal.

    `execution_trace`: a file of the same run that has arguments of its ops.
    """

    path: str
    format: str | None = None
    limited: bool = True
    execution_trace: str | None = None

    def open(self, tables: "Wanted" = None, *, rank: int | None = None, early: bool = False) -> "Trace":
        """As `inferometer.open`; of a folder of ranks, only the file of `rank` is read where one is given.

        `early`: while a large file is read, a terminal shows which kernels took the time so far.
        A store is called by its path, as it was asked for: what it was made of may have had another name. Markdown is
        for others to read: there the trace is called by the file's name, without its folders.
        """
        from inferometer.commands.options.progress import reading
        from inferometer.errors import printable
        from inferometer.formats.opening import open_trace
        from inferometer.formats.reading import is_store
        from inferometer.samples import without_prefix
        from inferometer.trace.facts import without_folders

        so_far = None
        if early and sys.stderr.isatty():
            from inferometer.commands.options.so_far import SoFar

            so_far = SoFar()
        with reading(self.path, so_far) as progress:
            ranks = None if rank is None else {rank}
            trace = open_trace(
                self.path,
                self._wanted(tables),
                ranks=ranks,
                format=self.format,
                limits=self.limits(),
                progress=progress,
                listener=so_far,
            )
        if self.execution_trace is not None:
            from inferometer.formats.execution_trace.join import join_arguments

            recorded = TraceArgument(self.execution_trace, limited=self.limited)
            trace = join_arguments(trace, recorded.open({"op_nodes"}))
        path = without_prefix(self.path)
        name = printable(str(path)) if is_store(path) else trace.facts.source
        name = without_folders(name) if _asked_forms() == ["markdown"] else name
        return trace if name == trace.facts.source else trace.under_name(name)

    def _wanted(self, tables: "Wanted") -> "Wanted":
        """With what a join needs of the ops."""
        if self.execution_trace is None or tables is None:
            return tables
        from inferometer.formats.execution_trace.join import NEEDED

        if isinstance(tables, Mapping):
            return {**tables, "ops": (*tables.get("ops", ()), *NEEDED)}
        return {*tables, "ops"}

    def store(self, target: str, *, force: bool) -> "Trace":
        """As `inferometer.import_trace`; a trace that is joined with another is held in memory meanwhile."""
        if self.execution_trace is not None:
            trace = self.open()
            trace.save(target, force=force)
            return trace
        from inferometer.commands.options.progress import reading
        from inferometer.formats.opening import import_trace

        with reading(self.path) as progress:
            return import_trace(
                self.path, target, format=self.format, force=force, limits=self.limits(), progress=progress
            )

    def limits(self) -> Any:
        """What to refuse; nothing with `--no-limits`."""
        from inferometer.formats.source import Limits

        return Limits() if self.limited else Limits.none()


class ReaderLeft(Exception):
    """Whoever read our output closed the pipe: `| head` does."""


class Output(msgspec.Struct):
    """Where and how a result is printed: data on stdout, everything else on stderr.

    Who calls a command from Python gives the context another one as `obj`, and has the result.
    """

    form: str | None = None

    def show(self, result: "Result", also: Mapping[str, Any] | None = None) -> None:
        """Print `result` as the options ask; a JSON document says `also` what the command did with it."""
        if self.form == "json":
            from inferometer.reports.views.view import content_of, view_of

            self.write_json(view_of(result).schema, {**content_of(result), **(also or {})})
        elif self.form in ("csv", "tsv"):
            from inferometer.reports.delimited import render_csv, render_tsv

            self.write((render_csv if self.form == "csv" else render_tsv)(result))
            say_losses(result.losses)
        elif self.form == "markdown":
            from inferometer.reports.markdown import render_markdown

            self.write(render_markdown(result, raw=bool(_remembered("raw"))))
        else:
            from inferometer.reports.terminal import render_terminal

            self.write(render_terminal(result, is_terminal=sys.stdout.isatty(), detail=asked_detail()))

    def write_json(self, schema: "Schema", data: Mapping[str, Any], *, in_one_line: bool = False) -> None:
        """Plain data as one JSON document, which says what it is first; not-a-number becomes null."""
        import msgspec

        document = msgspec.json.encode(schema.document(data))
        self.write((document if in_one_line else msgspec.json.format(document, indent=2)).decode() + "\n")

    def write(self, text: str) -> None:
        """Text to stdout, at once. Raises `ReaderLeft` when nobody reads it."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ReaderLeft from None


def asked_detail() -> "Detail":
    """How much the options of the running command ask for, and in which colors."""
    from inferometer.reports.screen.screen import Detail

    flags = {name: bool(_remembered(name)) for name in ("full", "raw", "verbose")}
    return Detail(**flags, theme=asked_theme())


def asked_theme() -> "Theme":
    """The colors that the settings ask for."""
    return _remembered("theme") or "auto"


def asked_thresholds() -> Mapping[str, float]:
    """The thresholds of rules that the settings ask for."""
    return _remembered("thresholds") or {}


def say_losses(losses: "Losses") -> None:
    """What was lost, on standard error; what is only information with -v."""
    from inferometer.reports.base import loss_lines

    for line in loss_lines(losses, verbose=bool(_remembered("verbose"))):
        click.echo(line, err=True)


def raw_option(*, handed_on: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--raw, for commands whose tables have names of kernels; `raw` for those that choose names before they print."""
    help_text = "Names as in the file; otherwise names are decoded, and C++ names demangled."
    return click.option("--raw", is_flag=True, callback=_remember, expose_value=handed_on, help=help_text)


def source_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """FILE, --format and --no-limits, handed on as `source`."""
    return _chain(
        function,
        click.argument("source", metavar="FILE", callback=_to_source),
        click.option("--format", is_eager=True, expose_value=False, callback=_remember, metavar="NAME",
                     help="Read FILE as this format instead of sniffing; see `inferometer formats`."),
        click.option("--no-limits", is_flag=True, is_eager=True, expose_value=False, callback=_remember,
                     help="Accept any expansion of compressed files, and any size of an event or a file."),
    )  # fmt: skip


def output_options(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One flag a form, handed on as `out`; two at once are refused."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        words = {
            "json": "JSON, complete and stable.",
            "csv": "CSV with exact numbers.",
            "tsv": "TSV with exact numbers.",
        }
        words["markdown"] = "A Markdown table."
        flags = [
            click.option(f"--{form}", is_flag=True, expose_value=False, callback=_take_form, help=words[form])
            for form in forms
        ]
        more = [
            click.option("--full", is_flag=True, expose_value=False, callback=_remember,
                         help="Names and tables as wide as they are, whatever the width of the screen."),
            click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_remember,
                         help="Also which tables were read, and losses that are only information."),
        ]  # fmt: skip
        return _chain(_with_output(function), *flags, *more)

    return declare


def _with_output(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        forms = _asked_forms()
        if len(forms) > 1:
            raise click.UsageError(f"--{forms[0]} and --{forms[1]} are mutually exclusive.")
        given = click.get_current_context().find_object(Output)
        return function(*args, out=given or Output(forms[0] if forms else None), **kwargs)

    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    return run


def _asked_forms() -> list[str]:
    context = click.get_current_context(silent=True)
    return [] if context is None else list(context.meta.get(__name__, []))


def _take_form(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta.setdefault(__name__, []).append(param.name)


def _remember(ctx: click.Context, param: click.Parameter, value: str | bool | None) -> str | bool | None:
    remember(ctx, str(param.name), value)
    return value


def remember(ctx: click.Context, name: str, value: Any) -> None:
    """For what prints a result of the command that runs in this context or in one below."""
    ctx.meta[f"{__name__}.{name}"] = value


def _remembered(name: str) -> Any:
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(f"{__name__}.{name}")


def _to_source(ctx: click.Context, param: click.Parameter, value: str) -> TraceArgument:
    from inferometer.commands.options.allocation import share_out

    share_out()
    return TraceArgument(value, ctx.meta[f"{__name__}.format"], not ctx.meta[f"{__name__}.no_limits"])


def _chain(function: Callable[..., Any], *decorators: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in reversed(decorators):
        function = decorate(function)
    return function
