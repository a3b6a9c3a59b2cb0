"""Workloads in, as shapes to run: files of a flashinfer-bench dataset, ours or those of flashinfer-trace.

A `.jsonl` has a workload or a trace a line, a `.json` one, or a list. Tensors are drawn by the operator's own `inputs`:
of files only lengths are read. Ours say their arguments; where another tool has written a trace again, and so dropped
them, they come from the definition next to it, if its axes say all.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from inferometer.analyses.operators.given_shapes import GivenShape
from inferometer.bench.exchange.axes import bind
from inferometer.bench.exchange.blobs import read_integers
from inferometer.bench.exchange.foreign import Foreign, take_foreign
from inferometer.bench.exchange.schema import DefinedBy, Definition, Drawn, Random, Safetensors, Scalar, Workload
from inferometer.bench.shapes import ChosenShapes
from inferometer.errors import FormatError, InputError, UnknownName, clean
from inferometer.operators import require_operator
from inferometer.operators.operator import Operator
from inferometer.side_files import read_side_file

_T = TypeVar("_T")
_LARGEST = 256 << 20  # bytes of a file of workloads; a published dataset's are below 1 MB
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,255}")

_HINT = "Give a file of workloads/ or traces/ of a flashinfer-bench dataset, or one that inferometer wrote."


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A trace, which has a workload, or a workload by itself; what else a trace has isn't read."""

    definition: str | None = None
    workload: Workload | None = None
    axes: dict[str, int] | None = None
    inputs: dict[str, Random | Scalar | Safetensors] = {}
    uuid: str = ""
    inferometer: Drawn | None = None


@dataclass(frozen=True)
class _Place:
    """A line of a file in a dataset: `definitions` is where its definitions are."""

    where: str
    name: str
    root: Path
    definitions: Path


def read_workloads(
    path: Path, definitions: Path | None = None, *, on_left_out: Callable[[str], None] | None = None
) -> list[ChosenShapes]:
    """The shapes of a file, each once, by operator in the order of the file.

    Args:
        path: A `.jsonl` or `.json` file of workloads or traces.
        definitions: The folder `definitions` of the dataset, or a definition's file; None: in the folders above `path`.
        on_left_out: Called with the reason of each workload that is no shape of ours; the others are taken. None:
            none may be.

    Raises:
        InputError: The file can't be read; or a definition isn't an operator of ours: the message says why; or with
            `on_left_out`, none of them is.
        FormatError: It is no such file, with the line and the field; or its numbers contradict each other.
    """
    found: dict[str, dict[bytes, tuple[str, dict[str, Any]]]] = {}
    refused: InputError | None = None
    for place, workload in _read_places(path, definitions):
        try:
            operator, args, label = _shape_of(place, workload)
        except FormatError:
            raise
        except InputError as error:
            if on_left_out is None:
                raise
            on_left_out(error.message)
            refused = refused or error
            continue
        key = msgspec.json.encode(args, order="deterministic")
        found.setdefault(operator.name, {}).setdefault(key, (clean(label), args))
    if not found:
        raise refused or FormatError(f"{path}: expected a workload at least, found none", hint=_HINT)
    return [ChosenShapes(require_operator(name), tuple(shapes.values())) for name, shapes in found.items()]


def read_given(path: Path) -> list[GivenShape]:
    """The same with their weights, each line by itself.

    Raises:
        InputError, FormatError: As `read_workloads` without `on_left_out`.
    """
    found = []
    for place, workload in _read_places(path, None):
        operator, args, label = _shape_of(place, workload)
        weight = None if workload.inferometer is None else workload.inferometer.weight
        found.append(GivenShape(operator, args, clean(label), weight))
    if not found:
        raise FormatError(f"{path}: expected a workload at least, found none", hint=_HINT)
    return found


def _real(path: Path) -> Path:
    """Behind its links; itself where they go round."""
    return Path(os.path.realpath(path))


def _read_places(path: Path, definitions: Path | None) -> Iterator[tuple[_Place, Workload]]:
    place = _real(path)
    above = place.parents if definitions is None else (_real(definitions).parent,)
    root = next((each for each in above if (each / "definitions").is_dir()), place.parent)
    for where, line in read_lines(path):
        workload, name = workload_of(where, line), line.definition or path.stem
        if not _NAME.fullmatch(name):
            raise FormatError(f'{where}: definition: expected a name, found "{clean(name):.80}"')
        yield _Place(where, name, root, definitions or root / "definitions"), workload


