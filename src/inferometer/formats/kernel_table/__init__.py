"""Printed tables of kernel time, and the text around them.

Source: what `nsys stats` prints (`cuda_gpu_kern_sum` as columns, CSV or TSV), tables copied from its window with human
units, GitHub tables, and our own `inferometer kernels` in every form but JSON. Fills totals (each table a section),
call_paths (Python tracebacks next to the tables) and log (every other line). Leaves out: tables about other things than
kernels (API calls, copies), whose text is in the log. Modules: `lines` gives lines of text, `headers` and `layouts`
find a table and its cells, `rows` reads them, `tracebacks`, `mentions` and `free_text` read the rest.

`formats/text_lines.py` gives the lines of a text file, whatever its encoding, to this format and the next.

`formats/kernel_table` reads tables of kernel time as tools print them, in the midst of other text: separated by tabs,
commas or bars, or aligned above a ruler. `layouts.py` parts the cells, `headers.py` says what each column is,
`rows.py` reads the numbers exactly, with the unit of the cell or the header, and notes how finely a total was
printed. Each table is a section. `tracebacks.py` makes call paths of Python tracebacks, a rank at a time;
`mentions.py` finds kernels and paths named in the text. Every line that is no row is in the log. Tables of something
else (API calls, copies) stay text, and are counted.
"""

from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts


def _sniff(head: bytes) -> bool:
    """Text with the header of a kernel table in its first 64 KiB, unless an engine's log has its own reader."""
    from inferometer.formats.text_lines import decode_head
    from inferometer.formats.webgpu_log.lines import is_log

    text = decode_head(head)
    if not text or is_log(text):
        return False
    from inferometer.formats.kernel_table.layouts import find_table

    tables = filter(None, map(find_table, text.split("\n")))
    return any(table.header.is_kernels for table in tables)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.kernel_table.reader import read

    return read(source, out)


FORMAT = Format(
    name="kernel-table",
    title="printed kernel tables (nsys stats, inferometer kernels), .txt, .tsv, .csv or .md",
    suffixes=(".txt", ".tsv", ".csv", ".md"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"totals", "call_paths", "log"}),
    limits=(
        "Holds sums, no launches. Tables about API calls, copies and ranges are kept as text, not as numbers. "
        "Names that were printed cut short stay so."
    ),
    recorded_by="nsys stats --report cuda_gpu_kern_sum --format column report.nsys-rep > table.txt",
    aliases=("nsys-table", "cuda_gpu_kern_sum"),
)
