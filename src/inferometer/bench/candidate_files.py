"""Files that a candidate consists of: its own, and those next to it that it imports, as far as their texts show.

Nothing is run. Left out: what is imported by a name that is put together as it runs, and what isn't Python.
"""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

from inferometer.side_files import read_side_file

PACKAGE = "__init__.py"
_MOST = 256  # files


def name_of(file: Path) -> str:
    """What a candidate is called: its file, or the folder that is a package."""
    return file.resolve().parent.name if file.name == PACKAGE else file.name


def files_of(file: Path) -> tuple[Path, ...]:
    """The candidate's file first.

    Raises:
        InputError: One can't be read, or is above 16 MiB.
    """
    roots = _roots(file)
    found: dict[Path, None] = {file: None}
    left = [file]
    while left and len(found) < _MOST:
        for each in _imported(left.pop(), roots):
            if each.is_file() and each not in found:
                found[each] = None
                left.append(each)
    return tuple(found)


def _roots(file: Path) -> tuple[Path, ...]:
    """Where its absolute imports look first: its folder, and that of its package."""
    root = file.parent
    while (root / PACKAGE).is_file() and root.parent != root:
        root = root.parent
    return tuple(dict.fromkeys((file.parent, root)))


def _imported(file: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    """Where what it imports would be."""
    try:
        with warnings.catch_warnings():  # of odd escapes in its texts
            warnings.simplefilter("ignore")
            tree = ast.parse(read_side_file(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _places(roots, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            bases = (file.parents[node.level - 1],) if 0 < node.level <= len(file.parents) else roots
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _places(bases, [*parts, alias.name])


def _places(bases: tuple[Path, ...], parts: list[str]) -> Iterator[Path]:
    """Of a dotted name: each package on its way, and the module."""
    for base in bases:
        for count in range(1, len(parts) + 1):
            place = base.joinpath(*parts[:count])
            yield place.with_name(f"{place.name}.py")
            yield place / PACKAGE
