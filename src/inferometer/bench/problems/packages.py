"""A candidate whose code lies in files that we write: sources of a solution, with what calls them behind."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from inferometer.bench.candidates import Candidate
from inferometer.bench.profiles.own_kernels import own_kernels
from inferometer.bench.results import CandidateRecord


@dataclass(frozen=True)
class Packaged(Candidate):
    """A candidate of a foreign operator.

    `own`: its code, by file, without what we put after it. Of several files it isn't known which kernels ran where,
    so only those of a single one are its own.
    """

    own: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def source(self) -> bytes:
        """All files, in the order of their names."""
        return b"".join(f"{path}\0{self.own[path]}\0".encode() for path in sorted(self.own))

    @cached_property
    def own_kernels(self) -> frozenset[str]:
        """Names of kernels that its file defines; none of several files."""
        return own_kernels(next(iter(self.own.values()))) if len(self.own) == 1 else frozenset()

    def as_record(self) -> CandidateRecord:
        """With the hash of its own sources."""
        return CandidateRecord(name=self.name, kind="file", sha256=hashlib.sha256(self.source).hexdigest())


def pack(name: str, sources: Mapping[str, str], end: str, folder: Path, *, package: str) -> Packaged:
    """Write sources below `folder`, and the file that a process loads: the only source with `end`, or `end` alone."""
    folder.mkdir(parents=True)
    text = end
    if len(sources) == 1:
        text = next(iter(sources.values())) + end
    else:
        for path, content in sources.items():
            place = folder / package / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, "utf-8")
    file = folder / "candidate_file.py"
    file.write_text(text, "utf-8")
    return Packaged(name, file, dict(sources))
