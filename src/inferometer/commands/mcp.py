"""`inferometer mcp`: the analyses as tools of an assistant, over the Model Context Protocol."""

import gc

import click

from inferometer.commands.base import command, wants_tracebacks


@command(
    "mcp",
    group="Tools",
    help="Let a coding assistant ask questions of traces: a server of the Model Context Protocol on stdin and stdout."
    "\n\nIts tools are the commands that answer with --json; they write nothing, and read only below the roots. "
    "Needs the extra mcp.",
    example="inferometer mcp --root ~/profiles",
)
@click.option(
    "--root",
    "roots",
    metavar="DIR",
    multiple=True,
    help=("Read only below this folder; may be given several times.  [default: the current folder]"),
)
def run(roots: tuple[str, ...]) -> None:
    _require_sdk()
    from inferometer.commands.tools.roots import Roots
    from inferometer.commands.tools.server import serve

    gc.enable()  # `main` turns it off for short jobs
    serve(Roots(roots or (".",)), debug=wants_tracebacks())


def _require_sdk() -> None:
    """Refuse to go on without the SDK, or with its first version, which has other names.

    Raises:
        Unavailable: What is missing, and how to install it.
    """
    from importlib.metadata import version
    from importlib.util import find_spec

    from inferometer.errors import Unavailable

    hint = "pip install 'inferometer[mcp]'"
    if find_spec("mcp") is None:
        raise Unavailable("mcp is not installed", hint=hint)
    if (found := version("mcp")).startswith("1."):
        raise Unavailable(f"mcp: expected version 2.3 or newer, found {found}", hint=hint)
