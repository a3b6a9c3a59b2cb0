"""Fills `steps`, `totals` and `log` from the lines of a log."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.llama_log.lines import LogLine, take_apart
from inferometer.formats.text_lines import read_lines, without_ending
from inferometer.trace.facts import Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

STEPS, TOTALS, LOG = "steps", "totals", "log"
_PHASES: Final = {"prompt eval": "prefill", "eval": "decode"}
_MOST: Final = 2**63 - 1
_BATCH: Final = 50_000
_HINT: Final = "llama.cpp prints timings when it ends, with --perf; on Vulkan set GGML_VK_PERF_LOGGER=1."
_NOTE: Final = "A step is a whole prompt, or all tokens after it, as the program printed their sums."
_GRAPHS: Final = "A step is a graph that ran on Vulkan, with the sum of each op in it."
_BOTH: Final = "Run 0 has the graphs that ran on Vulkan; run 1 has prompts and answers as a whole."


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: No line gives a time.
    """
    reader = _Reader(out)
    limits = source.limits
    with source.open() as stream:
        numbered = read_lines(stream, out.losses, longest=limits.event_bytes, most=limits.lines, name=source.name)
        lines = _Numbered(numbered)
        for number, text in lines:
            reader.take(number, text)
        if stream.damage:
            out.losses.count("broken_compression", example=stream.damage)
    if lines.is_cut:
        out.losses.count("truncated", example="the last line has no end")
    elif reader.ends_in_graph:
        out.losses.count("truncated", example="the last graph's timings have no total time after them")
    if not reader.times:
        raise FormatError(f"{source.name}: expected timings of llama.cpp, found none", hint=_HINT)
    return reader.finish(source.name)


class _Numbered:
    """Lines without their endings, with their numbers, and whether the last had none."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self.is_cut = False

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, line in self._lines:
            self.is_cut = not line.endswith("\n")
            yield number, without_ending(line)


class _Reader:
    def __init__(self, out: "TraceBuilder") -> None:
        self.times = 0
        self._out = out
        self._printed: list[dict[str, Any]] = []
        self._graphs: list[dict[str, Any]] = []
        self._ops: list[dict[str, Any]] = []
        self._in_graph = False
        self._lines: dict[str, list[Any]] = defaultdict(list)
        self.ends_in_graph = False  # so far: the last line is of a graph whose total time wasn't printed

    def take(self, number: int, line: str) -> None:
        """One line."""
        entry = take_apart(line)
        if entry.kind == "graph":
            self._in_graph = True
            self._graphs.append({"step": len(self._graphs), "anchor": entry.text.strip(" :")})
        elif entry.kind == "op" and self._in_graph:
            self.times += 1
            self._take_op(number, entry)
        elif entry.kind == "graph total" and self._in_graph:
            self._in_graph = False
            took = entry.took_ns
            self._graphs[-1]["gpu_busy_ns"] = None if took is None or took > _MOST else round(took)
        elif entry.kind == "time":
            self.times += 1
            self._take_time(number, entry)
        self.ends_in_graph = self._in_graph and entry.kind in ("graph", "op")
        if self._out.wants(LOG):
            self._keep(number, entry)

    def finish(self, name: str) -> Facts:
        """Hand over what is left."""
        both = bool(self._graphs and self._printed)
        for i, row in enumerate(self._printed):
            row |= {"step": i, "process": 1 if both else None}
        rows = [*self._graphs, *self._printed]
        for table, found in ((STEPS, rows), (TOTALS, self._ops)):
            if self._out.wants(table) and found:
                self._out.losses.see(table, len(found))
                names = dict.fromkeys(key for row in found for key in row)
                columns: dict[str, Any] = {key: [row.get(key) for row in found] for key in names}
                self._out.add(table, len(found), columns | ({"source": "recorded"} if table == STEPS else {}))
        self._hand_over_lines()
        notes = [_BOTH] if both else []
        notes += [note for note, found in ((_GRAPHS, self._graphs), (_NOTE, self._printed)) if found]
        return Facts("llama-log", name, tool="llama.cpp", framework="llama.cpp", notes=tuple(notes))

    def _take_op(self, number: int, entry: LogLine) -> None:
        took = entry.took_ns
        if took is None or took > _MOST or not entry.count or entry.count > _MOST:
            self._lose("unreadable_row", TOTALS, f"line {number}")
            return
        self._ops.append(
            {
                "section": 0,
                "step": len(self._graphs) - 1,
                "kernel": entry.what,
                "count": entry.count,
                "total_ns": round(took),
                "mean_ns": float(took) / entry.count,
                "resolution_ns": float(took) * 5e-6,
            }
        )

    def _take_time(self, number: int, entry: LogLine) -> None:
        phase = _PHASES.get(entry.what or "")
        if phase is None:
            return
        if not entry.took_ns or entry.took_ns > _MOST or entry.count is None or entry.count > _MOST:
            self._lose("without_duration", STEPS, f"line {number}: {entry.text.strip()[:80]}")
            return
        tokens = "prefill_tokens" if phase == "prefill" else "decode_tokens"
        row = {
            "phase": phase,
            "dur_ns": round(entry.took_ns),
            tokens: entry.count,
            "anchor": entry.source or entry.what,
        }
        self._printed.append(row)

    def _keep(self, number: int, entry: LogLine) -> None:
        values = {
            "line": number,
            "time_ns": entry.time_ns,
            "level": entry.level,
            "source": entry.source,
            "kind": entry.kind,
            "text": entry.text,
            "fields": msgspec.json.encode(entry.fields).decode() if entry.fields else None,
        }
        for name, value in values.items():
            self._lines[name].append(value)
        if len(self._lines["line"]) >= _BATCH:
            self._hand_over_lines()

    def _hand_over_lines(self) -> None:
        rows = len(self._lines["line"])
        if rows:
            self._out.losses.see(LOG, rows)
            self._out.add(LOG, rows, self._lines)
            self._lines = defaultdict(list)

    def _lose(self, name: str, table: str, example: str) -> None:
        if self._out.wants(table):
            self._out.losses.see(table)
            self._out.losses.count(name, category=table, example=example)
