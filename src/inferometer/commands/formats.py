"""`inferometer formats`: what can be read, and what not."""

from typing import TYPE_CHECKING

from inferometer.commands.base import Output, command, output_options
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.formats.base import Format


SCHEMA = Schema("formats", 1)


@command(
    "formats",
    group="Tools",
    help="The formats that can be read, with their limits and how to record them.",
    example="inferometer formats",
)
@output_options("json")
def run(out: Output) -> None:
    from inferometer.formats.base import known_formats

    formats = known_formats()
    if out.form == "json":
        out.write_json(SCHEMA, {"formats": [_as_data(fmt) for fmt in formats.values()]})
        return
    for fmt in formats.values():
        names = ", ".join((fmt.name, *fmt.aliases))
        out.write(f"{names}\n  {fmt.title}\n  fills: {', '.join(sorted(fmt.tables))}\n")
        if fmt.recorded_by:
            out.write(f"  recorded by: {fmt.recorded_by}\n")
        if fmt.limits:
            out.write(f"  limits: {fmt.limits}\n")
        if fmt.tell_reader:
            out.write(f"  read here by: {fmt.tell_reader()}\n")
    out.write("store\n  NAME.ifm, made by `inferometer import`\n")


def _as_data(fmt: "Format") -> dict[str, object]:
    return {
        "name": fmt.name,
        "aliases": list(fmt.aliases),
        "title": fmt.title,
        "suffixes": list(fmt.suffixes),
        "tables": sorted(fmt.tables),
        "recorded_by": fmt.recorded_by,
        "limits": fmt.limits,
        "read_by": fmt.tell_reader() if fmt.tell_reader else None,
    }
