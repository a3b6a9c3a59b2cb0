"""Reading the windows' files in a process of its own: in ours, the program would wait for Python's lock meanwhile.

PyTorch gives up that lock in every op, and a thread that parses takes it each time for up to 5 ms. The process gets a
line a window (the file and a folder for the tables), answers with a line, and ends when its input does: so it doesn't
outlive us, however we end.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from inferometer.errors import InferometerError
from inferometer.record.profiler.window_rows import WindowRows, load_rows, read_window, save_rows

_NICER = 5  # than the program: reading can wait, the program shouldn't
_START = (
    "import sys; folder, *sys.path[:] = sys.argv[1:]; "
    "from inferometer.record.profiler.window_reader import serve; serve(folder)"
)
_LEAVE_OUT = ("INFEROMETER_RECORD", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONPROFILEIMPORTTIME", "PYTHONWARNINGS")


class WindowReader:
    """Reads windows one after the other, in another process where one can be started, else here.

    `problem` says why it is here. The process drops `folder` when it ends, for a kill leaves nobody else to do it.
    """

    def __init__(self, folder: Path, *, apart: bool = True) -> None:
        self._folder = folder
        self.problem: str | None = None if apart else "not asked for"
        self._process: subprocess.Popen[bytes] | None = None
        if apart:
            self._start()

    def read(self, path: Path) -> WindowRows:
        """The tables of a window's file.

        Raises:
            InputError: It can't be read.
        """
        if self._process is not None:
            with tempfile.TemporaryDirectory(prefix="rows-", dir=path.parent) as folder:
                if self._ask(path, Path(folder)):
                    return load_rows(Path(folder))
        return read_window(path)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        places = [str(Path(__file__).parents[3]), *(path for path in sys.path if path)]
        environment = {name: value for name, value in os.environ.items() if name not in _LEAVE_OUT}
        environment |= {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        try:
            self._process = subprocess.Popen(  # our own interpreter and our own code
                [sys.executable, "-S", "-c", _START, str(self._folder), *places],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the program; this one ends with its input
            )
        except (OSError, ValueError) as error:
            self.problem = str(error)

    def _ask(self, path: Path, folder: Path) -> bool:
        """Whether the other process has read it; one that can't be talked to is given up."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return False
        try:
            process.stdin.write(msgspec.json.encode([str(path), str(folder)]) + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError as error:
            answer, self.problem = b"", str(error)
        if not answer:
            self.problem = self.problem or "the reading process ended"
            self.close()
            return False
        return answer.strip() == b"true"


def serve(folder: str) -> None:
    """The process's life: a line in, a line out, until there is no more; then `folder` goes."""
    with suppress(OSError):
        os.nice(_NICER)
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    for line in sys.stdin.buffer:
        path, rows = msgspec.json.decode(line, type=tuple[str, str])
        answer(Path(path), Path(rows), answers)
    shutil.rmtree(folder, ignore_errors=True)


def answer(path: Path, folder: Path, answers: IO[bytes]) -> None:
    """Read one window and say whether that went well; what went wrong, the asker finds out anew."""
    try:
        save_rows(read_window(path), folder)
        text = b"true\n"
    except (InferometerError, OSError):
        text = b"false\n"
    answers.write(text)
    answers.flush()
