"""`inferometer sql`: a question in SQL about a trace's tables."""

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, command, output_options, source_argument
from inferometer.commands.options.selection import top_option


@command(
    "sql",
    group="Explain",
    help="Ask the tables of a trace in SQL.\n\nTheir names and columns are those of the reference. QUERY only reads, "
    "and only these tables.",
    example='inferometer sql trace.json.gz "select kernel, sum(dur_ns) as ns from launches group by kernel"',
)
@source_argument
@click.argument("query")
@top_option("rows", default=1000)
@output_options(*FORMATS)
def run(source: TraceArgument, query: str, top: int, out: Output) -> None:
    from inferometer.analyses.sql.query import run_query

    out.show(run_query(source.open(), query, most_rows=top))
