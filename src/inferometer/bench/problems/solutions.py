"""Solutions of flashinfer-bench as candidates: sources in Python or Triton, called as the definition says.

Source: https://bench.flashinfer.ai/docs and flashinfer-bench 0.1.2. C++ and CUDA are to be compiled with tvm-ffi or as
an extension of PyTorch: they are refused by name; a Python solution may compile with `torch.utils.cpp_extension`.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from inferometer.bench.exchange.schema import Const, Definition
from inferometer.bench.exchange.workloads import decode
from inferometer.bench.problems.adapters import adapt_definition
from inferometer.bench.problems.definition_files import ENTRY
from inferometer.bench.problems.packages import Packaged, pack
from inferometer.errors import FormatError, InputError, clean
from inferometer.side_files import read_side_file

_RUN = frozenset({"python", "triton", "tilelang", "cute_dsl", "cutedsl", "cutile"})
"""Languages whose sources are Python."""

_HINT = "Give a solution of flashinfer-bench, or a Python file with a function run."


class _Source(msgspec.Struct, frozen=True):
    path: str
    content: str


class _Spec(msgspec.Struct, frozen=True):
    """`language` and `dependencies` are texts or lists, by the version of the format."""

    language: Any
    entry_point: str
    destination_passing_style: bool = True


class Solution(msgspec.Struct, frozen=True):
    """What of a solution's file is needed to call it."""

    name: str
    definition: str
    author: str
    spec: _Spec
    sources: tuple[_Source, ...]


@dataclass(frozen=True)
class ReadSolution:
    """A solution, and the file that it is from, word for word."""

    solution: Solution
    text: bytes


def read_solution(path: Path) -> ReadSolution:
    """The solution in a `.json` file, checked.

    Raises:
        InputError: The file can't be read, or its language isn't run here.
        FormatError: It is no solution, or its sources contradict it.
    """
    text = read_side_file(path, hint=_HINT)
    found = decode(str(path), text, Solution)
    _check_language(str(path), found.spec.language)
    seen: set[str] = set()
    for place, source in enumerate(found.sources):
        where = f"{path}: sources[{place}].path"
        if not _is_below(source.path):
            raise FormatError(f'{where}: expected a path below the solution, found "{clean(source.path):.120}"')
        if source.path in seen:
            raise FormatError(f'{where}: "{source.path}" is there twice')
        seen.add(source.path)
    file, separator, function = found.spec.entry_point.partition("::")
    if not separator or not function.isidentifier() or not file.endswith(".py"):
        entry = clean(found.spec.entry_point)
        raise FormatError(f'{path}: spec.entry_point: expected FILE.py::FUNCTION, found "{entry:.120}"')
    if file not in seen:
        raise FormatError(f'{path}: spec.entry_point: "{clean(file):.120}" is none of the sources')
    return ReadSolution(found, text)


def _check_language(where: str, language: Any) -> None:
    named = [language] if isinstance(language, str) else language
    if not isinstance(named, list) or not named or not all(isinstance(each, str) for each in named):
        raise FormatError(f"{where}: spec.language: expected a text, found {clean(str(language)):.60}")
    other = sorted({each for each in named if each.lower() not in _RUN})
    if other:
        raise InputError(
            f"{where}: spec.language: {clean(', '.join(other)):.60} isn't run here: expected python or triton",
            hint="A Python solution that compiles its sources, as with torch.utils.cpp_extension, can be.",
        )


def _is_below(path: str) -> bool:
    pure = PurePosixPath(path)
    odd = "\\" in path or "\0" in path or ":" in path or len(path) > 255
    return bool(path) and not odd and not pure.is_absolute() and ".." not in pure.parts


def pack_solution(found: Solution, definition: Definition, folder: Path) -> Packaged:
    """As a candidate, its sources below `folder`."""
    file, _, function = found.spec.entry_point.partition("::")
    sources = {source.path: source.content for source in found.sources}
    style = found.spec.destination_passing_style
    return pack_sources(clean(found.name), sources, file, function, definition, folder, fills=style)


def pack_file(path: Path, definition: Definition, folder: Path) -> Packaged:
    """A Python file with a function `run` as a candidate: it returns its outputs.

    Raises:
        InputError: It can't be read.
    """
    text = read_side_file(path, hint=_HINT).decode("utf-8", "replace")
    return pack_sources(clean(path.name), {path.name: text}, path.name, ENTRY, definition, folder, fills=False)


def pack_sources(
    name: str, sources: dict[str, str], file: str, function: str, definition: Definition, folder: Path, *, fills: bool
) -> Packaged:
    """Several files are a package: the function's file imports others by their names or as `from . import other`."""
    alone = len(sources) == 1
    package = f"solution_{folder.name}"
    module = ".".join((package, *PurePosixPath(file).with_suffix("").parts))
    places = (str(folder.resolve()), str(folder.resolve() / package), str((folder / package / file).resolve().parent))
    end = adapt_definition(
        definition.name, entry=function, file=file, fills=fills, module="" if alone else module,
        folders=() if alone else tuple(dict.fromkeys(places)), **about(definition),
    )  # fmt: skip
    return pack(name, sources, end, folder, package=package)


def pack_reference(definition: Definition, folder: Path) -> Path:
    """The file of a definition's reference, to be called in a process of its own."""
    end = adapt_definition(definition.name, entry=ENTRY, file="reference", copies=True, **about(definition))
    folder.mkdir(parents=True)
    file = folder / "reference.py"
    file.write_text(definition.reference + end, "utf-8")
    return file


def about(definition: Definition) -> dict[str, Any]:
    """What of a definition the end of a file needs."""
    return {
        "inputs": {name: spec.shape or () for name, spec in definition.inputs.items()},
        "outputs": [(name, spec.shape or (), spec.dtype) for name, spec in definition.outputs.items()],
        "sizes": {axis: size.value for axis, size in definition.axes.items() if isinstance(size, Const)},
    }
