"""Which rank a file is: what it says itself, else what its name says, else its place in the order of names.

Names are those that engines and profilers give: `rank0.json.gz`, `worker_0_tp0.pt.trace.json`, `report.0.sqlite`,
`1718-TP-3-DP-1.trace.json.gz`. Numbers that may be process ids, times or steps are taken for none.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import NoReturn

from inferometer.errors import InputError
from inferometer.trace.facts import NumberedBy

_PARALLEL = ("global", "rank", "tp", "ep", "dp", "pp", "cp", "dcp")
_PLACES = (
    "worker",
    "node",
    "gpu",
    "local",
    "r",
)  # often part of a machine's name: believed where they tell files apart
# Which of several numbers in a name is the rank: the first of these that differs between all files.
_BY_WORTH = (*_PARALLEL, *_PLACES)
# Where only several together differ, files are numbered in this order, the outermost first, as engines lay ranks out.
_BY_NESTING = ("node", "dp", "pp", "ep", "cp", "dcp", "tp", "worker", "gpu", "local", "global", "rank", "r")
_DIMENSION = re.compile(
    rf"(?<![a-z0-9])({'|'.join(_BY_WORTH)})(?:[-_. ]?rank)?[-_.= ]?(\d{{1,5}})(?![a-z0-9])", re.IGNORECASE
)
_NO_RANK = re.compile(r"(?<![a-z])(?:process|pid|step|iter|iteration|epoch|run|port)[-_. ]?$", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_MOST_BARE = 1024  # a number without its word, from here on, may well be a process id


@dataclass(frozen=True)
class Candidate:
    """A file before it is numbered; `name` is without the ending, `file` with it.

    `named`: ranks that it names itself; `is_alone`: it says that there is no other.
    """

    name: str
    named: tuple[int, ...] = ()
    is_alone: bool = False
    file: str = ""


@dataclass(frozen=True)
class Numbered:
    """The ranks of a file (several, where it holds several), and who says so."""

    ranks: tuple[int, ...]
    by: NumberedBy


def number_ranks(files: Sequence[Candidate], where: str) -> list[Numbered]:
    """The ranks of `files`, which are in the order of their names; no two files share one.

    Files that contradict each other (each calls itself rank 0) go by their names where these differ, or by position
    where each says that it is alone in its world: replicas of a server.

    Raises:
        InputError: Two files claim one rank: several recordings of it, which one trace must not mix.
    """
    names = [file.name for file in files]
    named = [file.named for file in files]
    if _clash(named):
        worded = ranks_by_name(names, bare_numbers=False)
        names_differ = None not in worded and len(set(worded)) == len(worded) and all(len(each) <= 1 for each in named)
        named = [() if names_differ or file.is_alone else file.named for file in files]
    claims = [mine or (() if name is None else (name,)) for mine, name in zip(named, ranks_by_name(names), strict=True)]
    if clash := _clash(claims):
        _refuse(where, min(clash), [file for file, claim in zip(files, claims, strict=True) if min(clash) in claim])
    free = count(max(chain.from_iterable(claims), default=-1) + 1)
    return [
        Numbered(claim, "file" if mine else "name") if claim else Numbered((next(free),), "position")
        for claim, mine in zip(claims, named, strict=True)
    ]


def ranks_by_name(names: Sequence[str], *, bare_numbers: bool = True) -> list[int | None]:
    """What the names say, seen together; None where one says nothing. Numbers without a word count only on request."""
    found = [_dimensions(name) for name in names]
    with_any = [dimensions for dimensions in found if dimensions]
    dimensioned = iter(_ranks_of(with_any))
    others = [name for name, dimensions in zip(names, found, strict=True) if not dimensions]
    bare = iter(_bare_numbers(others) if bare_numbers else [None] * len(others))
    return [next(dimensioned) if dimensions else next(bare) for dimensions in found]


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """What names are ordered by: `rank_10` after `rank_9`."""
    pieces = re.split(r"(\d+)", name.casefold())
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces], name


def _dimensions(name: str) -> dict[str, int]:
    found = [(word.lower(), int(number)) for word, number in _DIMENSION.findall(name)]
    return {word: number for word, number in found if word in _PARALLEL or number < _MOST_BARE}


def _ranks_of(files: Sequence[dict[str, int]]) -> Sequence[int | None]:
    """One rank a file from its named numbers (`{"tp": 3, "dp": 0}`)."""
    for word in _BY_WORTH:
        ranks = [file.get(word) for file in files]
        if None not in ranks and len(set(ranks)) == len(ranks) and (word in _PARALLEL or len(files) > 1):
            return ranks
    places = [tuple(file.get(word, 0) for word in _BY_NESTING) for file in files]
    words = {word for file in files for word in file}
    if len(set(places)) == len(places) and all(words == set(file) for file in files):
        order = sorted(places)
        return [order.index(place) for place in places]
    return [next((file[word] for word in _PARALLEL if word in file), None) for file in files]


def _bare_numbers(names: Sequence[str]) -> Sequence[int | None]:
    """The number in which names differ that are alike in everything else (`report.0`, `report.1`)."""
    none = [None] * len(names)
    if len({_NUMBER.sub("0", name) for name in names}) != 1:
        return none
    columns = list(zip(*(_NUMBER.finditer(name) for name in names), strict=True))
    differing = [column for column in columns if len({int(number[0]) for number in column}) > 1]
    if len(differing) != 1:
        return none
    numbers = [int(number[0]) for number in differing[0]]
    before = names[0][: differing[0][0].start()]
    is_rank = len(set(numbers)) == len(numbers) and max(numbers) < _MOST_BARE and not _NO_RANK.search(before)
    return numbers if is_rank else none


def _clash(claims: Iterable[tuple[int, ...]]) -> set[int]:
    """Ranks that several claim."""
    seen: set[int] = set()
    clash: set[int] = set()
    for ranks in claims:
        clash |= seen.intersection(ranks)
        seen.update(ranks)
    return clash


def _refuse(where: str, rank: int, files: Sequence[Candidate]) -> NoReturn:
    names = ", ".join(file.file or file.name for file in files[:4])
    raise InputError(
        f"{where}: expected one file per rank, found {len(files)} of rank {rank}: "
        f"{names}{', …' if len(files) > 4 else ''}",
        hint="Name one file, or put the files of each recording into a folder of their own (links will do).",
    )
