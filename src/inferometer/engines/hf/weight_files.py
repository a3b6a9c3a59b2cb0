"""The files of weights in a model's folder: which they are, what their headers say, whether that fits a model.

No data is read here, and neither torch nor the safetensors library is needed.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from inferometer.engines.safetensors_header import StoredTensor, read_header
from inferometer.errors import FormatError, InputError
from inferometer.side_files import read_side_file

INDEX = "model.safetensors.index.json"
WHOLE_FILE = "The file must be of one model, and whole: copy it again, or take another one of it."
ONE_MODEL = "config.json and the weights must be of one model, and whole; transformers 4.51 to 5 read them."
_RECOMPUTED = "rotary_emb.inv_freq"  # old checkpoints hold it; it follows from the configuration
_LARGEST_INDEX = 64 << 20  # bytes; that of DeepSeek V3 is 9 MB
_OTHERS = (".bin", ".pt", ".pth", ".gguf")


class _Index(msgspec.Struct, frozen=True):
    weight_map: dict[str, str]


def find_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of a folder's files, by name.

    Raises:
        InputError: No safetensors, or a file that the index names isn't there.
        FormatError: A file isn't what it should be: cut off, no JSON; an index names a tensor that its file lacks; two
            files have the same one.
    """
    found: dict[str, StoredTensor] = {}
    for path in find_weight_files(folder):
        for name, tensor in read_header(path).items():
            if name in found:
                raise FormatError(f"{path}: {name}: expected it in one file, found it in {found[name].path.name} too")
            found[name] = tensor
    if os.path.lexists(folder / INDEX):
        for name, file in _read_index(folder / INDEX).items():
            if name not in found or found[name].path.name != file:
                raise FormatError(f"{folder / INDEX}: says that {name} is in {file}, found it not there")
    return found


def find_weight_files(folder: Path) -> list[Path]:
    """The files of weights; every one is there.

    Raises:
        InputError: None, or one that the index names isn't there.
        FormatError: The index isn't one.
    """
    index = folder / INDEX
    if not os.path.lexists(index):
        found = sorted(folder.glob("*.safetensors"))
        if found:
            return found
        others = sorted(path.name for path in folder.iterdir() if path.suffix in _OTHERS)
        raise InputError(
            f"{folder}: expected weights as *.safetensors, found {', '.join(others) if others else 'none'}",
            hint="Save the model again with save_pretrained, which writes safetensors."
            if others
            else "Copy the model's files here; nothing is downloaded.",
        )
    names = sorted(set(_read_index(index).values()))
    outside = next((name for name in names if not name or Path(name).name != name), None)
    if outside is not None:
        raise FormatError(f'{index}: expected names of files next to it, found "{outside}"')
    there = {path.name for path in folder.iterdir()}
    lacking = [name for name in names if name not in there]
    if lacking:
        raise InputError(
            f"{index}: names {len(names)} files, {len(lacking)} of them aren't there: {', '.join(lacking[:3])}"
        )
    return [folder / name for name in names]


def _read_index(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(read_side_file(path, most=_LARGEST_INDEX), type=_Index).weight_map
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected a JSON object with weight_map: {error!r}") from error


def require_plain(folder: Path, *configs: Mapping[str, object]) -> None:
    """InputError where one of these configurations says that the weights are quantized."""
    if any(config.get("quantization_config") is not None for config in configs):
        raise InputError(
            f"{folder}: expected plain weights, found quantized ones", hint="Take the model's bfloat16 files."
        )


def require_fit(
    place: Path, *, missing: Collection[str], unexpected: Iterable[str], of_another_shape: Collection[str]
) -> None:
    """InputError that lists what doesn't fit the configuration; none where all does.

    Args:
        place: The model's folder, or the one file with all of it.
        missing: Names that the model has and the files lack.
        unexpected: Names that only the files have; those that follow from the configuration don't count.
        of_another_shape: Each with both shapes.
    """
    strange = [name for name in unexpected if not name.endswith(_RECOMPUTED)]
    problems = [
        f"{len(names)} {kind} ({', '.join(sorted(names)[:3])}{', …' if len(names) > 3 else ''})"
        for kind, names in (("missing", missing), ("unexpected", strange), ("of another shape", of_another_shape))
        if names
    ]
    if problems:
        is_file = place.is_file()
        described, hint = ("its metadata", WHOLE_FILE) if is_file else ("config.json", ONE_MODEL)
        raise InputError(
            f"{place}: expected the weights that {described} describes, found {'; '.join(problems)}", hint=hint
        )
