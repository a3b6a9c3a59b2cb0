"""What is measured: our commands and the peers', on which file, how often, and how their output is checked."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.answers import Answer, check_help, check_import, check_kernels, check_summary, read_peer
from benchmarks.trace_files import ROOT, TraceFile, Truth, make_gzip, make_trace_file, warm

STEPS: Final = {"full": (215, 860), "small": (1, 4)}  # full: 504 MB and 2.0 GB
REPETITIONS: Final = 7
REPETITIONS_LARGE: Final = 5
REPETITIONS_PEER: Final = 3
_PEERS: Final = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True, slots=True)
class Case:
    """One command on one file. `makes` is a folder that it writes, removed before each run."""

    name: str
    command: str
    argv: tuple[str | Path, ...]
    source: Path | None
    check: Callable[[bytes], Answer]
    repetitions: int
    truth: Truth | None = None
    peer: bool = False
    makes: Path | None = None

    def prepare(self) -> None:
        """Outside the timed part: a fresh target, and the source in the page cache."""
        if self.makes is not None and self.makes.exists():
            shutil.rmtree(self.makes)
        if self.source is not None:
            warm(self.source)


def make_cases(size: str, cache: Path, peer_python: Path | None, python: Path) -> tuple[list[Case], list[TraceFile]]:
    """All cases in the order of the gate, and the files they read; makes the files that aren't there."""
    steps, steps_large = STEPS[size]
    plain, large = make_trace_file(steps, cache), make_trace_file(steps_large, cache)
    packed = make_gzip(plain)
    tool = Path(sysconfig.get_path("scripts")) / "inferometer"
    cases = [*_ours(tool, plain), *_large(tool, large)]
    cases.insert(1, _kernels(tool, "kernels-gz", packed.path, packed.truth, REPETITIONS))
    cases.append(_peer("json-load", "json.load and a sum", python, "json_load.py", plain))
    if peer_python is not None:
        cases.append(_peer("hta", "HTA, its defaults", peer_python, "hta_breakdown.py", plain))
        cases.append(_peer("hta-fastest", "HTA, its fastest", peer_python, "hta_breakdown.py", plain, "--fastest"))
    return cases, [plain, packed, large]


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


def _ours(tool: Path, file: TraceFile) -> Iterator[Case]:
    store = file.path.with_suffix(".ifm")
    yield _kernels(tool, "kernels", file.path, file.truth, REPETITIONS)
    yield _import(tool, "import", file, store, REPETITIONS)
    yield _kernels(tool, "kernels-store", store, file.truth, REPETITIONS)
    yield Case(
        name="summary",
        command=f"inferometer summary {file.path.name}",
        argv=(tool, "summary", file.path),
        source=file.path,
        check=lambda output: check_summary(output, file.truth),
        repetitions=REPETITIONS,
        truth=file.truth,
    )
    yield Case("help", "inferometer --help", (tool, "--help"), None, check_help, REPETITIONS)


def _large(tool: Path, file: TraceFile) -> Iterator[Case]:
    store = file.path.with_suffix(".ifm")
    yield _kernels(tool, "kernels-large", file.path, file.truth, REPETITIONS_LARGE)
    yield _import(tool, "import-large", file, store, REPETITIONS_LARGE)
    yield _kernels(tool, "kernels-store-large", store, file.truth, REPETITIONS_LARGE)


def _kernels(tool: Path, name: str, source: Path, truth: Truth, repetitions: int) -> Case:
    return Case(
        name=name,
        command=f"inferometer kernels {source.name} --json",
        argv=(tool, "kernels", source, "--json"),
        source=source,
        check=lambda output: check_kernels(output, truth),
        repetitions=repetitions,
        truth=truth,
    )


def _import(tool: Path, name: str, file: TraceFile, store: Path, repetitions: int) -> Case:
    return Case(
        name=name,
        command=f"inferometer import {file.path.name} -o {store.name} --json",
        argv=(tool, "import", file.path, "-o", store, "--json"),
        source=file.path,
        check=lambda output: check_import(output, file.truth),
        repetitions=repetitions,
        truth=file.truth,
        makes=store,
    )


def _peer(name: str, title: str, python: Path, script: str, file: TraceFile, *options: str) -> Case:
    command = " ".join(("python", f"benchmarks/peers/{script}", file.path.name, *options))
    return Case(
        name=name,
        command=f"{title}: {command}",
        argv=(python, _PEERS / script, file.path, *options),
        source=file.path,
        check=read_peer,
        repetitions=REPETITIONS_PEER,
        truth=file.truth,
        peer=True,
    )
