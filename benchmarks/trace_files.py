"""The traces to measure on: made once by the project's generator, kept in a cache folder with the truth about each.

The generator is deterministic, so a file is made again only when the generator's code or its arguments changed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_GENERATOR: Final = ROOT / "tools" / "make_kineto.py"
_GZIP_LEVEL: Final = 9  # what torch.profiler's gzip.open() uses


@dataclass(frozen=True, slots=True)
class Truth:
    """What a generated file holds. `events` counts by category; `kernels` maps a name to its launches and their sum."""

    launches: int
    kernel_ns: int
    kernels: Mapping[str, tuple[int, int]]
    events: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace on disk and what it holds."""

    path: Path
    steps: int
    truth: Truth

    @property
    def bytes(self) -> int:
        """Size on disk."""
        return self.path.stat().st_size


def make_trace_file(steps: int, cache: Path) -> TraceFile:
    """An eager Kineto trace of that many steps, with stacks and shapes: about 2.3 MB a step."""
    path = cache / f"eager-{steps}.json"
    truth_path = cache / f"eager-{steps}.truth.json"
    if not _is_made(path, key := _key(steps)):
        cache.mkdir(parents=True, exist_ok=True)
        print(f"making {path.name}", file=sys.stderr)
        partial = path.with_suffix(".partial")
        options = ["--steps", str(steps), "--out", str(partial), "--truth", str(truth_path), "--force"]
        subprocess.run([sys.executable, _GENERATOR, *options], check=True, stderr=subprocess.DEVNULL)
        partial.replace(path)
        _key_path(path).write_text(key, "utf-8")
    return TraceFile(path, steps, read_truth(truth_path))


def make_gzip(source: TraceFile) -> TraceFile:
    """The same trace as `.json.gz`."""
    path = source.path.with_suffix(".json.gz")
    if not _is_made(path, key := _key(source.steps)):
        print(f"making {path.name}", file=sys.stderr)
        partial = path.with_suffix(".partial")
        with source.path.open("rb") as plain, gzip.open(partial, "wb", compresslevel=_GZIP_LEVEL) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
        partial.replace(path)
        _key_path(path).write_text(key, "utf-8")
    return TraceFile(path, source.steps, source.truth)


def read_truth(path: Path) -> Truth:
    """The generator's own account, summed by kernel."""
    said = json.loads(path.read_text("utf-8"))
    launches: Counter[str] = Counter()
    total_ns: Counter[str] = Counter()
    for site in said["call_sites"]:
        launches[site["kernel"]] += site["launches"]
        total_ns[site["kernel"]] += site["kernel_ns"]
    kernels = {name: (number, total_ns[name]) for name, number in launches.items()}
    return Truth(said["kernels"], said["kernel_ns"], kernels, said["events"])


def warm(path: Path) -> None:
    """Bring a file, or all files of a folder, into the page cache by reading it once."""
    chunk = bytearray(1 << 20)
    for file in path.rglob("*") if path.is_dir() else (path,):
        if file.is_file():
            with file.open("rb", buffering=0) as raw:
                while raw.readinto(chunk):
                    pass


def _key(steps: int) -> str:
    code = hashlib.sha256(f"{steps} {_GZIP_LEVEL}".encode())
    for path in (_GENERATOR, *sorted((_GENERATOR.parent / "kineto_maker").glob("*.*"))):
        code.update(path.read_bytes())
    return code.hexdigest()


def _is_made(path: Path, key: str) -> bool:
    key_path = _key_path(path)
    return path.exists() and key_path.exists() and key_path.read_text("utf-8") == key


def _key_path(path: Path) -> Path:
    return path.with_name(path.name + ".key")
