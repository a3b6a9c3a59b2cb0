"""A candidate in a process of its own, with limits of time and memory, that is sent inputs and sends back outputs.

What it sends back is read as tensors only, never as code. The process is ended, with all that it started, when a call
takes too long and when the work is done.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

from inferometer.errors import clean
from inferometer.operators.operator import Operator

if TYPE_CHECKING:
    from torch import Tensor

_START_S = 120.0  # torch takes seconds to import, on a busy machine many
_KEPT = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "HOME", "TMPDIR", "LANG")


@dataclass(frozen=True)
class Limits:
    """What a candidate may take: seconds a call, bytes of address space (None: any), threads of torch."""

    seconds: float = 60.0
    memory_bytes: int | None = None
    threads: int = 2


@dataclass(frozen=True)
class Answer:
    """What a call gave: outputs in their order, the inputs after it, and how long it took on the host."""

    outputs: "tuple[Tensor, ...]"
    inputs: "dict[str, Tensor]"
    ns: int


class CandidateFailed(Exception):
    """It raised, ended, took too long, or gave what isn't an answer; the message says which."""


class CandidateProcess:
    """A running candidate, a context manager. `path` None: the operator's own reference.

    Raises:
        CandidateFailed: It can't be loaded, or has nothing that can be called.
    """

    def __init__(self, operator: Operator, path: Path | None, limits: Limits) -> None:
        self._limits = limits
        self._folder = TemporaryDirectory(prefix="inferometer-bench-")
        reading, writing = os.pipe()
        self._replies = os.fdopen(reading, "rb", buffering=0)
        self._log = Path(self._folder.name, "log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "inferometer.bench.worker", str(writing)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writing,), start_new_session=True,
                cwd=self._folder.name, env=_environment(),
            )  # fmt: skip
        os.close(writing)
        self._said, self._closed = b"", False
        first = {
            "operator": operator.name,
            "candidate": None if path is None else str(path.resolve()),
            "threads": limits.threads,
            "memory_bytes": limits.memory_bytes,
        }
        try:
            self._ask(first, _START_S + limits.seconds)
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
        return not self._closed and self._process.poll() is None

    def answer(self, tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> Answer:
        """What the candidate makes of `tensors`.

        Raises:
            CandidateFailed: It gave no answer.
        """
        import torch

        inputs, outputs = (Path(self._folder.name, name) for name in ("inputs", "outputs"))
        outputs.unlink(missing_ok=True)
        torch.save(dict(tensors), inputs)
        reply = self._ask({"inputs": str(inputs), "outputs": str(outputs), "args": dict(args)}, self._limits.seconds)
        if not outputs.is_file():
            raise CandidateFailed("it wrote no outputs")
        try:
            found = torch.load(outputs, weights_only=True)
            return Answer(tuple(found["outputs"]), dict(found["inputs"]), int(reply["ns"]))
        except Exception as error:  # what it wrote may be anything
            raise CandidateFailed(f"its outputs can't be read back: {clean(str(error))[:200]}") from error

    def close(self) -> None:
        """End the process and all that it started; once is enough."""
        if self._closed:
            return
        self._closed = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._replies.close()
        self._folder.cleanup()

    def _ask(self, request: Mapping[str, Any], limits_s: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        reply = self._next_line(limits_s)
        if "error" in reply:
            raise CandidateFailed(clean(str(reply["error"])))
        return reply

    def _next_line(self, limits_s: float) -> dict[str, Any]:
        while b"\n" not in self._said:
            ready, _, _ = select.select([self._replies], [], [], limits_s)
            if not ready:
                self.close()
                raise CandidateFailed(f"took longer than {self._limits.seconds:g} s")
            part = self._replies.read(1 << 16)
            if not part:
                words = self._last_words()
                raise CandidateFailed(f"its process ended with {self._process.wait()}{words}")
            self._said += part
        line, self._said = self._said.split(b"\n", 1)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise CandidateFailed("it wrote to the channel of its replies") from error
        return reply if isinstance(reply, dict) else {}

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").strip().splitlines()
        return f": {clean(lines[-1])[:200]}" if lines else ""


def _environment() -> dict[str, str]:
    """No more of ours than a process needs."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONHASHSEED": "random"}