def read_lines(path: Path) -> Iterator[tuple[str, Line]]:
    """Each workload or trace, with the file and its line."""
    if path.suffix not in (".json", ".jsonl"):
        raise InputError(f"{path}: expected a file of workloads, .jsonl or .json", hint=_HINT)
    data = read_side_file(path, most=_LARGEST, hint=_HINT)
    if path.suffix == ".jsonl":
        for number, text in enumerate(data.split(b"\n"), 1):
            if text.strip():
                yield f"{path}:{number}", decode(f"{path}:{number}", text, Line)
        return
    if data.lstrip()[:1] == b"[":
        for number, raw in enumerate(decode(str(path), data, list[msgspec.Raw])):
            yield f"{path}[{number}]", decode(f"{path}[{number}]", raw, Line)
    else:
        yield str(path), decode(str(path), data, Line)


def decode(where: str, data: bytes | msgspec.Raw, kind: type[_T]) -> _T:
    """JSON as a part of the format.

    Raises:
        FormatError: It is none, with the field.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        field = re.search(r" - at `\$\.?([^`]*)`$", str(error))
        reason = str(error)[: field.start()] if field else str(error)
        raise FormatError(f"{where}: {field[1] + ': ' if field and field[1] else ''}{reason}", hint=_HINT) from error


def workload_of(where: str, line: Line) -> Workload:
    """Of a trace, or of a line that is one.

    Raises:
        FormatError: There is none.
    """
    if line.workload is not None:
        return line.workload
    if line.axes is None:
        raise FormatError(f"{where}: expected a workload, or a trace that has one, found neither", hint=_HINT)
    return Workload(axes=line.axes, inputs=line.inputs, uuid=line.uuid, inferometer=line.inferometer)


def _shape_of(place: _Place, workload: Workload) -> tuple[Operator, dict[str, Any], str]:
    """The operator, its arguments, and what to call the shape."""
    if workload.inferometer is not None:
        drawn = workload.inferometer
        return _checked(place, workload, drawn.operator, drawn.args), drawn.args, drawn.shape
    definition = _find_definition(place)
    sizes = ", ".join(f"{axis}={size}" for axis, size in workload.axes.items())
    label = f"{place.name} {workload.uuid[:8]}: {sizes}"
    if definition is not None and definition.inferometer is not None:
        name, args = _args_of(place, workload, definition.inferometer)
        return _checked(place, workload, name, args), args, label
    read = partial(_read_blob, place.root)
    name, args = take_foreign(place.name, Foreign(workload, definition, place.where, read))
    try:
        bind(require_operator(name), args)
    except InputError as error:
        raise FormatError(f"{place.where}: {error.message}") from error
    return require_operator(name), args, label


def _read_blob(root: Path, spec: Safetensors, where: str) -> list[int]:
    return read_integers(root, spec.path, spec.tensor_key, where=where)


def _checked(place: _Place, workload: Workload, name: str, args: dict[str, Any]) -> Operator:
    """The operator, where its arguments make the sizes that the workload says."""
    try:
        operator = require_operator(name)
        sizes = bind(operator, args).sizes
    except UnknownName as error:
        raise FormatError(f"{place.where}: inferometer.operator: {error.message}", hint=error.hint) from error
    except InputError as error:
        raise FormatError(f"{place.where}: inferometer.args: {error.message}") from error
    for axis, size in workload.axes.items():
        if sizes.get(axis) not in (None, size):
            raise FormatError(
                f"{place.where}: axes.{axis}: expected {sizes[axis]} as the arguments have it, found {size}"
            )
    return operator


def _args_of(place: _Place, workload: Workload, defined: DefinedBy) -> tuple[str, dict[str, Any]]:
    """From a definition of ours: constants, and the axes that are arguments."""
    missing = sorted(set(workload.axes) - set(defined.axes))
    if missing or set(defined.axes) - set(workload.axes):
        why = "another tool wrote it again, without its arguments, and its axes don't say them all"
        raise InputError(f"{place.where}: {place.name}: {why}", hint="Give the file of workloads/ with the same uuid.")
    return defined.operator, {**defined.constants, **{arg: workload.axes[axis] for axis, arg in defined.axes.items()}}


def _find_definition(place: _Place) -> Definition | None:
    """The definition's file, where there is one."""
    files = [place.definitions]
    if not place.definitions.is_file():
        files = sorted(place.definitions.glob(f"*/{place.name}.json"))
    for file in files:
        found = decode(str(file), read_side_file(file), Definition)
        if found.name != place.name:
            raise FormatError(f'{file}: name: expected "{place.name}", found "{clean(found.name):.80}"')
        return found
    return None
