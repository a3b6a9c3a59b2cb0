"""What the titles over a table of call paths mean, and how its cells are parted: by bars, or as CSV.

The columns `kernel` and `kernel_path` make the header; a title that names two others as `A-B`, or says `difference`,
is a difference; one that says `%`, `ratio`, `speedup` or `calls` is of no use here; every other one is a run.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LONGEST_HEADER = 20_000
_DELIMITERS = ("\t", ",", ";")
_BAR = re.compile(r"(?<!\\)\|")
_UNIT = re.compile(r"(?P<name>.*\S)\s*[(\[](?P<unit>s|sec|seconds|ms|us|µs|μs|ns)[)\]]")
_UNITS = {"sec": "s", "seconds": "s"}
_KERNEL, _PATH = "kernel", "kernel_path"
_DIFFERENCE = re.compile(r"difference|diff|delta|Δ", re.IGNORECASE)
_NO_TIME = re.compile(r".*(?:%|\bratio\b|\bspeed-?up\b).*|(?:n_?)?calls|counts?", re.IGNORECASE)


@dataclass(frozen=True)
class Arm:
    """A column of times: where it stands, the run's name, the unit of plain numbers."""

    at: int
    name: str
    unit: str


@dataclass(frozen=True)
class DifferenceColumn:
    """A column that should be `arms[first] - arms[second]`; not `signed`: the title doesn't say which way round."""

    at: int
    title: str
    first: int
    second: int
    signed: bool


@dataclass(frozen=True)
class PathHeader:
    """What is in each cell of a row. `delimiter` is `|` or that of CSV; `closed`: rows end with a bar."""

    delimiter: str
    titles: Sequence[str]
    kernel: int
    path: int
    arms: Sequence[Arm]
    differences: Sequence[DifferenceColumn]
    unknown: Sequence[str]
    closed: bool


def find_header(line: str) -> PathHeader | None:
    """The header that this line is, if it is one."""
    if len(line) > _LONGEST_HEADER or _PATH not in line.lower().replace(" ", "_"):
        return None
    text = line.strip().lstrip("\ufeff")
    for delimiter in _delimiters(text):
        titles = split(text, delimiter)
        keys = ["_".join(title.lower().split()) for title in titles]
        if _KERNEL in keys and _PATH in keys:
            return _header(text, delimiter, titles, keys.index(_KERNEL), keys.index(_PATH))
    return None


def split(text: str, delimiter: str) -> Sequence[str]:
    """The cells of a line, without the blanks around them."""
    text = text.strip(" \r\n") if delimiter != "|" else text.strip()
    if delimiter != "|":
        try:
            return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])]
        except csv.Error:
            return [cell.strip() for cell in text.split(delimiter)]
    cells = [cell.strip().replace("\\|", "|") for cell in _BAR.split(text)]
    begin = 1 if text.startswith("|") else 0
    end = -1 if is_closed(text) and len(cells) > begin + 1 else None
    return cells[begin:end]


def is_closed(line: str) -> bool:
    """Whether a line ends with a bar that no backslash comes before."""
    text = line.rstrip()
    return text.endswith("|") and not text.endswith("\\|")


def _delimiters(text: str) -> Iterator[str]:
    if text.count("|") > 1:
        yield "|"
    yield from (delimiter for delimiter in _DELIMITERS if delimiter in text)


def _header(text: str, delimiter: str, titles: Sequence[str], kernel: int, path: int) -> PathHeader | None:
    named = {at: title for at, title in enumerate(titles) if at not in (kernel, path)}
    pairs = {f"{a}-{b}": (i, j) for i, a in named.items() for j, b in named.items() if i != j}
    differs = {at: pairs.get("-".join(map(str.strip, title.split("-")))) for at, title in named.items()}
    asked = {at: pair for at, pair in differs.items() if pair or _DIFFERENCE.fullmatch(named[at])}
    unknown = {at for at, title in named.items() if at not in asked and (not title or _NO_TIME.fullmatch(title))}
    arms = list(_arms({at: title for at, title in named.items() if at not in asked and at not in unknown}))
    if not arms:
        return None
    position = {arm.at: i for i, arm in enumerate(arms)}
    differences = []
    for at, pair in asked.items():
        if pair is None and len(arms) == 2:
            differences.append(DifferenceColumn(at, titles[at], 0, 1, signed=False))
        elif pair and set(pair) <= set(position):
            differences.append(DifferenceColumn(at, titles[at], position[pair[0]], position[pair[1]], signed=True))
        else:
            unknown.add(at)
    lost = [titles[at] for at in sorted(unknown)]
    return PathHeader(delimiter, titles, kernel, path, arms, differences, lost, delimiter == "|" and is_closed(text))


def _arms(named: dict[int, str]) -> Iterator[Arm]:
    """Each run under a name of its own: a title that repeats gets a number."""
    taken: set[str] = set()
    for at, title in named.items():
        match = _UNIT.fullmatch(title)
        name = match["name"] if match else title
        number = 2
        while name in taken:
            name, number = f"{match['name'] if match else title} ({number})", number + 1
        taken.add(name)
        unit = match["unit"] if match else "s"
        yield Arm(at, name, _UNITS.get(unit, unit))
