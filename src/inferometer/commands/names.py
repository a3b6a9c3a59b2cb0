"""`inferometer names decode`: what the names of kernels tell."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import FORMATS, Output, command, output_options

if TYPE_CHECKING:
    from inferometer.analyses.result import Result


@command(
    "names",
    help="What kernel names tell: library, family, type, tile and more.\n\n"
    "Names come from the command line, or one a line from standard input where none is given or the name is -.",
    example="inferometer names decode nvjet_tst_128x112_64x7_1x2_h_bz_splitK_TNT",
)
@click.argument("action", type=click.Choice(("decode",)), metavar="decode")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@output_options(*FORMATS)
def run(action: str, names: tuple[str, ...], out: Output) -> None:
    from inferometer.names.decoding import decode

    wanted = _read_names(names)
    decoded = [decode(name) for name in wanted]
    if out.form == "json":
        out.write_json([{"name": name, **known.as_json()} for name, known in zip(wanted, decoded, strict=True)])
    else:
        out.show(_table(wanted, decoded))


def _read_names(names: Sequence[str]) -> list[str]:
    if names and "-" not in names:
        return list(names)
    if not names and sys.stdin.isatty():
        raise click.UsageError("Give kernel names, or pipe them in, one per line.")
    given = [name for name in names if name != "-"]
    return [*given, *_lines(sys.stdin.buffer)]


def _lines(stream: Iterable[bytes]) -> list[str]:
    """Names one a line; empty lines are no names. Bytes that aren't UTF-8 become replacement characters."""
    lines = (line.decode("utf-8", errors="replace").strip("\r\n\ufeff") for line in stream)
    return [line for line in lines if line.strip()]


def _table(names: Sequence[str], decoded: Sequence[object]) -> "Result":
    """Short names next to the facts, as every report renders them."""
    import polars as pl

    from inferometer.analyses.result import Field, Result, Section
    from inferometer.trace.losses import Losses
    from inferometer.trace.tables import ALL_TABLES

    fields = (
        Field("short_name", "Short name", "name"),
        Field("library", "Library", "text"),
        Field("family", "Family", "text"),
        Field("dtype", "Type", "text", spare=2),
        Field("tile", "Tile", "text", spare=3),
        Field("stages", "Stages", "number", spare=6),
        Field("split_k", "Split K", "text", spare=5),
        Field("arch", "Arch", "text", spare=4),
        Field("layer", "Layer", "number", spare=7),
        Field("role", "Role", "text", spare=7),
        Field("evidence", "Evidence", "text", spare=8),
        Field("name", "Name", "name", spare=9),
    )
    rows = [_row(name, known) for name, known in zip(names, decoded, strict=True)]
    numbers = {"stages": pl.Int64, "layer": pl.Int64}
    schema = {field.column: numbers.get(field.column, pl.String) for field in fields}
    frame = pl.DataFrame(rows, schema=schema, orient="row")

    class NameTable(Result):
        """One row a name, in the order given."""

        losses = Losses(ALL_TABLES)

        def sections(self) -> Sequence[Section]:
            return (Section("Kernel names", fields, frame),)

        def as_json(self) -> dict[str, object]:
            return {"names": frame.to_dicts()}

    return NameTable()


def _row(name: str, known: object) -> tuple[object, ...]:
    from inferometer.names.kernel_name import KernelName
    from inferometer.names.short_names import size

    assert isinstance(known, KernelName)
    tile = size(known.tile_m, known.tile_n, known.tile_k) or None
    split = None if known.split_k is None else str(known.split_k)
    evidence = f"{known.evidence.rule} [{known.evidence.mark}]"
    return (
        *(known.short_name, known.library, known.family, known.dtype, tile, known.stages, split, known.arch),
        *(known.layer, known.role, evidence, name),
    )
