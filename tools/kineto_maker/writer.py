"""Writes a trace and returns the truth about it.

The timeline is played once for each block of the file (ops, frames, device work): that takes less time than keeping
a block aside, needs no disk, and holds one step in memory. Other layouts than Kineto's are made step by step too.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, TypedDict

from .kineto_text import SPAN_SLACK_NS, KinetoText
from .options import Layout, Options
from .player import first_ns, play, root_frames
from .truth import Tally, Truth


def make_trace(options: Options) -> bytes:
    """The trace's bytes, for traces that fit in memory."""
    out = io.BytesIO()
    write_trace(options, out)
    return out.getvalue()


def write_trace(options: Options, out: BinaryIO, *, launches: bool = False) -> Truth:
    """Writes the trace to a binary file. Nothing in it depends on the clock, the machine or the file's name.

    The truth tells of every single launch only if `launches`: that takes memory that grows with the trace.
    """
    tally = Tally(options, launches=launches)
    chunks = _chunks(options, tally)
    if options.gz:
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0) as packed:
            packed.writelines(chunk.encode("ascii") for chunk in chunks)
    else:
        out.writelines(chunk.encode("ascii") for chunk in chunks)
    return tally.result()


def _chunks(options: Options, tally: Tally) -> Iterator[str]:
    text = KinetoText(options)
    header, render, separator, footer = _layout(options.layout, text)
    yield header
    between = ""
    for events in _blocks(options, text, tally):
        yield between + render(",".join(events))
        between = separator
    yield footer


def _blocks(options: Options, text: KinetoText, tally: Tally) -> Iterator[Iterable[str]]:
    """The events in the order of the file, about a step at a time; never an empty block."""
    start_ns = end_ns = first_ns(options)
    for step in play(options):
        tally.add(step)
        yield text.ops(step)
        end_ns = step.loop_end_ns
    if options.stack:
        roots = root_frames(options, start_ns, end_ns)
        tally.count("python_function", len(roots))
        yield text.frames(roots, tally.op_count)
        for step in play(options):
            yield text.frames(step.frames, tally.op_count)
    for step in play(options):
        yield text.device(step)
    metadata = text.metadata(sorted(tally.streams), start_ns)
    window = text.window(start_ns - SPAN_SLACK_NS, end_ns + SPAN_SLACK_NS)
    for category, number in (("M", len(metadata) + 1), ("Trace", 1), ("i", 2)):
        tally.count(category, number)
    yield metadata + window


class _JsonStyle(TypedDict, total=False):
    indent: int
    separators: tuple[str, str]


_STYLES: Final[dict[Layout, _JsonStyle]] = {
    "compact": {"separators": (",", ":")},
    "oneline": {},
    "indent2": {"indent": 2},
}


def _layout(layout: Layout, text: KinetoText) -> tuple[str, Callable[[str], str], str, str]:
    """The header, what turns a block of Kineto's text into the layout's, what separates blocks, and the footer."""
    if layout == "kineto":
        return text.header(), str, ",", text.footer()
    style = _STYLES[layout]
    indented = "indent" in style

    def render(events: str) -> str:
        dumped = json.dumps(json.loads(f"[{events}]"), **style)[1:-1]
        return dumped.rstrip("\n").replace("\n", "\n  ") if indented else dumped

    header = json.dumps(json.loads(text.header() + "]}"), **style)
    footer = json.dumps(json.loads('{"traceEvents": [' + text.footer()), **style)
    end = footer[footer.index("]") :]
    separator = "," if indented or layout == "compact" else ", "
    return header[: header.rindex("[") + 1], render, separator, f"\n  {end}" if indented else end
