"""Values of a GGUF file's metadata, asked for one by one: what is missing or of another kind is named with its key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from inferometer.errors import FormatError


class Metadata:
    """Metadata of one file; every method raises a FormatError that names the key.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, values: Mapping[str, Any]) -> None:
        self.path, self._values = path, values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        """A text that isn't empty."""
        found = self._values.get(key, default)
        if not isinstance(found, str) or not found:
            self.refuse(key, "text", found)
        return found

    def optional_text(self, key: str) -> str | None:
        """A text; None where there is none."""
        return self.text(key) if self._values.get(key) else None

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number from 0."""
        found = self._values.get(key, default)
        if type(found) is not int or found < 0:
            self.refuse(key, "a whole number from 0", found)
        return found

    def optional_integer(self, key: str) -> int | None:
        """A whole number from 0; None where there is none."""
        return self.integer(key) if key in self._values else None

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number above 0: the shortest decimal of its float32, as configurations have it (1e-05)."""
        found = self._values.get(key, default)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found < np.finfo(np.float32).max:
            self.refuse(key, "a number above 0", found)
        return float(str(np.float32(found)))

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        found = self._values.get(key, default)
        if type(found) is not bool:
            self.refuse(key, "true or false", found)
        return found

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        found = self._values.get(key)
        if not isinstance(found, list):
            self.refuse(key, "a list of texts", found)
        return found

    def numbers(self, key: str, count: int) -> Any:
        """An array of `count` numbers."""
        found = self._values.get(key)
        if not isinstance(found, np.ndarray) or found.shape != (count,):
            self.refuse(key, f"{count:,} numbers", found)
        return found

    def refuse(self, key: str, wanted: str, found: object) -> NoReturn:
        """Raise what a wrong value raises; found None: there is nothing."""
        raise FormatError(f"{self.path}: {key}: expected {wanted}, found {_shown(found)}")


def _shown(found: object) -> str:
    if found is None:
        return "nothing"
    if isinstance(found, np.ndarray):
        return f"{found.size:,} numbers"
    if isinstance(found, list):
        return f"{len(found):,} texts"
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:57]}..."
