"""A profiler's own program, where it is on PATH: for reports that only it can read."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inferometer.errors import FormatError, Unavailable

_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class VendorTool:
    """A program that reads `product`'s reports; `verb` is what it does to one, `by_hand` the command for users."""

    name: str
    product: str
    verb: str
    by_hand: str

    def make(self, made: Path, report: str, arguments: Sequence[str], *, prints: bool = False) -> None:
        """Run it to its end; it makes the file `made`, or prints it. Numbers and words are those of the C locale.

        Raises:
            Unavailable: It is not on PATH.
            FormatError: It can't be run, fails, or makes nothing.
        """
        found = shutil.which(self.name)
        if found is None:
            raise Unavailable(
                f"{report}: only {self.name} can read a report, and it is not on PATH",
                hint=f"Install {self.product}, or run where it is installed: {self.by_hand.format(report)}",
            )
        try:
            done = _run([found, *arguments], made if prints else None)
        except OSError as error:
            raise FormatError(f"{report}: {found} can't be run: {error.strerror}") from error
        if done.returncode or not made.is_file():
            said = done.stderr or done.stdout or (_last_of(made) if prints else b"")
            text = said.decode("utf-8", "replace").strip() or "it says nothing"
            raise FormatError(
                f"{report}: {self.verb} ended with {done.returncode}: {' '.join(text.split())[-_LONGEST_MESSAGE:]}",
                hint=f"A report is read only by an {self.name} of its own version or a later one.",
            )


def _last_of(printed: Path) -> bytes:
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - _LONGEST_MESSAGE))
        return file.read()


def _run(command: Sequence[str], printed: Path | None) -> subprocess.CompletedProcess[bytes]:
    """What it says, and what it prints in `printed` where that is given."""
    environment = os.environ | {"LC_ALL": "C"}
    if printed is None:
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
    with printed.open("wb") as output:
        return subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, env=environment
        )
