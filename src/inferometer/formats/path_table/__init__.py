"""Printed tables of time by call path, a column for each run: `kernel | kernel_path | A | B | A-B`.

Source: the tables that the profiler of a Llama port prints and pull requests quote (seconds per call, a mean over
calls whose number isn't known). Bars with rulers anywhere, Markdown, and the same columns parted by tabs, commas or
semicolons. Fills path_totals (a row per cell that isn't blank; `backend` is the column's title), call_paths (from the
dotted paths) and log (every other line). Values stay where the file has them, also where they can't be right:
`analyses/path_table` looks for that. Leaves out: the columns of differences, which are only checked, and any
second table. Modules: `header` says what each column is, `rows` reads cells, `reader` goes through the lines.

`formats/path_table` reads tables of time by call path with a column per run (`kernel`, `kernel_path`, A, B, A-B),
between bars or as CSV. `header.py` says what each column is, `rows.py` reads cells exactly, `reader.py` makes the
tree of the dotted paths. Values stay where the file has them, the differences are only checked. `analyses/path_table`
looks for what can't be right: `fit` says how well times fit their paths, `orders` and `shift` look for times that a
missing path has moved to others, whatever the order was in which they were joined, and `found` says it in sentences.
"""

from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts


def _sniff(head: bytes) -> bool:
    """Text with the header of a path table in its first 64 KiB, unless it is a table of kernels or an engine's log."""
    from inferometer.formats.text_lines import decode_head

    text = decode_head(head)
    if "path" not in text.lower():
        return False
    from inferometer.formats.kernel_table.layouts import find_table
    from inferometer.formats.path_table.header import find_header
    from inferometer.formats.webgpu_log.lines import is_log

    lines = text.split("\n")
    if not any(map(find_header, lines)) or is_log(text):
        return False
    return not any(table.header.is_kernels for table in filter(None, map(find_table, lines)))


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.path_table.reader import read

    return read(source, out)


FORMAT = Format(
    name="path-table",
    title="printed tables of time by call path (kernel, kernel_path, a column per run), .txt, .md, .csv or .tsv",
    suffixes=(".txt", ".md", ".csv", ".tsv"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"path_totals", "call_paths", "log"}),
    limits=(
        "Times are means per call: the table has no counts of calls, so they can't be added up. Values stay in the "
        "rows in which the file has them. Columns of differences are checked, not kept; only the first table is read."
    ),
)
