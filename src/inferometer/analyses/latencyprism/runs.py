"""What the two runs and their processes are called, and which processes are compared with which."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from inferometer.errors import InputError

Pairing = Literal["strict", "cross"]
PAIRINGS: tuple[Pairing, Pairing] = ("strict", "cross")
_MOST_PAIRS = 1_024
_FILE = re.compile(r"(?:^|_)(?:perf_data|counters_data)[^/]*$")
_PLAIN = re.compile(r"[^\w.+-]+")
_PREFILL = "prefill"
_SCENARIO_PARTS = 2


@dataclass(frozen=True)
class RunNames:
    """`base` and `candidate` label the runs; `scenario` is what they have in common, or empty."""

    base: str
    candidate: str
    scenario: str = ""


@dataclass(frozen=True)
class Pair:
    """Two processes that are compared; None where the source names none."""

    base: int | None
    candidate: int | None
    pairing: Pairing


def name_runs(base: str, candidate: str) -> RunNames:
    """Names from where the runs were read: the last part of their paths that differs, and the two before.

    `cpu/normal` and `cpu/abnormal/perf_data.csv` are `normal` and `abnormal` of `cpu`. Where nothing differs, or
    nothing is left, they are called base and candidate.
    """
    one, two = _parts(base), _parts(candidate)
    shared = 0
    while shared < min(len(one), len(two)) and one[shared] == two[shared]:
        shared += 1
    labels = tuple(_PLAIN.sub("_", parts[shared]) if shared < len(parts) else "" for parts in (one, two))
    scenario = "/".join([part for part in one[:shared] if part not in ("", ".", "..")][-_SCENARIO_PARTS:])
    if not all(labels) or labels[0] == labels[1]:
        return RunNames("base", "candidate", scenario)
    return RunNames(labels[0], labels[1], scenario)


def check_phases(base: str, candidate: str) -> None:
    """Raise `InputError` where one path says that it is a prefill, and the other doesn't."""
    one, two = (path.lower().replace("\\", "/").split("/") for path in (base, candidate))
    is_prefill = [
        any(_PREFILL in part for part in mine if part not in other) for mine, other in ((one, two), (two, one))
    ]
    if is_prefill[0] != is_prefill[1]:
        raise InputError(
            f"{base} and {candidate}: expected two runs of one phase, found that only one is named a prefill",
            hint="Compare prefill with prefill, or rename the file.",
        )


def pair_processes(
    base: Sequence[int | None], candidate: Sequence[int | None], pairing: Pairing | None
) -> Sequence[Pair]:
    """Processes of both runs one to one (`strict`), the others all with all (`cross`); `pairing` asks for one sort.

    Raises:
        InputError: There is no pair of that sort, or there are too many.
    """
    if pairing not in (None, *PAIRINGS):
        raise InputError(f"pairing: expected strict or cross, found {pairing!r}")
    both = [process for process in base if process in candidate and process is not None]
    rest = [[each for each in run if pairing == "cross" or each not in both] for run in (base, candidate)]
    n_cross = 0 if pairing == "strict" else len(rest[0]) * len(rest[1])
    n_strict = 0 if pairing == "cross" else len(both)
    if n_cross + n_strict > _MOST_PAIRS:
        raise InputError(
            f"expected at most {_MOST_PAIRS:,} pairs of processes, found {n_cross + n_strict:,}: "
            f"{len(base):,} processes in one run, {len(candidate):,} in the other",
            hint="Compare runs of fewer processes, or only those in both with strict pairing.",
        )
    strict = [Pair(process, process, "strict") for process in both[:n_strict]]
    cross = [Pair(one, two, "cross") for one, two in product(*rest)] if n_cross else []
    if not strict and not cross:
        raise InputError(
            f"expected processes to pair, found {_listed(base)} in one run and {_listed(candidate)} in the other",
            hint="Leave out the pairing, or ask for cross.",
        )
    return [*strict, *cross]


def _parts(path: str) -> Sequence[str]:
    """Folders of the path, without the names that files of every run have."""
    parts = path.replace("\\", "/").rstrip("/").split("/")
    if _FILE.search(parts[-1]):
        parts[-1] = _FILE.sub("", parts[-1])
    parts[-1] = parts[-1].removesuffix(".ifm")
    return [part for part in parts if part]


def _listed(processes: Sequence[int | None]) -> str:
    return ", ".join("one without an id" if each is None else str(each) for each in processes[:8]) or "none"
