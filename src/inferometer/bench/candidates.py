"""Who takes part: backends by name, and a candidate's file with those that it imports."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from inferometer.backends import backends, require_backend
from inferometer.bench.candidate_files import files_of, name_of
from inferometer.bench.profiles.own_kernels import own_kernels
from inferometer.bench.results import CandidateRecord
from inferometer.errors import Unavailable, clean
from inferometer.side_files import read_side_file

ALL = "all"


@dataclass(frozen=True)
class Candidate:
    """A backend, or a candidate's file: then `file` is it, and `name` its name without folders."""

    name: str
    file: Path | None = None

    def serves(self, operator: str) -> bool:
        """Whether it has a kernel for the operator, as far as its name shows: a file is asked when it is loaded."""
        return self.file is not None or operator in require_backend(self.name).operators

    @property
    def interpreted(self) -> bool:
        """Whether it may have Triton's kernels, which a CPU interprets."""
        return self.file is not None or require_backend(self.name).interpreted

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Its file, and those next to it that it imports; none of a backend."""
        return () if self.file is None else files_of(self.file.resolve())

    @cached_property
    def source(self) -> bytes:
        """Its file, or all of several with their names; nothing of a backend.

        Raises:
            InputError: One can't be read, or is above 16 MiB.
        """
        if len(self.files) < 2:
            return b"".join(map(read_side_file, self.files))
        return b"".join(b"%s\0%s\0" % (each.name.encode(), read_side_file(each)) for each in self.files)

    @cached_property
    def own_kernels(self) -> frozenset[str]:
        """Names of kernels that its files define; none of a backend."""
        texts = (read_side_file(each).decode("utf-8", "replace") for each in self.files)
        return frozenset(name for text in texts for name in own_kernels(text))

    def as_request(self) -> dict[str, Any]:
        """For the process that loads it."""
        file = None if self.file is None else str(self.file.resolve())
        return {"name": self.name, "file": file, "files": list(map(str, self.files))}

    def as_record(self) -> CandidateRecord:
        """For the file of results."""
        if self.file is None:
            return CandidateRecord(name=self.name, kind="backend", settings=dict(require_backend(self.name).settings))
        digest = hashlib.sha256(self.source).hexdigest()
        return CandidateRecord(name=self.name, kind="file", sha256=digest)


@dataclass(frozen=True)
class Candidates:
    """Those who take part, the base that others are compared with first; `refused`: why others can't, by name."""

    chosen: tuple[Candidate, ...]
    refused: dict[str, str]


def choose_candidates(names: Sequence[str], candidate: Path | None, device: str) -> Candidates:
    """Backends of these names (`all`: every one that can run on `device`), and the candidate's file after them.

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
        chosen.append(Candidate(clean(name_of(candidate)), candidate))
    return Candidates(tuple(chosen), refused)


def _every() -> Sequence[str]:
    """PyTorch first, as the others are compared with it; references aren't made to be fast."""
    return sorted((name for name in backends() if name != "reference"), key=lambda name: (name != "torch", name))
