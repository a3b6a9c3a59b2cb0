"""A candidate in a process of its own, which is sent inputs and sends back outputs.

What it sends back is read as tensors only, never as code. The process is ended, with all that it started, when a call
takes too long and when the work is done.
"""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from inferometer.bench.answers import Answer, UnreadableAnswer, read_answer
from inferometer.bench.arena import Arena
from inferometer.bench.contracts import made_of
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.outside import descendants
from inferometer.bench.results import Interpreted
from inferometer.bench.sandbox import sandboxed
from inferometer.bench.session import Session
from inferometer.bench.supervised import Supervised, last_lines
from inferometer.errors import clean

if TYPE_CHECKING:
    from torch import Tensor

_T = TypeVar("_T")
_START_S = 120.0  # torch takes seconds to import, on a busy machine many
_KEPT = (
    "PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HOME", "TMPDIR", "LANG", "CUDA_HOME",
    "ROCM_PATH", "CC", "CXX", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "MAX_JOBS",
    "ATEN_CPU_CAPABILITY",
)  # fmt: skip
_LONGEST_REPLY = 64 << 20  # bytes; the times of a million calls
_LOOK_S = 0.01
_ENDING_S = 2.0  # for a process that closed its replies
_MOST_CONCERNS, _LONGEST_CONCERN = 64, 200
_CHANNEL = "it wrote to the channel of its replies"


