"""One measured command: ours or a peer's, on which file, how often, and how its output is checked."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.answers import Answer
from benchmarks.trace_files import ROOT, TraceFile, Truth, chill, warm

REPETITIONS: Final = 7
REPETITIONS_LARGE: Final = 5
REPETITIONS_PEER: Final = 3
TOOL: Final = Path(sysconfig.get_path("scripts")) / "inferometer"
_PEERS: Final = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True, slots=True)
class Point:
    """Where a case stands in a series: one command on files of one kind, by their sizes.

    `start`: the smallest file, which shows what a run costs before it reads anything to speak of.
    """

    what: str
    kind: str
    bytes: int
    start: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One command on one file. `makes` is a file or folder that it writes, removed before each run.

    `from_disk`: it finds nothing of its source in memory.
    """

    name: str
    command: str
    argv: tuple[str | Path, ...]
    source: Path | None
    check: Callable[[bytes], Answer]
    repetitions: int
    truth: Truth | None = None
    peer: bool = False
    makes: Path | None = None
    point: Point | None = None
    stdin: Path | None = None
    from_disk: bool = False

    def prepare(self) -> None:
        """Outside the timed part: a fresh target, and the source in the page cache or out of it."""
        if self.makes is not None and self.makes.is_dir():
            shutil.rmtree(self.makes)
        elif self.makes is not None:
            self.makes.unlink(missing_ok=True)
        if self.source is not None:
            (chill if self.from_disk else warm)(self.source)


def schedule(cases: Sequence[Case]) -> Iterator[tuple[int, Case]]:
    """Every repetition of every case, interleaved, so that a slow spell of the machine hits all alike.

    A case with fewer repetitions is spread evenly over the rounds; each round begins with another case.
    """
    rounds = max(case.repetitions for case in cases)
    for turn in range(rounds):
        first = turn % len(cases)
        for case in (*cases[first:], *cases[:first]):
            if turn * case.repetitions // rounds != (turn + 1) * case.repetitions // rounds:
                yield turn, case


def ours(
    name: str,
    verb: str,
    source: Path,
    truth: Truth,
    check: Callable[[bytes, Truth], Answer],
    *options: str | Path,
    repetitions: int = REPETITIONS,
    makes: Path | None = None,
    point: Point | None = None,
    from_disk: bool = False,
) -> Case:
    """`inferometer VERB SOURCE OPTIONS`. Paths are shown by their names."""
    shown = " ".join(option.name if isinstance(option, Path) else option for option in (verb, source, *options))
    return Case(
        name=name,
        command=f"{'from disk: ' if from_disk else ''}inferometer {shown}",
        argv=(TOOL, verb, source, *options),
        source=source,
        check=lambda output: check(output, truth),
        repetitions=repetitions,
        truth=truth,
        makes=makes,
        point=point,
        from_disk=from_disk,
    )


def peer(
    name: str,
    title: str,
    python: Path,
    script: str,
    file: TraceFile,
    check: Callable[[bytes, Truth], Answer],
    *options: str,
    point: Point | None = None,
) -> Case:
    """A script of `peers/`, run by `python`."""
    shown = " ".join(("python", f"benchmarks/peers/{script}", file.path.name, *options))
    return Case(
        name=name,
        command=f"{title}: {shown}",
        argv=(python, _PEERS / script, file.path, *options),
        source=file.path,
        check=lambda output: check(output, file.truth),
        repetitions=REPETITIONS_PEER,
        truth=file.truth,
        peer=True,
        point=point,
    )
