"""`inferometer import`: a trace as a store that opens at once."""

import click

from inferometer.commands.base import Output, TraceArgument, command, output_options, say_losses, source_argument
from inferometer.commands.options.joined import execution_trace_option, with_arguments
from inferometer.reports.schemas.schema import Schema

SCHEMA = Schema("import", 1)


@command("import", group="Tools", help="Save a trace as a store (NAME.ifm), which every command opens at once.",
         example="inferometer import trace.json.gz -o trace.ifm")  # fmt: skip
@source_argument
@click.option("-o", "--output", required=True, metavar="NAME.ifm", help="The store to make.")
@execution_trace_option
@click.option("--force", is_flag=True, help="Replace the store if it exists.")
@output_options("json")
def run(source: TraceArgument, output: str, execution_trace: str | None, force: bool, out: Output) -> None:
    from inferometer.errors import clean, printable
    from inferometer.units import format_rows

    trace = with_arguments(source, execution_trace).store(output, force=force)
    rows, output = trace.count_rows(), printable(output)
    if out.form == "json":
        out.write_json(SCHEMA, {"store": output, "rows": rows, "losses": trace.losses.as_dict()})
        return
    counted = ", ".join(format_rows(n, name) for name, n in rows.items() if n) or "no rows"
    out.write(f"{clean(output)}: {counted}\n")
    say_losses(trace.losses)
