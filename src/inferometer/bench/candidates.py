"""Who takes part: backends by name, and a candidate's file."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from inferometer.backends import backends, require_backend
from inferometer.bench.profiles.own_kernels import own_kernels
from inferometer.bench.results import Contender
from inferometer.errors import Unavailable, clean
from inferometer.side_files import read_side_file

ALL = "all"


@dataclass(frozen=True)
class Candidate:
    """A backend, or a candidate's file: then `file` is it, and `name` its name without folders."""

    name: str
    file: Path | None = None

    def serves(self, operator: str) -> bool:
        """Whether it has a kernel for the operator, as far as its name tells: a file is asked when it is loaded."""
        return self.file is not None or operator in require_backend(self.name).operators

    @property
    def interpreted(self) -> bool:
        """Whether it may have Triton's kernels, which a CPU interprets."""
        return self.file is not None or require_backend(self.name).interpreted

    @cached_property
    def source(self) -> bytes:
        """Its file; nothing of a backend. InputError where it can't be read, or is above 16 MiB."""
        return b"" if self.file is None else read_side_file(self.file)

    @cached_property
    def own_kernels(self) -> frozenset[str]:
        """Names of kernels that its file defines; none of a backend."""
        return frozenset() if self.file is None else own_kernels(self.source.decode("utf-8", "replace"))

    def as_request(self) -> dict[str, Any]:
        """For the process that loads it."""
        return {"name": self.name, "file": None if self.file is None else str(self.file.resolve())}

    def as_contender(self) -> Contender:
        """For the file of results."""
        if self.file is None:
            return Contender(name=self.name, kind="backend", settings=dict(require_backend(self.name).settings))
        digest = hashlib.sha256(self.source).hexdigest()
        return Contender(name=self.name, kind="file", sha256=digest)


@dataclass(frozen=True)
class Candidates:
    """Those who take part, the base that others are held against first; `refused`: why others can't, by name."""

    entrants: tuple[Candidate, ...]
    refused: dict[str, str]


def choose_candidates(names: Sequence[str], candidate: Path | None, device: str) -> Candidates:
    """Backends of these names (`all`: every one that can run on `device`), and the candidate's file behind them.

    Raises:
        UnknownName: There is no such backend.
        Unavailable: One that was named can't run here.
    """
    refused: dict[str, str] = {}
    chosen: list[Candidate] = []
    for name in dict.fromkeys(each for word in names for each in (_every() if word == ALL else (word,))):
        why = require_backend(name).unavailable(device)
        if why is None:
            chosen.append(Candidate(name))
        elif name in names:
            raise Unavailable(f"{name} can't run on {device}: {why}", hint="`--backend all` takes those that can.")
        else:
            refused[name] = why
    if candidate is not None:
        chosen.append(Candidate(clean(candidate.name), candidate))
    return Candidates(tuple(chosen), refused)


def _every() -> Sequence[str]:
    """PyTorch first, as the others are held against it; references aren't made to be fast."""
    return sorted((name for name in backends() if name != "reference"), key=lambda name: (name != "torch", name))
