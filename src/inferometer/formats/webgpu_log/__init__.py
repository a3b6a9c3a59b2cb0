"""Logs of a WebGPU engine: what a browser or Node process prints while it loads a model, runs it and profiles it.

Source: a log of a browser engine that a Node harness relays, and the harness's own lines. Every line is typed and kept
in log; kernel selections fill selections; each profile report fills totals (one row per printed row) and steps (one row
per report, with wall times from the times of the lines). What the lines say besides is in `facts.engine_metrics`. Sizes
are in powers of 1024, as the engine counts them: its 1024 MB are 1 GB. Leaves out: printed shares of time, which the
rows make.

The log is read line by line. `lines.py` takes off what relays and containers put in front and stamps each line with
time, level and module. `messages.py` reads what a line of each kind says; one that no kind fits is kept without a kind
and counted. `reports.py` follows the tables of GPU time by their headers, whose cells `tables.py` reads. `run.py` keeps
what the lines of a run say, `runs.py` finds the run that wrote a line, and `steps.py` gives each report its place in
time.
"""

from typing import TYPE_CHECKING

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts


def _sniff(head: bytes) -> bool:
    """Text with a stamped line of a module, or a result of the harness, in its first 64 KiB."""
    from inferometer.formats.text_lines import decode_head
    from inferometer.formats.webgpu_log.lines import is_log

    return is_log(decode_head(head))


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.webgpu_log.reader import read

    return read(source, out)


FORMAT = Format(
    name="webgpu-log",
    title="log of a WebGPU engine with GPU profile reports, .log or .txt",
    suffixes=(".log", ".txt"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"log", "selections", "steps", "totals"}),
    limits=(
        "Holds sums by label and report, no launches. Times are as finely known as they are printed. Wall times of "
        "steps are those between the lines of the log; the first ones need its last lines."
    ),
    aliases=("webgpu",),
)
