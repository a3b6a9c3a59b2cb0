"""Runs a command as a process of its own and measures the whole of it, from start to exit.

The kernel counts (`wait4`): CPU time and peak resident memory of the process and of children that it waited for. On
Linux a peak starts from that of the process that forked it, so this harness stays small (the standard library only),
and a peak below its own can't be seen. Linux and macOS only. Left out: what the system writes back afterwards.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024  # getrusage(2): bytes on macOS, KiB elsewhere
_NOT_INHERITED = ("PYTHON", "POLARS")  # settings such as PYTHONDONTWRITEBYTECODE would change what is measured


class ProcessFailed(Exception):
    """A measured command ended with an exit code other than 0."""


@dataclass(frozen=True, slots=True)
class Run:
    """One process, start to exit."""

    wall_ns: int
    user_ns: int
    system_ns: int
    peak_bytes: int

    @property
    def cpu_ns(self) -> int:
        """User and system time on all cores."""
        return self.user_ns + self.system_ns


@dataclass(frozen=True, slots=True)
class Measurement:
    """All timed runs of one case; at least one."""

    runs: tuple[Run, ...]

    @property
    def wall_ns(self) -> int:
        """Median of the wall times."""
        return round(median(run.wall_ns for run in self.runs))

    @property
    def wall_range_ns(self) -> tuple[int, int]:
        """Least and greatest wall time."""
        times = [run.wall_ns for run in self.runs]
        return min(times), max(times)

    @property
    def cpu_ns(self) -> int:
        """Median of user plus system time."""
        return round(median(run.cpu_ns for run in self.runs))

    @property
    def peak_bytes(self) -> int:
        """Greatest peak of any run: memory bars must hold in each."""
        return max(run.peak_bytes for run in self.runs)


def measure_process(argv: Sequence[str | Path], directory: Path, stdin: Path | None = None) -> tuple[Run, bytes]:
    """What the process cost, and what it wrote to stdout. It reads `stdin`; None: nothing.

    Output goes to files, so that no reader competes for a core.

    Raises:
        ProcessFailed: The exit code isn't 0; the message holds the end of stderr.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    environment["NO_COLOR"] = "1"
    given = Path(os.devnull) if stdin is None else stdin
    with given.open("rb") as read, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began_ns = time.perf_counter_ns()
        process = subprocess.Popen(argv, cwd=directory, env=environment, stdin=read, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall_ns = time.perf_counter_ns() - began_ns
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            said = err.read()[-2000:].decode("utf-8", "replace").strip()
            raise ProcessFailed(f"exit code {process.returncode}: {' '.join(map(str, argv))}\n{said}")
        run = Run(wall_ns, round(usage.ru_utime * 1e9), round(usage.ru_stime * 1e9), usage.ru_maxrss * _MAXRSS_BYTES)
        return run, out.read()


def own_peak_bytes() -> int:
    """Peak memory of this harness: the least peak that it can see in others."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES
