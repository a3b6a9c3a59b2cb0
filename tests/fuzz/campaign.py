"""Many cases in worker processes, each with limits of time and memory; a worker that dies or hangs is a defect, too."""

import contextlib
import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 10.0
GROWTH_BYTES = 512 << 20
_ADDRESS_BYTES = 12 << 30  # what stops a worker before the machine runs out
_POLL_S = 0.25
_PATIENCE = 12  # on a machine that does other work
_START_S = 120.0
_PANIC = re.compile(r"panicked at \S*crates/polars")


@dataclass(frozen=True)
class Limits:
    """What one case may take: seconds of the processor (and `_PATIENCE` times as long by the clock), memory."""

    seconds: float = SECONDS
    growth_bytes: int = GROWTH_BYTES


@dataclass(frozen=True)
class Result:
    """The outcome of a case, with what it took.

    `growth_bytes`: the worker's peak above what it had before. `panics`: panics of Polars that became a refusal, but
    that Polars itself printed.
    """

    number: int
    subject: str
    kind: str
    seconds: float
    growth_bytes: int
    asked: str | None = None
    where: str = ""
    text: str = ""
    panics: int = 0


def run_cases(seed: int, numbers: Sequence[int], *, processes: int, limits: Limits) -> Iterator[Result]:
    """The results, as they come."""
    with TemporaryDirectory(prefix="fuzz-campaign-") as folder:
        workers = [_Worker(seed, numbers[i::processes], Path(folder), i, limits) for i in range(processes)]
        try:
            while any(worker.is_at_work for worker in workers):
                ready = wait([worker.pipe for worker in workers if worker.is_at_work], _POLL_S)
                for worker in workers:
                    if worker.is_at_work:
                        yield from worker.results(is_ready=worker.pipe in ready)
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """A process with its share of the cases, started anew when a case ends it."""

    def __init__(self, seed: int, numbers: Sequence[int], folder: Path, place: int, limits: Limits) -> None:
        self._seed = seed
        self._numbers = list(numbers)
        self._log = folder / f"{place}.stderr"
        self._limits = limits
        self.is_at_work = bool(numbers)
        if self.is_at_work:
            self._start()

    def results(self, *, is_ready: bool) -> Iterator[Result]:
        """What has come; one result more where the process died, or was stopped for taking too long."""
        from tests.fuzz.case import subject_of

        fate = None
        try:
            while is_ready and self.pipe.poll():
                result: Result = self.pipe.recv()
                self._numbers.pop(0)
                self._note_time()
                yield result
        except EOFError:
            self._process.join()
            fate = f"the process ended with {self._process.exitcode}"
        if not self._numbers:
            self.is_at_work = False
            self.end()
            return
        seconds, start_s = time.monotonic() - self._began, _START_S if self._is_fresh() else 0.0
        busy_s = _processor_seconds(self._process.pid) - self._busy_s
        too_long = busy_s > self._limits.seconds + start_s or seconds > self._limits.seconds * _PATIENCE + start_s
        if fate is None and too_long:
            self._process.kill() if self._ask_for_its_stack() else None
            self._process.join()
            fate = f"took longer than {self._limits.seconds:g} s"
        if fate is not None:
            number = self._numbers.pop(0)
            subject = subject_of(number).name
            text = self._log.read_text("utf-8", "replace")[-6000:]
            yield Result(number, subject, "defect", seconds, 0, None, f"{fate}: {_place_in(text)}", text)
            self._start()

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def _start(self) -> None:
        self.is_at_work = bool(self._numbers)
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe(duplex=False)
        self._first = self._numbers[0] if self._numbers else -1
        self._process: Any = context.Process(
            target=_work, args=(theirs, self._seed, self._numbers, self._log, self._limits), daemon=True
        )
        self._process.start()
        theirs.close()
        self._note_time()

    def _note_time(self) -> None:
        self._began = time.monotonic()
        self._busy_s = _processor_seconds(self._process.pid)

    def _is_fresh(self) -> bool:
        return bool(self._numbers) and self._numbers[0] == self._first

    def _ask_for_its_stack(self) -> bool:
        with contextlib.suppress(OSError):
            os.kill(self._process.pid, signal.SIGUSR1)
            time.sleep(1)
        return True


def _work(pipe: Connection, seed: int, numbers: Sequence[int], log: Path, limits: Limits) -> None:
    """Run cases one after the other; whatever is printed to stderr on the way is a defect of its case."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_BYTES, _ADDRESS_BYTES))
    import scipy.stats  # noqa: F401  # what some questions load when they are first asked
    from tests.fuzz.beside.models import load_engine

    load_engine()
    warnings.simplefilter("error")
    from tests.fuzz.case import make_case, run_case

    printed = log.stat().st_size
    for number in numbers:
        case, rng = make_case(seed, number)
        before = _memory("VmRSS")
        _reset_peak()
        outcome = run_case(case, rng)
        growth = max(0, _memory("VmHWM") - before)
        kind, where, text = outcome.kind, outcome.where, outcome.text
        if growth > limits.growth_bytes:
            kind, where, text = "defect", f"grew by {growth >> 20} MiB", str(case)
        elif kind != "defect" and outcome.seconds > limits.seconds:
            kind, where, text = "defect", f"took {outcome.seconds:.1f} s", str(case)
        said = log.read_bytes()[printed:].decode("utf-8", "replace") if log.stat().st_size > printed else ""
        panics = len(_PANIC.findall(said))
        if said and not panics:
            kind, where, text = "defect", where or f"printed {said.strip()[:120]!r}", f"{text}\n{said[-3000:]}"
        printed = log.stat().st_size
        pipe.send(Result(number, outcome.subject, kind, outcome.seconds, growth, outcome.asked, where, text, panics))
    pipe.close()


def _processor_seconds(pid: int) -> float:
    """What the process has used of the processor; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(field: str) -> int:
    """Bytes of this process, as Linux counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) << 10
    return 0


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _place_in(stack: str) -> str:
    """The innermost line of ours in a stack that faulthandler wrote."""
    ours = [line.strip() for line in stack.splitlines() if "/inferometer/" in line and line.lstrip().startswith("File")]
    return ours[0].replace('"', "").rpartition("/")[2] if ours else "?"
