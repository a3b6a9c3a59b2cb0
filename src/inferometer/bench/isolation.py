"""Candidates in a process of their own, with limits of time and memory, that are sent inputs and send back outputs.

What they send back is read as tensors only, never as code. The process is ended, with all that it started, when a call
takes too long and when the work is done.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from inferometer.bench.answers import Answer, UnreadableAnswer, read_answer
from inferometer.bench.candidates import Candidate
from inferometer.bench.supervised import Supervised, last_lines
from inferometer.errors import clean
from inferometer.operators.operator import Operator

if TYPE_CHECKING:
    from torch import Tensor

_START_S = 120.0  # torch takes seconds to import, on a busy machine many
_KEPT = (
    "PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HOME", "TMPDIR", "LANG", "CUDA_HOME",
    "ROCM_PATH", "CC", "CXX", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "MAX_JOBS",
)  # fmt: skip
_FREE_SHARE = 0.8
_PATIENCE = 10  # times as long as expected
_PROFILER_S = 60.0  # to start, to end, to write
_LONGEST_REPLY = 64 << 20  # bytes; the times of a million calls
_ENDING_S = 2.0  # for a process that closed its replies
_CHANNEL = "it wrote to the channel of its replies"


@dataclass(frozen=True)
class ProcessLimits:
    """What a candidate may take: seconds a call, bytes of memory (None: 80 % of the host's), threads of torch.

    On a GPU the bytes are of its memory, and None is all of it. Where calls are timed on a CPU there is one thread.
    """

    seconds: float = 60.0
    memory_bytes: int | None = None
    threads: int = 2

    def memory_on(self, device: str) -> int | None:
        """What holds on a device."""
        if self.memory_bytes is not None or device != "cpu":
            return self.memory_bytes
        return int(_FREE_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


@dataclass(frozen=True)
class Round:
    """Calls in the order that they were made.

    Attributes:
        rows: Of each call the candidate's place, begin and end on the host's clock, its ns, and ns of work after it.
        sent_ns: The host's clock when they were asked for.
        received_ns: And when they were read.
        threads: How many more there are than before.
        broken: Functions that were replaced.
        took_ns: All of it in the process, without what a profiler takes to start and end.
        own_ns: In interpreted kernels of the candidate's file; None where nothing tells.
        cannot: Why the timer can't time so; then there are no rows.
        trace: The profile, where one was asked for.
    """

    rows: Sequence[Sequence[float]]
    sent_ns: int
    received_ns: int
    took_ns: int = 0
    threads: int = 0
    broken: Sequence[str] = ()
    own_ns: int | None = None
    cannot: str | None = None
    trace: Path | None = None


@dataclass(frozen=True)
class Session:
    """What a process is for: `timed` ones draw inputs themselves and are asked for rounds, others for answers."""

    operator: Operator
    entrants: tuple[Candidate, ...]
    device: str = "cpu"
    timed: bool = False
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    cache_bytes: int | None = None

    @property
    def interprets(self) -> bool:
        """Whether Triton's kernels are interpreted: on a CPU, those of a candidate and of backends made of them."""
        return self.device == "cpu" and any(each.interpreted for each in self.entrants)

    def as_request(self) -> dict[str, Any]:
        """The first line that the process reads."""
        return {
            "operator": self.operator.name,
            "settings": list(self.operator.settings),
            "updates": list(self.operator.updates),
            "lanes": [each.as_request() for each in self.entrants],
            "device": self.device,
            "timed": self.timed,
            "threads": 1 if self.timed and self.device == "cpu" else self.limits.threads,  # others would wait for each
            "memory_bytes": self.limits.memory_on(self.device),
            "cache_bytes": self.cache_bytes,
        }


class _Reply(msgspec.Struct, frozen=True):
    """A line of the process, whichever it answers; `error` alone says that it went wrong."""

    error: str | None = None
    lane: int | None = None
    cannot: str | None = None
    calls: list[list[float]] | None = None
    took_ns: int = 0
    threads: int = 0
    broken: list[str] = []
    own_ns: int | None = None


_REPLY = msgspec.json.Decoder(_Reply)


class CandidateFailed(Exception):
    """It raised, ended, took too long, or gave what isn't an answer; the message says which.

    `lane`: whose call it was, by place; None: whoever it was.
    """

    def __init__(self, reason: str, lane: int | None = None) -> None:
        super().__init__(reason)
        self.lane = lane


class CandidateProcess:
    """The running process of a session, a context manager.

    Raises:
        CandidateFailed: A candidate can't be loaded, or has nothing that can be called.
    """

    def __init__(self, session: Session) -> None:
        self._limits = session.limits
        self._folder = TemporaryDirectory(prefix="inferometer-bench-", ignore_cleanup_errors=True)
        self._files = Path(self._folder.name)
        work = self._files / "work"
        work.mkdir()
        reading, writing = os.pipe()
        self._replies = os.fdopen(reading, "rb", buffering=0)
        self._process = Supervised(
            [sys.executable, "-m", "inferometer.bench.process.worker", str(writing)],
            cwd=work, env=_environment(interpret=session.interprets), log=self._log, stdin=subprocess.PIPE,
            pass_fds=(writing,),
        )  # fmt: skip
        os.close(writing)
        self._received, self._closed = bytearray(), False
        try:
            self._ask(session.as_request(), _START_S + session.limits.seconds)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "CandidateProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked again."""
        return not self._closed and not self._process.has_ended

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def answer(self, tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> Answer:
        """What the candidate makes of `tensors`.

        Raises:
            CandidateFailed: It gave no answer.
        """
        import torch

        inputs, outputs = self._fresh("inputs"), self._fresh("outputs")
        torch.save(dict(tensors), inputs)
        self._ask({"inputs": str(inputs), "outputs": str(outputs), "args": dict(args)}, self._limits.seconds)
        return self._read(outputs)

    def time(self, request: Mapping[str, Any], *, expected_s: float, profile: bool = False) -> Round:
        """Calls of all candidates in turns, as `request` orders them.

        Raises:
            CandidateFailed: One of them went wrong, or all took ten times as long as expected and a call's limit more.
        """
        trace = self._files / "trace.json.gz" if profile else None
        asked = {**request, "trace": None if trace is None else str(trace)}
        sent = time.perf_counter_ns()
        reply = self._ask(asked, _PATIENCE * expected_s + self._limits.seconds + (_PROFILER_S if profile else 0.0))
        received = time.perf_counter_ns()
        if reply.cannot is not None:
            return Round((), sent, received, cannot=clean(reply.cannot))
        if reply.calls is None:
            raise CandidateFailed(_CHANNEL)
        return Round(reply.calls, sent, received, reply.took_ns, reply.threads, reply.broken, reply.own_ns, trace=trace)

    def show(self, call: int) -> "tuple[Tensor, ...]":
        """The outputs of a call of the last round."""
        outputs = self._fresh("outputs")
        self._ask({"show": call, "outputs": str(outputs)}, self._limits.seconds)
        return self._read(outputs).outputs

    def close(self) -> None:
        """End the process and all that it started; once is enough."""
        if self._closed:
            return
        self._closed = True
        self._process.end()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._replies.close()
        self._folder.cleanup()

    @property
    def _log(self) -> Path:
        return self._files / "log"

    def _fresh(self, name: str) -> Path:
        """A file of the process's folder that isn't there yet, whatever a candidate put in its place."""
        path = self._files / name
        try:
            path.unlink(missing_ok=True)
            self._files.stat()
        except OSError as error:
            self.close()
            raise CandidateFailed("it removed or blocked the folder of its inputs and outputs") from error
        return path

    def _read(self, outputs: Path) -> Answer:
        try:
            return read_answer(outputs, self._limits.memory_on("cpu"))
        except UnreadableAnswer as problem:
            raise CandidateFailed(str(problem)) from problem

    def _ask(self, request: Mapping[str, Any], limits_s: float) -> _Reply:
        if self._received or (select.select([self._replies], [], [], 0)[0] and self.is_alive):
            raise CandidateFailed(_CHANNEL)  # nothing was asked yet
        until = time.monotonic() + limits_s
        with suppress(BrokenPipeError):
            self._send(json.dumps(request).encode() + b"\n", until)
        reply = self._next_reply(until)
        if reply.error is not None:
            raise CandidateFailed(clean(reply.error), reply.lane)
        return reply

    def _send(self, data: bytes, until: float) -> None:
        """Write a request: a process that doesn't read must not block us."""
        assert self._process.stdin is not None
        stdin = self._process.stdin.fileno()
        os.set_blocking(stdin, False)
        while data:
            if not select.select([], [stdin], [], max(0.0, until - time.monotonic()))[1]:
                self._give_up()
            data = data[os.write(stdin, data) :]

    def _next_reply(self, until: float) -> _Reply:
        while (end := self._received.find(b"\n")) < 0:
            if not select.select([self._replies], [], [], max(0.0, until - time.monotonic()))[0]:
                self._give_up()
            part = self._replies.read(1 << 20)
            if not part:
                self._explain_end()
            self._received += part
            if len(self._received) > _LONGEST_REPLY:
                self.close()
                raise CandidateFailed(_CHANNEL)
        line, self._received = self._received[:end], self._received[end + 1 :]
        try:
            return _REPLY.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise CandidateFailed(_CHANNEL) from error

    def _give_up(self) -> NoReturn:
        self.close()
        raise CandidateFailed(f"took longer than {self._limits.seconds:g} s")

    def _explain_end(self) -> NoReturn:
        """There will be no reply: it ended, or closed the channel."""
        try:
            status = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired as error:
            self.close()
            raise CandidateFailed("it closed the channel of its replies") from error
        words = last_lines(self._log)[:200]
        raise CandidateFailed(f"its process ended with {status}{f': {words}' if words else ''}")


def _environment(*, interpret: bool) -> dict[str, str]:
    """No more of ours than a process needs."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    found = {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONHASHSEED": "random"}
    return {**found, "TRITON_INTERPRET": "1"} if interpret else found
