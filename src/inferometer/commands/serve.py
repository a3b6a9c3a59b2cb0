"""`inferometer serve`: a local app over files, stores, fleets and folders."""

from pathlib import Path

import click

from inferometer.commands.base import command

_GB = 10**9


@command(
    "serve",
    group="Look",
    help="Open a local app over your runs: their list, the report of each and of any two, SQL, recordings as they run."
    "\n\nPATHS are files, stores, fleets and folders; these are watched for new runs. The address that it prints has a "
    "secret in it and works on this machine alone. Nothing is written without --keep. Ctrl-C ends it. Needs the extra "
    "serve.",
    example="inferometer serve ~/profiles",
)
@click.argument("paths", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on; 0: a free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. One that other machines reach needs --token.",
)
@click.option(
    "--token",
    envvar="INFEROMETER_TOKEN",
    metavar="SECRET",
    help="The secret of the address, at least 16 letters, digits, - and _; better given as INFEROMETER_TOKEN.  "
    "[default: a new one]",
)
@click.option("--keep", metavar="FOLDER", help="Keep files that are dropped on the page, and tags, in this folder.")
@click.option(
    "--memory",
    type=click.FloatRange(min=0.5),
    metavar="GB",
    help="Memory that one job may take.  [default: half of the machine's]",
)
@click.option("--open", "opens", is_flag=True, help="Open the app in the browser.")
@click.option(
    "--no-limits",
    is_flag=True,
    is_eager=True,
    help="Accept any expansion of compressed files, and any size of an event or a file.",
)
def run(
    paths: tuple[str, ...],
    port: int,
    host: str,
    token: str | None,
    keep: str | None,
    memory: float | None,
    opens: bool,
    no_limits: bool,
) -> None:
    import gc

    _check_token(host, token)
    _require_extra()
    from inferometer.reports.serve.app import Serving, serve

    gc.enable()  # `main` turns it off for short jobs
    serving = Serving(
        paths=paths or (".",),
        host=host,
        port=port,
        token=token,
        keep=None if keep is None else Path(keep),
        memory_bytes=None if memory is None else int(memory * _GB),
        is_limited=not no_limits,
    )

    def ready(address: str, runs: int) -> None:
        click.echo(address)
        what = "1 run" if runs == 1 else f"{runs:,} runs"
        click.echo(f"serving {what}; Ctrl-C ends it", err=True)
        if opens:
            click.launch(address)

    serve(serving, ready)


def _check_token(host: str, token: str | None) -> None:
    import re

    from inferometer.loopback import SHORTEST_TOKEN, is_loopback

    if token is not None and not re.fullmatch(rf"[A-Za-z0-9_-]{{{SHORTEST_TOKEN},}}", token):
        raise click.UsageError(f"--token: expected at least {SHORTEST_TOKEN} letters, digits, - and _.")
    if is_loopback(host):
        return
    if token is None:
        raise click.UsageError(f"--host {host} is reached by other machines: choose a secret with --token.")
    click.echo("warning: the connection isn't encrypted: whoever can read it sees the secret and all data", err=True)


def _require_extra() -> None:
    from importlib.util import find_spec

    from inferometer.errors import Unavailable

    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise Unavailable(f"{package} is not installed", hint="pip install 'inferometer[serve]'")
