"""Runs the code blocks of a Markdown page and puts what they print today into it.

A block's first word is its language, further words say how it is treated:

    sh                commands, one per line; each must succeed
    console           `$ command` and, below it, what it prints on a terminal of 108 columns
    python            code; the blocks of a page share their names
    text output       what the python block above it prints
    ... file=PATH     written to PATH, for what follows
    ... no-run        shown only: installing, recording on another machine

A page runs in a folder of its own with copies of the samples and the scripts for CI, and of the package from where it
writes a file into it, so that it may add to any. Only `inferometer`, `python -m pytest` and those scripts (after
`env INFEROMETER_...`) are run. Needs a system with pseudo-terminals: Linux or macOS.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from select import select
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src", "inferometer")
WIDTH = 108
_LINES = 50
_TIMEOUT_S = 120
_BLOCK = re.compile(r"^```(?P<info>\w[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_RUNS = ("inferometer ", "python -m pytest ", "env INFEROMETER_")


class PageError(Exception):
    """A block of a page did not do what the page says; the message begins with the page and the line."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the words behind that, its text, and where that text is in the page."""

    language: str
    words: tuple[str, ...]
    body: str
    start: int
    line: int

    @property
    def file(self) -> str | None:
        """Where it says that it is written to."""
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)


def runnable_pages() -> list[Path]:
    """Every page whose blocks run."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def find_blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a page that name a language, in order."""
    for match in _BLOCK.finditer(markdown):
        language, *words = match["info"].split()
        line = markdown.count("\n", 0, match.start()) + 2
        yield Block(language, tuple(words), match["body"], match.start("body"), line)


def refresh(markdown: str, name: str) -> str:
    """The page called `name` with the output of its blocks as it is today.

    Raises:
        PageError: A block fails.
    """
    with tempfile.TemporaryDirectory(prefix="inferometer-docs-") as folder:
        run = _Run(name, Path(folder))
        pieces, at = [], 0
        for block in find_blocks(markdown):
            pieces += [markdown[at : block.start], run.block(block)]
            at = block.start + len(block.body)
        return "".join([*pieces, markdown[at:]])


def run_on_terminal(command: str, folder: Path, *, width: int = WIDTH, term: str = "dumb") -> tuple[str, int]:
    """What `command` prints, and its exit code. Its stdout is a terminal; stderr comes behind.

    With the terminal `dumb` the output is plain text, with `xterm-256color` it has ANSI codes.
    """
    import pty

    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    source = (folder if (folder / PACKAGE).exists() else ROOT) / PACKAGE.parent
    env = {"PATH": path, "HOME": str(folder), "PYTHONPATH": str(source), "PYTHONUTF8": "1", "TERM": term}
    env |= {"COLUMNS": str(width), "LINES": str(_LINES), "INFEROMETER_PROGRESS": "0"}
    ours, theirs = pty.openpty()
    with tempfile.TemporaryFile() as errors:
        process = start(command, cwd=folder, env=env, stdout=theirs, stderr=errors.fileno())
        os.close(theirs)
        try:
            output = b"".join(_read_terminal(ours, time.monotonic() + _TIMEOUT_S))
            code = process.wait(_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        errors.seek(0)
        output += errors.read()
    return output.decode().replace("\r\n", "\n"), code


def start(command: str, **given: Any) -> subprocess.Popen[bytes]:
    """A shell that runs the command."""
    return subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, **given)


def copy_project(folder: Path) -> None:
    """The samples and the scripts for CI, for commands to run on."""
    shutil.copytree(ROOT / "samples", folder / "samples")
    shutil.copytree(ROOT / "tools" / "ci", folder / "tools" / "ci", ignore=shutil.ignore_patterns("__pycache__"))


def copy_package(folder: Path) -> None:
    """The package, for files to be added to it; compiled as it is, since a copy keeps the times of its files."""
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("*.pyc.*"))  # being written


class _Run:
    """One page being run."""

    def __init__(self, page: str, folder: Path) -> None:
        self._page = page
        self._empty = folder
        self._names: dict[str, Any] = {"__name__": page}
        self._printed = ""

    @cached_property
    def _folder(self) -> Path:
        """Where it runs, made when the first block asks for it."""
        copy_project(self._empty)
        return self._empty

    def block(self, block: Block) -> str:
        """Do what the block asks; its text as it should be."""
        if "no-run" in block.words:
            return block.body
        if block.file is not None:
            return self._write(block)
        if block.language == "sh":
            for i, command in enumerate(block.body.splitlines()):
                self._command(command.split("  #")[0], block.line + i)
            return block.body
        if block.language == "console":
            return self._console(block)
        if block.language == "python":
            self._python(block)
        elif (block.language, block.words) == ("text", ("output",)):
            return self._printed
        return block.body

    def _write(self, block: Block) -> str:
        path = self._folder / str(block.file)
        if path.is_relative_to(self._folder / PACKAGE) and not (self._folder / PACKAGE).exists():
            copy_package(self._folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.body, encoding="utf-8")
        return block.body

    def _console(self, block: Block) -> str:
        lines = []
        for i, line in enumerate(block.body.splitlines()):
            if line.startswith("$ "):
                output = self._command(line.removeprefix("$ "), block.line + i)
                lines += [line, *(each.rstrip() for each in output.rstrip().splitlines())]
        return "\n".join(lines) + "\n"

    def _command(self, command: str, line: int) -> str:
        if not command.startswith(_RUNS):
            raise PageError(
                f"{self._page}:{line}: expected one of {', '.join(_RUNS)}, found {command!r}; or say no-run"
            )
        output, code = run_on_terminal(command, self._folder)
        if code:
            raise PageError(f"{self._page}:{line}: {command} ended with {code}:\n{output}")
        return output

    def _python(self, block: Block) -> None:
        code = compile("\n" * (block.line - 1) + block.body, self._page, "exec")
        printed = io.StringIO()
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(printed):
            exec(code, self._names)
        self._printed = printed.getvalue()


def _read_terminal(descriptor: int, until: float) -> Iterator[bytes]:
    while select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            return
        if not data:
            return
        yield data
    raise TimeoutError(f"nothing more came within {_TIMEOUT_S} s")
