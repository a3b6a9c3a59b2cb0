"""Work on what nobody vouches for, in a process of its own with limits of time and memory.

A library may panic, abort, never end or take all memory over a hostile file. There it ends that process and not ours,
and who asked gets an `InputError`. The process serves the functions of one module, `SERVED` by their names; arguments
and results are what msgpack holds. It keeps what a module keeps between calls, and ends when we do: its input is over.

Limits are the kernel's: `RLIMIT_AS` for memory, or `RLIMIT_DATA` for what is written to alone, and a timer of the
processor's time that Python can't put off.
Left out: rights. What is served are libraries that read, not code of strangers.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Literal

import msgspec

from inferometer.errors import FormatError, InputError, Unavailable, clean
from inferometer.processes import VARIABLE

LEAST_BYTES = 256 << 20
"""Memory for data: what Python with Polars and the smallest trace, or with torch, needs."""
MEMORY_BYTES = 2 << 30
"""Address space. A tokenizer of 262,144 tokens and as many merges takes 0.3 GB of it while it is loaded."""
SECONDS = 10.0
"""Seconds of the processor, for a call. That tokenizer loads in 0.8 s; a template takes milliseconds."""

_PATIENCE = 10  # times as long by the clock: on a machine that does other work
_START_S = 60.0
_LONGEST = 64 << 20  # bytes of a reply
_LENGTH = 8  # bytes in front of each message that say how long it is
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
_ALONE = {"TOKENIZERS_PARALLELISM": "false", "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}  # threads reserve memory
_ALONE |= {VARIABLE: "1"}  # another process would have limits of its own
_START = (
    "import sys; module, what, memory, seconds, *sys.path[:] = sys.argv[1:]; "
    "from inferometer.guarded import serve; serve(module, what, int(memory), float(seconds))"
)
Bounded = Literal["address space", "data"]
"""What the limit of memory is of. Threads and tables of Polars reserve far more addresses than they fill."""
_KINDS: Mapping[str, type[FormatError | InputError | Unavailable]] = {
    kind.__name__: kind for kind in (FormatError, InputError, Unavailable)
}


class GuardedError(InputError):
    """The call broke a limit, ended the process, or failed as no error of ours; the message says how."""


class _Reply(msgspec.Struct, frozen=True):
    """`kind` is the class of an error of ours, "" of any other; None: there is a value."""

    value: Any = None
    kind: str | None = None
    message: str = ""
    hint: str | None = None


_REPLY = msgspec.msgpack.Decoder(_Reply)


class Guarded:
    """A process that serves a module; it starts with the first call, and again after a call that ended it.

    Args:
        module: Its full name; it declares `SERVED`.
        memory_bytes: Of what `bounded` says.
        seconds: Of the processor, a call.
        bounded: What the limit of memory is of.
        environment: What the process has besides.
    """

    def __init__(
        self,
        module: str,
        *,
        memory_bytes: int = MEMORY_BYTES,
        seconds: float = SECONDS,
        bounded: Bounded = "address space",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._module, self._memory_bytes, self._seconds = module, memory_bytes, seconds
        self._bounded, self._environment = bounded, environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._lock = threading.Lock()  # one call at a time
        self._end: Callable[[], Any] = lambda: None

    @property
    def is_running(self) -> bool:
        """Whether what earlier calls left in it is still there."""
        if self._owner != os.getpid():  # we were forked, and it answers the one that started it
            return False
        return self._process is not None and self._process.poll() is None

    def call(self, function: str, *args: Any) -> Any:
        """What the served function gives.

        Raises:
            GuardedError: It broke a limit, ended the process, or raised what is no error of ours.
            InputError, FormatError, Unavailable: It raised this.
        """
        with self._lock:
            if not self.is_running:
                self.close()
                self._start()
            try:
                reply = self._ask(msgspec.msgpack.encode((function, args)))
            except BaseException:  # also Ctrl-C: a reply that comes later is nobody's
                self.close()
                raise
        if reply.kind is None:
            return reply.value
        raise _KINDS.get(reply.kind, GuardedError)(reply.message, hint=reply.hint)

    def close(self) -> None:
        """End the process; the next call starts another."""
        self._process = None
        self._end()

    def _start(self) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        limits = (self._bounded, str(self._memory_bytes), str(self._seconds))
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _START, self._module, *limits, *(path for path in sys.path if path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, **_ALONE, **self._environment},
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us
        )
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _end, self._process, self._owner)
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    def _ask(self, request: bytes) -> _Reply:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        until = time.monotonic() + _START_S + _PATIENCE * self._seconds
        with suppress(BrokenPipeError):
            _send(self._process.stdin, len(request).to_bytes(_LENGTH, "little") + request, until)
        length = int.from_bytes(self._received(self._process.stdout, _LENGTH, until), "little")
        if length > _LONGEST:
            raise GuardedError(f"its result takes {length:,} bytes, more than {_LONGEST:,}")
        return _REPLY.decode(self._received(self._process.stdout, length, until))

    def _received(self, pipe: IO[bytes], size: int, until: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                raise GuardedError(f"it took longer than {_PATIENCE * self._seconds:g} s")
            part = pipe.read(size - len(data))
            if not part:
                raise GuardedError(self._fate())
            data += part
        return bytes(data)

    def _fate(self) -> str:
        assert self._process is not None
        status = self._process.wait()
        if status == -signal.SIGPROF:
            return f"it took longer than {self._seconds:g} s of the processor"
        ended = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"it ended the process that read it ({ended}; limit of memory: {self._memory_bytes >> 20:,} MiB)"


def machine_bytes() -> int | None:
    """Memory of this machine; None where the system doesn't say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not there, or not known by this name
        return None


def serve(module: str, bounded: Bounded, memory_bytes: int, seconds: float) -> None:
    """Answer calls until the input ends; what runs in the process."""
    import resource

    requests, replies = os.fdopen(0, "rb", closefd=False), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    served: Mapping[str, Callable[..., Any]] = import_module(module).SERVED
    memory = resource.RLIMIT_DATA if bounded == "data" else resource.RLIMIT_AS
    for limit, most in ((memory, memory_bytes), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # a system that has a lower one, or none
            resource.setrlimit(limit, (most, most))
    while head := requests.read(_LENGTH):
        function, args = msgspec.msgpack.decode(requests.read(int.from_bytes(head, "little")))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        reply = _encoded(served[function], args)
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(len(reply).to_bytes(_LENGTH, "little"))
        replies.write(reply)
        replies.flush()


def _encoded(function: Callable[..., Any], args: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(_Reply(function(*args)))
    except (InputError, Unavailable) as error:
        return msgspec.msgpack.encode(_Reply(None, type(error).__name__, error.message, error.hint))
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        message = f"{type(error).__name__}: {clean(str(error)[:2_000])}".rstrip(": ")
        message = message.encode(errors="backslashreplace").decode()
        return msgspec.msgpack.encode(_Reply(None, "", message))


def _send(pipe: IO[bytes], data: bytes, until: float) -> None:
    rest = memoryview(data)
    while rest:
        if not select.select([], [pipe], [], max(0.0, until - time.monotonic()))[1]:
            raise GuardedError("it doesn't read what it is sent")
        rest = rest[os.write(pipe.fileno(), rest) :]


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if owner == os.getpid():
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
