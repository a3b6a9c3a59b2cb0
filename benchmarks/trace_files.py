"""The traces to measure on: made once by the project's generators, kept in a cache folder with the truth about each.

The generators are deterministic, so a file is made again only when the generator's code or its arguments changed.
"""

from __future__ import annotations

import ctypes
import gzip
import hashlib
import json
import mmap
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
_KINETO: Final = ROOT / "tools" / "make_kineto.py"
_NSYS: Final = ROOT / "tools" / "make_nsys.py"
_LOG: Final = ROOT / "tools" / "make_webgpu_log.py"
_SQL_TRUTH: Final = ROOT / "benchmarks" / "sql_truth.py"
_KINETO_TRUTH: Final = ROOT / "benchmarks" / "kineto_truth.py"
_LOG_TRUTH: Final = ROOT / "benchmarks" / "log_truth.py"
_NAMES: Final = ROOT / "benchmarks" / "name_lists.py"
NAME_LABELS: Final = ROOT / "tests" / "names" / "data"
_RANK: Final = b'"rank": 0, "world_size": 1,'  # in a trace's header
_GZIP_LEVEL: Final = 9  # what torch.profiler's gzip.open() uses
_CATEGORIES: Final = {  # of Kineto's events, by the table whose rows they become
    "launches": ("kernel", "gpu_memcpy", "gpu_memset"),
    "calls": ("cuda_runtime", "cuda_driver"),
    "ops": ("cpu_op",),
    "frames": ("python_function",),
    "spans": ("user_annotation", "gpu_user_annotation", "Trace", "i"),
}


@dataclass(frozen=True, slots=True)
class Truth:
    """What a generated file holds.

    `launches` and `kernel_ns` are of kernels alone; `events` all events of the file. `rows` has the rows of each table
    that the file fills. `tables` has what is known of the rows of answers: `tables["kernels"][name]["total_ns"]`; of
    call sites `tables["ops"][op][kernel]["total_ns"]`.
    """

    launches: int
    kernel_ns: int
    events: int
    rows: Mapping[str, int]
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace on disk, what it was made with, and what it holds."""

    path: Path
    made_with: str
    truth: Truth

    @property
    def bytes(self) -> int:
        """Size on disk."""
        return size_of(self.path)


def make_trace_file(steps: int, cache: Path, kind: str = "eager", options: str = "") -> TraceFile:
    """A Kineto trace of that many steps, with stacks and shapes: eager, about 2.3 MB per step; of a CUDA graph, 0.7 MB.

    `kind` names the file; `options` are the generator's.
    """
    path = cache / f"{kind}-{steps}.json"
    truth_path = path.with_suffix(".truth.json")
    options = f"--steps {steps} {options}".rstrip()

    def make(partial: Path) -> None:
        run_python(_KINETO, *options.split(), "--out", partial, "--truth", truth_path, "--force")

    make_once(path, make, f"{options} {_GZIP_LEVEL}", _KINETO, *sorted(_KINETO.with_name("kineto_maker").glob("*.*")))
    return TraceFile(path, f"{_KINETO.name} {options}", read_truth(truth_path))


def know_more(file: TraceFile, *tables: str) -> TraceFile:
    """The same Kineto trace with what plain SQL says of it, too, in `tables`."""
    path = file.path.with_suffix(".known.json")

    def make(partial: Path) -> None:
        partial.write_bytes(run_module("benchmarks.kineto_truth", file.path, *tables))

    key = " ".join((_key_path(file.path).read_text("utf-8"), *tables))
    make_once(path, make, key, _KINETO_TRUTH, _SQL_TRUTH)
    known = json.loads(path.read_text("utf-8"))["tables"]
    return replace(file, truth=replace(file.truth, tables={**file.truth.tables, **known}))


def make_gzip(source: TraceFile) -> TraceFile:
    """The same trace as `.json.gz`."""
    path = source.path.with_suffix(".json.gz")

    def make(partial: Path) -> None:
        with source.path.open("rb") as plain, gzip.open(partial, "wb", compresslevel=_GZIP_LEVEL) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)

    make_once(path, make, _key_path(source.path).read_text("utf-8"))
    return TraceFile(path, source.made_with, source.truth)


def make_ranks(steps: int, ranks: int, cache: Path) -> TraceFile:
    """A folder of so many ranks, each a trace of that many steps: the same events, under the rank's own number."""
    one = make_trace_file(steps, cache)
    folder = cache / f"ranks-{ranks}-{steps}"

    def make(partial: Path) -> None:
        partial.mkdir()
        before, after = one.path.read_bytes().split(_RANK)
        for rank in range(ranks):
            of_rank = _RANK.replace(b": 0,", f": {rank},".encode()).replace(b": 1,", f": {ranks},".encode())
            (partial / f"rank{rank}.json").write_bytes(before + of_rank + after)

    make_once(folder, make, f"{ranks} {_key_path(one.path).read_text('utf-8')}")
    kernels = {
        name: {what: ranks * number for what, number in known.items()}
        for name, known in one.truth.tables["kernels"].items()
    }
    truth = one.truth
    rows = {table: ranks * number for table, number in truth.rows.items()}
    known = Truth(
        ranks * truth.launches,
        ranks * truth.kernel_ns,
        ranks * truth.events,
        rows,
        {**truth.tables, "kernels": kernels},
    )
    return TraceFile(folder, f"{ranks} times {one.made_with}", known)


