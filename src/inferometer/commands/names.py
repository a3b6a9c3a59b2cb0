"""`inferometer names decode`: what the names of kernels say."""

import sys
from collections.abc import Iterable, Sequence

import click

from inferometer.commands.base import FORMATS, Output, command, output_options


@command(
    "names",
    group="Tools",
    help="What kernel names tell: library, family, type, tile and more.\n\n"
    "Names come from the command line, or one per line from standard input where none is given or the name is -.",
    example="inferometer names decode nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT",
)
@click.argument("action", type=click.Choice(("decode",)), metavar="decode")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@output_options(*FORMATS)
def run(action: str, names: tuple[str, ...], out: Output) -> None:
    from inferometer.analyses.tables.names import decode_names

    out.show(decode_names(_read_names(names)))


def _read_names(names: Sequence[str]) -> list[str]:
    if names and "-" not in names:
        return list(names)
    if not names and sys.stdin.isatty():
        raise click.UsageError("Give kernel names, or pipe them in, one per line.")
    given = [name for name in names if name != "-"]
    return [*given, *_lines(sys.stdin.buffer)]


def _lines(stream: Iterable[bytes]) -> list[str]:
    """Names, one per line; empty lines are no names. Bytes that aren't UTF-8 become replacement characters."""
    lines = (line.decode("utf-8", errors="replace").strip("\r\n\ufeff") for line in stream)
    return [line for line in lines if line.strip()]
