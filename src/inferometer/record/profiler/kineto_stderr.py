"""What Kineto prints on standard error while a window turns over: kept from the user's terminal, and counted.

Kineto logs from C++, past Python's `sys.stderr`; some versions print a line at every start and stop, which once a
second is too much. So file descriptor 2 leads to a temporary file for the length of those calls. What isn't Kineto's is
written to where it belonged afterwards.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_STDERR = 2
_MOST_BYTES = 1 << 20
_LINE = re.compile(
    rb"(?P<level>USDT|VERBOSE|INFO|STAGE|WARNING|ERROR):\s?(?:\d{4}-\d\d-\d\d[ T]|External init callback)"
    rb"|\[(?P<short>[WE])\d{4} [\d:.]+ \w*(?:kineto|cupti|profiler)\w*\.(?:cpp|h):\d+\]"
)
_HARMLESS = b"External init callback"  # the on-demand profiler of another thread, which nobody asked for
_GRAVE = {b"WARNING": "warning", b"ERROR": "error", b"W": "warning", b"E": "error"}


@dataclass
class StderrLines:
    """Kineto's warnings and errors by their text without the date, and how often each came."""

    lines: dict[str, int] = field(default_factory=dict)

    def take(self, text: bytes) -> bytes:
        """Count Kineto's lines; returns the others."""
        others = []
        for line in text.splitlines(keepends=True):
            match = _LINE.match(line)
            if match is None:
                others.append(line)
            elif _HARMLESS not in line and (match["level"] or match["short"]) in _GRAVE:
                words = re.sub(rb"^.*?(\w+\.(?:cpp|h):\d+\]?)", rb"\1", line).strip().decode("utf-8", "replace")[:200]
                self.lines[words] = self.lines.get(words, 0) + 1
        return b"".join(others)


@contextmanager
def kept_quiet(stderr_lines: StderrLines) -> Iterator[None]:
    """Standard error leads to `stderr_lines` meanwhile; where it can't be turned, it stays as it is."""
    try:
        old, file = os.dup(_STDERR), tempfile.TemporaryFile()  # noqa: SIM115  # closed below
    except OSError:
        yield
        return
    try:
        os.dup2(file.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(old, _STDERR)
            file.seek(0)
            others = stderr_lines.take(file.read(_MOST_BYTES))
            with suppress(OSError):
                while others:
                    others = others[os.write(_STDERR, others) :]
    finally:
        file.close()
        os.close(old)
