"""Hashes of the evaluator's own files: code, shapes, tolerances. A candidate that changes one is found out by name.

Left out: what Python compiles of them (`__pycache__`), which is written anew whenever a file is newer.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_KINDS = frozenset({".py", ".json", ".toml", ".js", ".wgsl"})
_SHOWN = 3


@dataclass(frozen=True)
class Manifest:
    """Hashes of the files in the package's folder, by path."""

    hashes: Mapping[str, bytes]

    def changed(self) -> list[str]:
        """Files that are other ones now, are gone, or are new."""
        now = take_manifest().hashes
        return sorted(name for name in {*self.hashes, *now} if self.hashes.get(name) != now.get(name))

    def why_not(self) -> str | None:
        """Which were changed; None where none was."""
        changed = self.changed()
        if not changed:
            return None
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        return f"files of the evaluator changed while it ran: {', '.join(changed[:_SHOWN])}{more}"


def take_manifest() -> Manifest:
    """As the files are now."""
    root = Path(__file__).resolve().parents[1]
    found = {str(path.relative_to(root)): _hash(path) for path in root.rglob("*") if path.suffix in _KINDS}
    return Manifest(found)


def _hash(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""
