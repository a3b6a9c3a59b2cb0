"""What tuning found, kept in a file of the user's: by adapter, shape and the text of the kernels.

A kernel that was changed since, or is no candidate any more, isn't taken: it is measured again when tuning runs next.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from inferometer.backends.wgsl.source import kernel_names, read_kernel
from inferometer.caches import cache_folder
from inferometer.engines.webgpu.plan.selection import Candidate, Tuned, TuneKey
from inferometer.engines.webgpu.run.executor import Adapter
from inferometer.errors import InputError
from inferometer.new_files import NewFile, begins_with, check_place
from inferometer.side_files import read_side_file

LEAST_GAIN = 0.05
"""By which a candidate must be faster to take the place of the path's first."""
_FORM = 1  # of the file
_KIND = begins_with("file of what tuning found", b"{")


class Measured(msgspec.Struct, frozen=True):
    """One candidate's time for one key: the median and the upper quartile, ns, of so many launches."""

    kernel: str
    constants: dict[str, float]
    median_ns: float
    upper_ns: float
    samples: int


class Choice(msgspec.Struct, frozen=True):
    """What was found for one key: `tried` candidates, of which `measured` are the path's own first and the finalists.

    `best` is an index in `measured`.
    """

    op: str
    n: int
    k: int
    is_decode: bool
    best: int
    tried: int
    measured: tuple[Measured, ...]
    digests: dict[str, str]
    date: str

    @property
    def reason(self) -> str:
        """The finding in words."""
        first, best = self.measured[0], self.measured[self.best]
        if self.best == 0:
            return f"none of {self.tried - 1} others is faster by more than {LEAST_GAIN:.0%}"
        times = f"{best.median_ns / 1e3:.1f} µs, not {first.median_ns / 1e3:.1f}"
        return f"{first.median_ns / best.median_ns:.2f} x as fast as {_words(first)}: {times}"


class Findings(msgspec.Struct):
    """What the file holds."""

    form: int = _FORM
    adapters: dict[str, list[Choice]] = {}


def tuning_file() -> Path:
    """Where findings are kept: in the user's folder of caches."""
    return cache_folder() / "webgpu-tuning.json"


def tuned_choices(adapter: Adapter, *, file: Path | None = None) -> Tuned | None:
    """What earlier runs of `tune` found for this adapter; None where they found nothing that still holds.

    Raises:
        InputError: The file is there and isn't ours.
    """
    found = read_findings(tuning_file() if file is None else file).adapters.get(key_of(adapter), [])
    return chooser_of(
        each
        for each in found
        if all(name in kernel_names() and read_kernel(name).digest == digest for name, digest in each.digests.items())
    )


def chooser_of(choices: Iterable[Choice]) -> Tuned | None:
    """What the planner asks; None where there is nothing to tell."""
    known = {(each.op, each.n, each.k, each.is_decode): each for each in choices}

    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        found = known.get((key.op, key.n, key.k, key.rows == 1))
        if found is None:
            return None
        best = found.measured[found.best]
        wanted = Candidate(best.kernel, best.constants)
        return (wanted, found.reason) if wanted in candidates else None

    return tuned if known else None


def _words(one: Measured) -> str:
    constants = " ".join(f"{name}={value:g}" for name, value in one.constants.items())
    return f"{one.kernel} ({constants})" if constants else one.kernel


def key_of(adapter: Adapter) -> str:
    """An adapter, as the file names it."""
    return " | ".join((adapter.backend, adapter.name, adapter.description))


def read_findings(file: Path) -> Findings:
    """What was kept; nothing where there is no file, or one of another form.

    Raises:
        InputError: The file is there and isn't ours.
    """
    hint = "It is only a cache: delete it, and tune again."
    if not os.path.lexists(file):
        return Findings()
    try:
        found = msgspec.json.decode(read_side_file(file, hint=hint), type=Findings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: expected what tuning found: {error}", hint=hint) from error
    return found if found.form == _FORM else Findings()


def check_findings_place(file: Path) -> None:
    """Raise `InputError` where `write_findings` would refuse what is there."""
    if os.path.lexists(file):
        check_place(file, force=True, kind=_KIND)


def write_findings(file: Path, content: Findings) -> None:
    """In one step, so that a run in parallel with this one never reads half a file."""
    data: bytes = msgspec.json.format(msgspec.json.encode(content), indent=1)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with NewFile(file, force=True, kind=_KIND) as place:
            place.write_bytes(data)
    except OSError as error:
        raise InputError(f"{file}: what tuning found can't be kept: {error.strerror or error}") from error
