"""One line taken apart: who relayed it, at which level, when it was written, by which module, and what it says.

    [browser:warning] [3718.2ms][Profile] GPU Profile Report        relayed by a harness
    [3718.2ms][Profile] GPU Profile Report                          copied from a console
    [Log] [3718.2ms][Profile] GPU Profile Report (runner.js, line 12)   from Safari's console
    [3718.2ms][Profile] GPU Profile Report runner.js:12:9           from Firefox's
    web-1  | 2025-01-15T10:20:30.5Z [browser:log] [GPU] …           kept by another tool, with its own words

Rows of a report, rulers, empty lines and free text have no such parts.
"""

import re
from decimal import Decimal

import msgspec

_NS_PER = {"ns": 1, "us": 1_000, "\u00b5s": 1_000, "\u03bcs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TAG = r"[A-Za-z][\w.#-]{0,40}"
_LEVEL = "log|info|warn|warning|error|debug|verbose|trace|assert"
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_UNIT = "ns|us|\u00b5s|\u03bcs|ms|s"
_MODULE = r"[A-Za-z][\w.-]{0,60}"
_HARNESS = "progress|ok|passed|failed|fail|metrics|error"
_PARTS = re.compile(
    rf"(?:\[(?P<tag>{_TAG}):(?P<level>{_LEVEL})\] ?|\[(?P<console>Log|Info|Warning|Error|Debug)\] +(?=\[))?"
    rf"(?:\[(?P<time>{_NUMBER}) ?(?P<unit>{_UNIT})\] ?)?(?:\[(?P<module>{_MODULE})\] ?)?(?P<text>.*)",
    re.DOTALL,
)
_FIRST = rf"\[{_TAG}:(?:{_LEVEL})\]|\[{_NUMBER} ?(?:{_UNIT})\] ?\[{_MODULE}\]"
_ANCHOR = re.compile(rf"{_FIRST}|\[(?:{_HARNESS}|GPU)\] ")
_LOG = re.compile(
    rf"^.{{0,200}}?(?:\[{_TAG}:(?:{_LEVEL})\] (?:\[(?:GPU|Profile|Perf)\]|\[{_NUMBER} ?(?:{_UNIT})\])"
    rf"|\[{_NUMBER} ?(?:{_UNIT})\] ?\[{_MODULE}\]|\[metrics\] (?:tok/s |ttft=|load=|prompt=))",
    re.MULTILINE,
)
_OUTER = re.compile(
    r"\s*(?:> ?){0,3}(?:[^\t\[]{1,80}\t[^\t\[]{1,80}\t\ufeff?(?=\d{4}-\d\d-\d\dT))?"
    r"(?:(?P<owner>[\w./-]{1,60})\s*\|\s+)?"
    r"(?:(?:\[?\d{4}-\d\d-\d\d[T ])?\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?\s+"
    r"(?:std(?:out|err) [FP] )?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,80} \S{1,80}: )?"
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PLACE = re.compile(r" (?:\([^() ]{1,80}, line \d{1,7}\)|[\w.@/-]{1,80}\.(?:[cm]?[jt]sx?|html)(?::\d{1,7}){1,2})\s*$")
_LONGEST_PLACE = 120
_DEEPEST = 240  # characters that other tools may have put before the first part, and that part


class Parts(msgspec.Struct, frozen=True):
    """A line's parts; what it lacks is None. `owner` is the name that a tool puts before all lines of one process."""

    text: str
    owner: str | None = None
    tag: str | None = None
    level: str | None = None
    time_ns: int | None = None
    module: str | None = None

    @property
    def is_stamped(self) -> bool:
        """Whether the engine wrote it, not the harness, and not a table."""
        return self.tag is not None or self.time_ns is not None


class Splitter:
    """Takes lines apart, without the place in the program that a console puts after them.

    Remembers whether another tool put its words before each of them.
    """

    def __init__(self) -> None:
        self.has_outer = False

    def split(self, line: str) -> Parts | None:
        """The parts of a line without its ending; None where it is all text."""
        plain = _ANSI.sub("", line) if "\x1b" in line else line
        if (place := _PLACE.search(plain, max(len(plain) - _LONGEST_PLACE, 0))) is not None:
            plain = plain[: place.start()]
        parts = self._split(plain)
        return parts if parts is not None or plain == line else Parts(plain)

    def _split(self, line: str) -> Parts | None:
        anchor = _ANCHOR.search(line, 0, _DEEPEST) if "[" in line else None
        if anchor is None:
            return self._below(line) if self.has_outer else _parts(line, 0, None)
        at = anchor.start()
        outer = _OUTER.fullmatch(line, 0, at)
        if at and outer:
            self.has_outer = True
        return _parts(line, at if outer or not line.startswith("[") else 0, outer["owner"] if outer else None)

    def _below(self, line: str) -> Parts | None:
        """A line of a table to which the other tool's words belong, too."""
        outer = _OUTER.match(line)
        if outer is None or not outer.end():
            return _parts(line, 0, None)
        return _parts(line, outer.end(), outer["owner"]) or Parts(line[outer.end() :], outer["owner"])


def _parts(line: str, at: int, owner: str | None) -> Parts | None:
    match = _PARTS.match(line, at) if line.startswith("[", at) else None
    if match is None or match.start("text") == at:
        return None
    time_ns = None if match["time"] is None else to_ns(match["time"], match["unit"])
    level = match["level"] or (match["console"] and match["console"].lower())
    return Parts(match["text"], owner, match["tag"], level, time_ns, match["module"])


def to_ns(number: str, unit: str) -> int:
    """Nanoseconds of a printed time, exactly; parts of one round."""
    return round(Decimal(number) * _NS_PER[unit])


def is_log(text: str) -> bool:
    """Whether a line of the text is stamped as this engine or its harness stamps them."""
    return _LOG.search(_ANSI.sub("", text)) is not None
