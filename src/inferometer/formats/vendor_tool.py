"""A profiler's own program, where it is on PATH: for reports that only it can read."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from inferometer.errors import FormatError, Unavailable

_LONGEST_MESSAGE = 300


class VendorTool(msgspec.Struct, frozen=True):
    """A program that reads `product`'s reports; `verb` is what it does to one, `by_hand` the command for users.

    It runs to its end, with numbers and words of the C locale.
    """

    name: str
    product: str
    verb: str
    by_hand: str

    def export(self, target: Path, report: str, arguments: Sequence[str]) -> None:
        """Have it write the file `target`, which `arguments` name.

        Args:
            target: The file.
            report: What the report is called in messages.
            arguments: Of the program.

        Raises:
            Unavailable: It is not on PATH.
            FormatError: It can't be run, fails, or writes no such file.
        """
        done = self._run(report, arguments, subprocess.PIPE)
        if done.returncode or not target.is_file():
            raise self._failed(report, done.returncode, done.stderr or done.stdout)

    def print_to(self, target: Path, report: str, arguments: Sequence[str]) -> None:
        """Keep what it prints as the file `target`.

        Args:
            target: The file.
            report: What the report is called in messages.
            arguments: Of the program.

        Raises:
            Unavailable: It is not on PATH.
            FormatError: It can't be run, or fails.
        """
        with target.open("wb") as output:
            done = self._run(report, arguments, output)
        if done.returncode:
            raise self._failed(report, done.returncode, done.stderr or _last_of(target))

    def _run(
        self, report: str, arguments: Sequence[str], output: IO[bytes] | int
    ) -> subprocess.CompletedProcess[bytes]:
        found = shutil.which(self.name)
        if found is None:
            raise Unavailable(
                f"{report}: only {self.name} can read a report, and it is not on PATH",
                hint=f"Install {self.product}, or run where it is installed: {self.by_hand.format(report)}",
            )
        try:
            return subprocess.run(
                [found, *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                env=os.environ | {"LC_ALL": "C"},
            )
        except OSError as error:
            raise FormatError(f"{report}: {found} can't be run: {error.strerror}") from error

    def _failed(self, report: str, status: int, message: bytes) -> FormatError:
        text = " ".join(message.decode("utf-8", "replace").split()) or "it says nothing"
        return FormatError(
            f"{report}: {self.verb} ended with {status}: {text[-_LONGEST_MESSAGE:]}",
            hint=f"A report is read only by an {self.name} of its own version or a later one.",
        )


def _last_of(printed: Path) -> bytes:
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - _LONGEST_MESSAGE))
        return file.read()
