"""A line of llama.cpp's log: what its log puts in front, who wrote it, and the time that it gives.

0.00.062.896 I common_perf_print: prompt eval time =      16.92 ms /    41 tokens (    0.41 ms per token, ...)
llama_print_timings:        eval time =    1239.20 ms /    31 runs   (   39.97 ms per token, ...)
slot print_timing: id  0 | task 0 |        eval time =    1239.20 ms /    32 tokens (...)
MUL_MAT q4_K m=4096 n=1 k=4096: 10 x 55.2 us = 552 us (607.9 GFLOPS/s)
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_STAMP: Final = re.compile(r"(\d{1,7})\.(\d\d)\.(\d{3})\.(\d{3}) (?=[IWED] )")
_LEVELS: Final = {"I": "info", "W": "warning", "E": "error", "D": "debug"}
_SOURCE: Final = re.compile(r"(?P<source>[A-Za-z_][\w. ]{0,60}?): ")
_SLOT: Final = re.compile(r"id +(?P<slot>\d{1,9}) \| task (?P<task>-?\d{1,15}) \| ?")
_NUMBER: Final = r"\d{1,15}(?:\.\d{1,9})?(?:e[+-]?\d{1,2})?"
_TIME: Final = re.compile(
    rf" *(?P<what>[a-z][a-z ]{{0,20}}?) time += +(?P<ms>{_NUMBER}) ms"
    rf"(?: / +(?P<count>{_NUMBER}) +(?P<unit>tokens|runs|%).*)?"
)
_OP: Final = re.compile(
    rf"(?P<op>\S.{{0,300}}?): (?P<count>\d{{1,15}}) x (?P<each>{_NUMBER}) us = (?P<us>{_NUMBER}) us\b.*"
)
_TOTAL: Final = re.compile(rf"Total time: (?P<us>{_NUMBER}) us\.?\s*")
GRAPH: Final = "Vulkan Timings:"


@dataclass(frozen=True)
class LogLine:
    """A line taken apart. `kind`: `time`, `op`, `graph`, `graph total`, None for any other."""

    text: str
    time_ns: int | None = None
    level: str | None = None
    source: str | None = None
    kind: str | None = None
    what: str | None = None
    took_ns: Decimal | None = None
    count: int | None = None
    slot: str | None = None
    task: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """What was read of it, for `log`."""
        took = None if self.took_ns is None else float(self.took_ns)
        found = {"what": self.what, "took_ns": took, "count": self.count, "slot": self.slot, "task": self.task}
        return {name: value for name, value in found.items() if value is not None}


def take_apart(line: str) -> LogLine:
    """The parts of a line without its ending."""
    text = _ANSI.sub("", line) if "\x1b" in line else line
    time_ns = level = None
    if stamp := _STAMP.match(text):
        minutes, seconds, ms, us = map(int, stamp.groups())
        time_ns = (((minutes * 60 + seconds) * 1000 + ms) * 1000 + us) * 1000
        text = text[stamp.end() :]
    if len(text) > 1 and text[0] in _LEVELS and text[1] == " " and time_ns is not None:
        level, text = _LEVELS[text[0]], text[2:]
    source = match["source"] if (match := _SOURCE.match(text)) else None
    rest = text[match.end() :] if match else text
    slot = _SLOT.match(rest)
    about: dict[str, Any] = slot.groupdict() if slot else {}
    about |= _measure(rest[slot.end() :] if slot else rest) or _measure(text)
    return LogLine(text, time_ns, level, source, **about)


def _measure(text: str) -> dict[str, Any]:
    """The time that a line gives."""
    if text.strip() == GRAPH:
        return {"kind": "graph"}
    if match := _TIME.fullmatch(text):
        count = match["count"] if match["unit"] in ("tokens", "runs") else None
        tokens = int(count) if count and count.isdecimal() else None
        return {"kind": "time", "what": match["what"], "took_ns": Decimal(match["ms"]) * 1_000_000, "count": tokens}
    if match := _TOTAL.fullmatch(text):
        return {"kind": "graph total", "took_ns": Decimal(match["us"]) * 1000}
    if match := _OP.fullmatch(text):
        about = {"kind": "op", "what": match["op"], "count": int(match["count"])}
        return about | {"took_ns": Decimal(match["us"]) * 1000}
    return {}