def make_export(kernels: int, cache: Path, known: Sequence[str], options: str = "") -> TraceFile:
    """An Nsight Systems `.sqlite` export of eager decoding: about 110 MB a million kernels.

    Its truth is what plain SQL says of it, with the tables of answers in `known`.
    """
    options = f"--kernels {kernels} {options}".rstrip()
    path = cache / f"nsys-{kernels}.sqlite"
    truth_path = path.with_suffix(".truth.json")

    def make(partial: Path) -> None:
        run_python(_NSYS, *options.split(), "--out", partial, "--force")
        truth_path.write_bytes(run_python(_SQL_TRUTH, partial, *known))

    names = _NSYS.with_name("kineto_maker") / "kernels.json"
    make_once(path, make, " ".join((options, *known)), _NSYS, names, _SQL_TRUTH)
    return TraceFile(path, f"{_NSYS.name} {options}", Truth(**json.loads(truth_path.read_text("utf-8"))))


def make_log(batches: int, cache: Path, kind: str = "log", options: str = "") -> TraceFile:
    """The log of a WebGPU engine: about 10 kB a decode batch. Its truth is read by a parser of its own."""
    options = f"--batches {batches} {options}".rstrip()
    path = cache / f"{kind}-{batches}.log"
    truth_path = path.with_suffix(".truth.json")

    def make(partial: Path) -> None:
        run_python(_LOG, *options.split(), "--out", partial, "--force")
        truth_path.write_bytes(run_module("benchmarks.log_truth", partial))

    make_once(path, make, options, _LOG, _LOG_TRUTH)
    return TraceFile(path, f"{_LOG.name} {options}", Truth(**json.loads(truth_path.read_text("utf-8"))))


def make_names(number: int, cache: Path) -> TraceFile:
    """So many kernel names, one per line, all different; their labels are the truth."""
    path = cache / f"names-{number}.txt"
    truth_path = path.with_suffix(".truth.json")

    def make(partial: Path) -> None:
        truth_path.write_bytes(run_module("benchmarks.name_lists", str(number), partial))

    make_once(path, make, str(number), _NAMES, *sorted(NAME_LABELS.glob("*.json")))
    return TraceFile(path, f"benchmarks/name_lists.py {number}", Truth(**json.loads(truth_path.read_text("utf-8"))))


def make_once(path: Path, make: Callable[[Path], None], what: str, *code: Path) -> None:
    """Calls `make` unless `path` was made before, from the same `what` and by the same `code`."""
    digest = hashlib.sha256(what.encode())
    for part in code:
        digest.update(part.read_bytes())
    if path.exists() and _key_path(path).exists() and _key_path(path).read_text("utf-8") == digest.hexdigest():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"making {path.name}", file=sys.stderr)
    partial = path.with_name(path.name + ".partial")
    make(partial)
    partial.replace(path)
    _key_path(path).write_text(digest.hexdigest(), "utf-8")


def run_python(script: Path, *arguments: str | Path) -> bytes:
    """What the script writes to stdout. A process of its own, so that the harness stays small."""
    return subprocess.run([sys.executable, script, *arguments], check=True, stdout=subprocess.PIPE).stdout


def run_module(name: str, *arguments: str | Path) -> bytes:
    """The same of a module of this repository."""
    argv = [sys.executable, "-m", name, *arguments]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout


def read_truth(path: Path) -> Truth:
    """The Kineto generator's own account, summed by kernel, and by the innermost op around its call and kernel."""
    said = json.loads(path.read_text("utf-8"))
    kernels: dict[str, Counter[str]] = defaultdict(Counter)
    ops: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for site in said["call_sites"]:
        kernels[site["kernel"]].update(count=site["launches"], total_ns=site["kernel_ns"])
        if site["op"] is not None:
            ops[site["op"]][site["kernel"]].update(count=site["launches"], total_ns=site["kernel_ns"])
    events = said["events"]
    rows = {table: sum(events.get(name, 0) for name in names) for table, names in _CATEGORIES.items()}
    steps: dict[str, Counter[str]] = defaultdict(Counter)
    for step in said["steps"]:
        steps[step["phase"]].update(steps=1, wall_ns=step["end_ns"] - step["start_ns"])
    tables: dict[str, Mapping[str, Mapping[str, Any]]] = {"kernels": kernels, "steps": steps, "ops": ops}
    return Truth(said["kernels"], said["kernel_ns"], sum(events.values()), rows, tables)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size


def warm(path: Path) -> None:
    """Bring a file, or all files of a folder, into the page cache by reading it once."""
    chunk = bytearray(1 << 20)
    for file in _files(path):
        with file.open("rb", buffering=0) as raw:
            while raw.readinto(chunk):
                pass


def chill(path: Path) -> None:
    """Take a file, or all files of a folder, out of the page cache: what reads it next has it from the disk.

    Raises:
        RuntimeError: Some of it is still there, as where the file system is memory.
    """
    for file in _files(path):
        with file.open("rb", buffering=0) as raw:
            os.fsync(raw.fileno())
            os.posix_fadvise(raw.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if share := cached_share(file):
            raise RuntimeError(f"{file}: {share:.0%} stay in memory; put the benchmarks' cache (--cache) on a disk")


def cached_share(file: Path) -> float:
    """How much of a file the page cache holds, without reading any of it. Source: mincore(2)."""
    with (
        file.open("rb") as raw,
        mmap.mmap(raw.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as view,
    ):
        pages = -(-len(view) // mmap.PAGESIZE)
        held, first = (ctypes.c_ubyte * pages)(), ctypes.c_char.from_buffer(view)
        failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.byref(first), ctypes.c_size_t(len(view)), held)
        del first  # the view can't be closed before
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(file))
        return sum(each & 1 for each in held) / pages


def _files(path: Path) -> Iterator[Path]:
    return (file for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file())


def _key_path(path: Path) -> Path:
    return path.with_name(path.name + ".key")
