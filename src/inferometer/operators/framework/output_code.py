"""A file or folder of what Inductor wrote, and the kernel that a call of a trace names in it."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Final

from inferometer.errors import InputError
from inferometer.operators.framework.inductor_source import KernelSource, read_source
from inferometer.side_files import read_side_file

_MOST_FILES: Final = 20_000
_MOST_BYTES: Final = 8 << 20
_MARK: Final = b"triton_meta"


class OutputCode:
    """Sources of kernels, by the hash that names their file; by their own name where a trace has no file."""

    def __init__(self, kernels: Iterable[KernelSource]) -> None:
        known: dict[tuple[str | None, str], KernelSource] = {}
        for each in kernels:
            key = (each.stem, each.name)
            if key not in known or known[key].fused is None:  # a source with its fused ops says more
                known[key] = each
        self._known = known
        names = Counter(name for _, name in known)
        self._by_name = {name: found for (_, name), found in known.items() if names[name] == 1}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, name: str, kernel_file: str | None) -> KernelSource | None:
        """The kernel of this name whose file a trace names; without a file, the only one of this name."""
        if kernel_file is None:
            return self._by_name.get(name)
        return self._known.get((PurePath(kernel_file).stem, name))


def read_output_code(path: str) -> OutputCode:
    """The kernels of a file, or of all files below a folder, as Inductor's caches and debug folders are.

    Raises:
        InputError: It isn't there, has no kernel, or too many files.
    """
    kernels = [each for file in _files(Path(path)) for each in _kernels_of(file)]
    if not kernels:
        raise InputError(
            f"{path}: expected Triton kernels that Inductor wrote, found none",
            hint="Name output_code.py, or the folder: TORCHINDUCTOR_CACHE_DIR, torch_compile_debug.",
        )
    return OutputCode(kernels)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, _, names in os.walk(path):
        found += [Path(folder, name) for name in names if name.endswith(".py")]
        if len(found) > _MOST_FILES:
            raise InputError(
                f"{path}: expected at most {_MOST_FILES:,} Python files, found more", hint="Name a folder below."
            )
    return sorted(found)


def _kernels_of(path: Path) -> list[KernelSource]:
    data = read_side_file(path, most=_MOST_BYTES)
    return read_source(data.decode("utf-8", "replace"), path.stem) if _MARK in data else []
