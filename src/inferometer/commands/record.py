"""`inferometer record`: a program, or a running server, recorded into a store."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inferometer.commands.base import Output, command, output_options
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.record.program import Launched

SCHEMA = Schema("record", 1)
SERVER_SCHEMA = Schema("recorded_server", 1)
_NO_TRACE = 3  # as for a file that can't be read: what was asked for isn't in the store
_LISTED = ("ops", "launches", "spans", "frames", "calls", "counters")
_PLAIN = {"spans": "step marks and ranges", "frames": "frames"}


@command("record", group="Record",
         help="Record a program as it runs: ops, kernels, steps, counters of device and host.\n\n"
         "COMMAND is run as it is typed, with its own input and output; the exit code is its own. What "
         "is reported of the recording goes to stderr.",
         example="inferometer record -o run.ifm -- python generate.py --batch 8")  # fmt: skip
@click.argument("words", nargs=-1, metavar="[--] COMMAND...", type=click.UNPROCESSED)
@click.option("-o", "--output", default="run.ifm", show_default=True, metavar="NAME.ifm", help="The store to make.")
@click.option("--force", is_flag=True, help="Replace the store if it exists.")
@click.option(
    "--counters/--no-counters",
    default=True,
    show_default=True,
    help="Sample clocks, power, load, memory, disk and network.",
)
@click.option("--hz", type=click.FloatRange(0.1, 100), default=10, show_default=True, help="Samples a second.")
@click.option(
    "--ops/--no-ops", default=True, show_default=True, help="Intercept PyTorch's ops, with shapes and modules."
)
@click.option(
    "--ops-by",
    type=click.Choice(["observer", "mode"]),
    envvar="INFEROMETER_OPS_BY",
    help="What sees ops: an observer in C++, built once (about 40 s), or a dispatch mode, which costs more. "
    "[default: observer, where there is a C++ compiler]",
)
@click.option(
    "--ops-every",
    type=click.IntRange(min=1),
    metavar="N",
    help="See ops in one of N steps that the program marks (inferometer.step); the others cost nothing and have times "
    "alone.",
)
@click.option("--stacks/--no-stacks", default=True, show_default=True, help="Record the lines that called them.")
@click.option(
    "--profile/--no-profile", default=None, help="Record kernels by torch.profiler; by default where there is a GPU."
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Record so long; the program goes on."
)
@click.option("--server", metavar="URL", help="Profile the vLLM or SGLang at http://HOST:PORT instead of a command.")
@click.option("--traces", metavar="FOLDER", help="With --server: where it writes its traces.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="With --server: profile so many steps.")
@click.option(
    "--join", "parts", metavar="NAME.ifm.parts", help="Make the store of the parts that an interrupted recording left."
)
@output_options("json")
def run(words: tuple[str, ...], output: str, out: Output, **options: Any) -> int:
    sources = {"COMMAND": words, "--server": options["server"], "--join": options["parts"]}
    chosen = [name for name, given in sources.items() if given]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none of them"
        raise click.UsageError(
            f"expected a COMMAND after --, or --server, or --join; found {found}.\n"
            "  inferometer record -o run.ifm -- python script.py"
        )
    for name in ("traces", "steps"):
        if options[name] is not None and not options["server"]:
            raise click.UsageError(f"--{name} needs --server.")
    if options["ops_every"] is not None and (not words or not options["ops"]):
        raise click.UsageError("--ops-every needs a COMMAND whose ops are seen.")
    if options["server"]:
        return _record_server(Path(output), out, options)
    return _record_command(words, Path(output), out, options)


run.allow_interspersed_args = False  # what follows COMMAND is its own


def _record_command(words: tuple[str, ...], store: Path, out: Output, options: dict[str, Any]) -> int:
    import gc

    from inferometer.record.parts import Options
    from inferometer.record.program import join, launch

    gc.enable()  # off in commands, which are short: this one lives as long as the program
    if options["parts"]:
        launched = join(Path(options["parts"]), store, force=options["force"])
    else:
        names = ("counters", "ops", "profile", "stacks", "hz", "ops_by")
        wanted = Options(**{name: options[name] for name in names}, ops_every=options["ops_every"] or 1)
        launched = launch(words, store, wanted, seconds=options["seconds"], force=options["force"])
    if out.form == "json":
        out.write_json(SCHEMA, _plain(launched), in_one_line=True)  # the program has written to stdout before
    else:
        for line in _lines(launched):
            click.echo(line, err=True)
    return launched.code


def _record_server(store: Path, out: Output, options: dict[str, Any]) -> int:
    from inferometer.record.server.recording import ServerOptions
    from inferometer.record.server.server import record_server

    def on_progress(line: str) -> None:
        click.echo(line, err=True)

    names = ("seconds", "steps", "counters", "hz", "stacks", "force")
    traces = None if options["traces"] is None else Path(options["traces"])
    wanted = ServerOptions(**{name: options[name] for name in names}, traces=traces)
    recorded = record_server(options["server"], store, wanted, on_progress)
    if out.form == "json":
        out.write_json(SERVER_SCHEMA, asdict(recorded))
    else:
        on_progress(f"{recorded.store}: {len(recorded.files)} traces of {recorded.engine}")
        on_progress(f"  inferometer summary {recorded.store}")
    return 0 if recorded.files else _NO_TRACE


def _plain(launched: "Launched") -> dict[str, Any]:
    return {
        "store": None if launched.store is None else str(launched.store),
        "exit_code": launched.code,
        "seconds": launched.seconds,
        "bytes": launched.bytes,
        "rows": launched.rows,
        "remarks": launched.remarks,
        "overhead": launched.overhead,
    }


def _lines(launched: "Launched") -> list[str]:
    from inferometer.errors import clean, printable

    lines = [f"{clean(line)}" for line in (*launched.remarks, *launched.overhead)]
    if launched.store is None:
        return ["inferometer: nothing was kept of this run", *(f"  {line}" for line in lines)]
    rows = [f"{launched.rows[name]:,} {_PLAIN.get(name, name)}" for name in _LISTED if launched.rows.get(name)]
    store = clean(printable(str(launched.store)))
    size = f"{launched.bytes / 1e6:.1f} MB" if launched.bytes >= 1e5 else f"{launched.bytes / 1e3:.0f} kB"
    head = f"{store}: {size}, {', '.join(rows) or 'no rows'}"
    return [head, *(f"  {line}" for line in lines), f"  Next: inferometer summary {store}"]
