"""`inferometer summary`: the first look at a trace."""

from inferometer.commands.base import Output, Source, command, output_options, source_argument
from inferometer.commands.choosing import rank_option, top_option


@command(
    "summary", help="What a trace is and where its devices' time went.", example="inferometer summary trace.json.gz"
)
@source_argument
@top_option("Kernels", default=10)
@rank_option()
@output_options("json", "markdown")
def run(source: Source, top: int, rank: int | None, out: Output) -> None:
    from inferometer.analyses.summary import summarize

    out.show(summarize(source.open(rank=rank), top=top))