@dataclass(frozen=True)
class Deadline:
    """When a reply must be there, and how many seconds after it was asked for that is."""

    seconds: float
    until: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """From now on."""
        return cls(seconds, time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds until then; 0 when it is over."""
        return max(0.0, self.until - time.monotonic())


def while_alive(left: list[_T], is_alive: Callable[[], bool]) -> Iterator[_T]:
    """Each of `left`, taken from it when it is done, until a process has ended.

    The first one always: a process that ends as soon as it is loaded must not be started again and again for nothing.
    """
    while left:
        yield left[0]
        left.pop(0)
        if not is_alive():
            return


class Reply(msgspec.Struct, frozen=True):
    """A line of the process, whichever it answers; `error` alone says that it went wrong.

    Attributes:
        cannot: Why the timer can't time so.
        row: Of a call on a GPU: begin and end on the host's clock, its ns, and ns of work after it.
        outputs: Of a call on a CPU: dtype, shape and strides of each, as `arena.tensors_of` takes them.
        odd: What it replaced or left on.
        own_ns: In interpreted kernels of the candidate's file; None where that is unknown.
        interpreted: What its interpreter did otherwise than Triton's own so far.
    """

    error: str | None = None
    cannot: str | None = None
    row: tuple[float, float, float, float] | None = None
    outputs: list[tuple[str, list[int], list[int]]] | None = None
    odd: list[str] = []
    own_ns: int | None = None
    interpreted: list[Interpreted] = []


_REPLY = msgspec.json.Decoder(Reply)


class CandidateProcess:
    """The running process of a session, a context manager; `waits` False: its caller waits until it is loaded.

    Raises:
        CandidateFailed: A candidate can't be loaded, or has nothing that can be called.
    """

    def __init__(self, session: Session, *, waits: bool = True) -> None:
        self._limits, self.session = session.limits, session
        self._folder = TemporaryDirectory(prefix="inferometer-bench-", ignore_cleanup_errors=True)
        self.files = Path(self._folder.name)
        work = self.files / "work"
        work.mkdir()
        self.inputs, self.outputs = (Arena(name) if session.shares_memory else None for name in ("inputs", "outputs"))
        reading, writing = os.pipe()
        self._reports, reporting = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for each in (self._reports, reporting):
            each.setblocking(False)
        self._replies = os.fdopen(reading, "rb", buffering=0)
        shared = tuple(each.fd for each in (self.inputs, self.outputs) if each is not None)
        passed = (writing, reporting.fileno(), *shared)
        command = [
            sys.executable,
            "-m",
            "inferometer.bench.process.worker",
            *map(str, passed),
            *["-1"] * (4 - len(passed)),
        ]
        self._process = Supervised(
            sandboxed(command, self.files, device=session.device) if session.sandbox else command,
            cwd=work, env=_environment(interpret=session.interprets), log=self._log, stdin=subprocess.PIPE,
            pass_fds=passed,
        )  # fmt: skip
        os.close(writing)
        reporting.close()
        self._received, self._closed, self._concerns = bytearray(), False, dict[str, None]()
        self._interpreted = set[Interpreted]()
        self.pid = self._process.pid
        self._loading_until = Deadline.after(_START_S + session.limits.seconds)
        try:
            if session.sandbox:
                self.pid = self._find_in_sandbox(self._loading_until)
            self._send(json.dumps(session.as_request()).encode() + b"\n", self._loading_until)
            if waits:
                self.wait_until_loaded()
        except BaseException:
            self.close()
            raise

    def wait_until_loaded(self) -> None:
        """Read what it replies to the session, once.

        Raises:
            CandidateFailed: It can't be loaded.
        """
        _decode(self._next_line(self._loading_until))

    def __enter__(self) -> "CandidateProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked again."""
        return not self._closed and not self._process.has_ended

    @property
    def concerns(self) -> tuple[str, ...]:
        """What the guard reported so far."""
        with suppress(OSError):
            while len(self._concerns) < _MOST_CONCERNS and (line := self._reports.recv(_LONGEST_CONCERN)):
                self._concerns[clean(line.decode("utf-8", "replace"))] = None
        return tuple(self._concerns)

    @property
    def interpreted(self) -> tuple[Interpreted, ...]:
        """What its interpreter did otherwise than Triton's own so far."""
        return tuple(sorted(self._interpreted))

    def answer(self, tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> Answer:
        """What the candidate makes of `tensors`.

        Raises:
            CandidateFailed: It gave no answer.
        """
        import torch

        inputs, outputs = self._fresh("inputs"), self._fresh("outputs")
        torch.save(dict(tensors), inputs)
        about = {"args": dict(args), "made": made_of(self.session.operator, args)}
        self.ask({"inputs": str(inputs), "outputs": str(outputs), **about})
        return self._read(outputs)

    def show(self, call: int) -> "tuple[Tensor, ...]":
        """The outputs of a call of the last round, on a GPU."""
        outputs = self._fresh("outputs")
        self.ask({"show": call, "outputs": str(outputs)})
        return self._read(outputs).outputs

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """What it replies within the seconds of a call.

        Raises:
            CandidateFailed: That it went wrong, or nothing in time.
        """
        return self.exchange(json.dumps(request).encode() + b"\n", Deadline.after(self._limits.seconds))[0]

    def exchange(self, line: bytes, until: Deadline) -> tuple[Reply, int, int]:
        """As `ask`, with our clock right before the request was sent and right after the reply was there."""
        self._refuse_unasked()
        begin = time.perf_counter_ns()
        with suppress(BrokenPipeError):
            self._send(line, until)
        reply = self._next_line(until)
        end = time.perf_counter_ns()
        found = _decode(reply)
        self._interpreted.update(found.interpreted)
        return found, begin, end

    def _refuse_unasked(self) -> None:
        """Refuse a reply before there is a request; at the end of the channel, say why it is there."""
        if not self._received and select.select([self._replies], [], [], 0)[0]:
            part = self._replies.read(1 << 20)
            if not part:
                self._explain_end()
            self._received += part
        if self._received:
            raise CandidateFailed(_CHANNEL)

    def _find_in_sandbox(self, until: Deadline) -> int:
        """The process below bubblewrap's two, before it loads a candidate, which may start more."""
        while until.left_s and not self._process.has_ended:
            below = descendants(self.pid)
            if len(below) > 1:
                return next((pid for pid in below if not descendants(pid)), self.pid)
            time.sleep(_LOOK_S)
        return self.pid

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
        self._reports.close()
        for each in (self.inputs, self.outputs):
            if each is not None:
                each.close()
        self._folder.cleanup()

    @property
    def _log(self) -> Path:
        return self.files / "log"

    def _fresh(self, name: str) -> Path:
        """A file of the process's folder that isn't there yet, whatever a candidate put in its place."""
        path = self.files / name
        try:
            path.unlink(missing_ok=True)
            self.files.stat()
        except OSError as error:
            self.close()
            raise CandidateFailed("it removed or blocked the folder of its inputs and outputs") from error
        return path

    def _read(self, outputs: Path) -> Answer:
        try:
            return read_answer(outputs, self._limits.memory_on("cpu"))
        except UnreadableAnswer as problem:
            raise CandidateFailed(str(problem)) from problem

    def _send(self, data: bytes, until: Deadline) -> None:
        """Write a request: a process that doesn't read must not block us."""
        assert self._process.stdin is not None
        stdin = self._process.stdin.fileno()
        os.set_blocking(stdin, False)
        while data:
            if not select.select([], [stdin], [], until.left_s)[1]:
                self._give_up(until)
            data = data[os.write(stdin, data) :]

    def _next_line(self, until: Deadline) -> bytearray:
        while (end := self._received.find(b"\n")) < 0:
            if not select.select([self._replies], [], [], until.left_s)[0]:
                self._give_up(until)
            part = self._replies.read(1 << 20)
            if not part:
                self._explain_end()
            self._received += part
            if len(self._received) > _LONGEST_REPLY:
                self.close()
                raise CandidateFailed(_CHANNEL)
        line, self._received = self._received[:end], self._received[end + 1 :]
        return line

    def _give_up(self, until: Deadline) -> NoReturn:
        self.close()
        raise CandidateFailed(f"took longer than {round(until.seconds, 1):g} s")

    def _explain_end(self) -> NoReturn:
        """There will be no reply: it ended, or closed the channel."""
        try:
            status = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired as error:
            self.close()
            raise CandidateFailed("it closed the channel of its replies") from error
        words = last_lines(self._log)[:200]
        raise CandidateFailed(f"its process ended with {status}{f': {words}' if words else ''}")


def _decode(line: bytearray) -> Reply:
    """What it replied.

    Raises:
        CandidateFailed: That something went wrong, or nothing that is a reply.
    """
    try:
        reply = _REPLY.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CandidateFailed(_CHANNEL) from error
    if reply.error is not None:
        raise CandidateFailed(clean(reply.error))
    return reply


def _environment(*, interpret: bool) -> dict[str, str]:
    """No more of ours than a process needs."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    tools = str(Path(sys.executable).parent)  # ninja, with which PyTorch compiles extensions, lies next to Python
    kept["PATH"] = os.pathsep.join((*filter(None, (kept.get("PATH"),)), tools))
    found = {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONHASHSEED": "random"}
    found["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else torch.compile leaves processes, which look like untimed work
    return {**found, "TRITON_INTERPRET": "1"} if interpret else found
