"""A journal's writer for a process that was forked after Polars was loaded.

Such a process has none of Polars' threads, and would wait for them for ever. So its batches go through a pipe to a
fresh Python, which writes them. What that has got is kept when this process is killed: then the pipe ends.
"""

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from inferometer.record.journal.batches import Batch
from inferometer.record.journal.writer import LocalWriter
from inferometer.trace.facts import Facts
from inferometer.trace.losses import Losses
from inferometer.trace.series import Values

_START = "import sys; sys.path[:] = {path!r}; from inferometer.record.journal.remote import serve; serve()"
_LENGTH = struct.Struct("<Q")  # comes before each message


class RemoteWriter:
    """Writes in a Python of its own, which is started with the first rows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes = -1, -1  # raw descriptors: what a further fork copies must hold no half-written message

    def write(self, batches: Sequence[Batch], facts: Facts, losses: Losses) -> list[str]:
        """Returns when they are on disk."""
        return self._ask("write", [_portable(batch) for batch in batches], facts, losses)

    def finish(self, facts: Facts, losses: Losses) -> list[str]:
        """The other process ends then."""
        troubles = self._ask("finish", facts, losses)
        self.abandon()
        if self._process:
            self._process.wait()
        return troubles

    def abandon(self) -> None:
        """The other process ends when nobody holds its pipe any more."""
        for pipe in self._pipes:
            with suppress(OSError):
                os.close(pipe)
        self._pipes = -1, -1

    def _ask(self, *request: object) -> list[str]:
        try:
            if self._process is None:
                self._process = self._started()
                _send(self._pipes[0], os.fspath(self._folder))
            _send(self._pipes[0], request)
            answer: list[str] = _receive(self._pipes[1])
        except (OSError, EOFError, pickle.PickleError) as error:
            return [f"the process that writes the store has ended or can't be started: {error!r}"]
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        """In a session of its own: a Ctrl-C is for the user's program, whose last rows must still be written."""
        requests, to_it = os.pipe()
        from_it, answers = os.pipe()
        self._pipes = to_it, from_it
        try:
            return subprocess.Popen(
                [sys.executable, "-c", _START.format(path=sys.path)],
                stdin=requests,
                stdout=answers,
                start_new_session=True,
            )
        finally:
            os.close(requests)
            os.close(answers)


def serve() -> None:
    """What the other process runs: requests on standard input, answers on standard output, until that ends."""
    with suppress(EOFError, BrokenPipeError):
        writer = LocalWriter(Path(_receive(0)))
        while True:
            name, *arguments = _receive(0)
            _send(1, writer.write(*arguments) if name == "write" else writer.finish(*arguments))


def _send(pipe: int, message: object) -> None:
    data = pickle.dumps(message)
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _receive(pipe: int) -> Any:
    """Of a process that started this one, or that this one started: so it may be unpickled."""
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    return pickle.loads(_read(pipe, length))


def _read(pipe: int, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        if not (some := os.read(pipe, min(length - len(data), 1 << 20))):
            raise EOFError("the pipe has ended")
        data += some
    return bytes(data)


def _portable(batch: Batch) -> Batch:
    """Without what may need Polars' threads to be sent."""
    return batch._replace(columns={name: _listed(values) for name, values in batch.columns.items()})


def _listed(values: Values) -> Values:
    if isinstance(values, pl.Series):
        return values.to_list()
    return values.tolist() if isinstance(values, np.ndarray) else values
