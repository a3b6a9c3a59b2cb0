"""Kernel paths as TOML: the bundled ones, and a user's own.

    name = "llama"
    families = ["llama"]
    source = "why these"
    [kernels]                      lists of candidates, the one wanted first; steps name them
    linear = [{ kernel = "linear_workgroup", constants = { COLUMNS = 4 } }, { kernel = "linear_thread" }]
    [decode]                       the same for prefill and head
    before = [...]                 once, in front of the layers
    layer = [{ op = "linear", role = "o_proj", weights = ["o"], inputs = ["attended"], outputs = ["projected"],
               kernels = "linear" }, ...]
    after = [...]
    [decode_fused]                 another form of decode, for a tuner to choose where a whole step is faster with it

`base = "llama"` takes phases and lists from a bundled path; what is in the file replaces those of its name.
Weights in `layer` are of that layer; `next_norm` is the norm in front of the next layer, behind the last the final one:
there its step has the role `final_norm`.
"""

import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from inferometer.engines.webgpu.model_spec import Family
from inferometer.engines.webgpu.plan.kernel_path import PHASES, KernelChoice, KernelPath, PhaseSteps
from inferometer.engines.webgpu.plan.path_checks import check_path, check_steps
from inferometer.engines.webgpu.program import Phase
from inferometer.errors import FormatError, UnknownName
from inferometer.side_files import read_side_file


class _PathFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    families: tuple[Family, ...]
    source: str = ""
    base: str | None = None
    kernels: dict[str, tuple[KernelChoice, ...]] = {}
    prefill: PhaseSteps | None = None
    decode: PhaseSteps | None = None
    head: PhaseSteps | None = None
    decode_fused: PhaseSteps | None = None


def path_names() -> tuple[str, ...]:
    """The bundled paths."""
    folder = files("inferometer.engines.webgpu.plan") / "kernel_paths"
    return tuple(sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml")))


def find_path(family: str) -> KernelPath:
    """The bundled path of a model family.

    Raises:
        UnknownName: There is none.
    """
    paths = {each: path for path in map(_bundled, path_names()) for each in path.families}
    if family not in paths:
        raise UnknownName("model family with a kernel path", family, paths)
    return paths[family]


def read_path(file: Path) -> KernelPath:
    """A user's own path.

    Raises:
        InputError: It can't be read.
        FormatError: It isn't such a file; the message names the place.
    """
    try:
        text = read_side_file(file, pipe=True).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{file}: expected TOML in UTF-8, found byte {error.object[error.start]:#04x}") from error
    return parse_path(text, str(file))


def parse_path(text: str, place: str) -> KernelPath:
    """A path of its text; `place` begins the messages of errors."""
    file = _parse_file(text, place)
    base = None if file.base is None else _find_base(file.base, place)
    own: dict[Phase, PhaseSteps | None] = {"prefill": file.prefill, "decode": file.decode, "head": file.head}
    phases: dict[Phase, PhaseSteps] = {}
    for phase in PHASES:
        steps = own[phase] if own[phase] is not None or base is None else base.phases[phase]
        if steps is None or not list(steps.places()):
            raise FormatError(
                f"{place}: {phase}: expected steps, found none", hint='Write them, or name a path as "base".'
            )
        phases[phase] = steps
    kernels = {**({} if base is None else base.kernels), **file.kernels}
    fused = file.decode_fused
    if fused is None and base is not None and file.decode is None:
        fused = base.fused
    path = KernelPath(file.name, file.families, file.source, kernels, phases, fused)
    check_path(path, place)
    if fused is not None:
        check_steps(replace(path, phases={**phases, "decode": fused}), place, {"decode": "decode_fused"})
    return path


@cache
def _bundled(name: str) -> KernelPath:
    text = (files("inferometer.engines.webgpu.plan") / "kernel_paths" / f"{name}.toml").read_text("utf-8")
    return parse_path(text, f"{name}.toml")


def _parse_file(text: str, place: str) -> _PathFile:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{place}: expected TOML, found: {error}") from error
    if not parsed:
        raise FormatError(f"{place}: expected a kernel path, found nothing")
    try:
        return msgspec.convert(parsed, _PathFile, strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        inside = where.rstrip("`").lstrip(".")
        raise FormatError(f"{place}: {f'{inside}: ' if inside else ''}{what[0].lower()}{what[1:]}") from error


def _find_base(name: str, place: str) -> KernelPath:
    """Only bundled paths are bases, so that files can't be each other's."""
    if name not in path_names():
        raise FormatError(f'{place}: base: unknown kernel path "{name}"', hint=f"Known: {', '.join(path_names())}")
    return _bundled(name)
