"""One process for each architecture, with a cache of its own and a time limit, and what is made of what it says.

The candidate's code runs there with the user's rights: this keeps mistakes apart, it is no prison for malice.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

import inferometer
from inferometer.bench.builds.events import (
    Began,
    Built,
    Ended,
    Event,
    Job,
    Lacking,
    Launched,
    Multiplied,
    Ready,
    Refused,
    Stopped,
    read_events,
)
from inferometer.bench.builds.record import ArchitectureBuild, FailedKernel, KernelBuild
from inferometer.bench.candidates import Candidate
from inferometer.bench.supervised import Supervised, last_lines
from inferometer.errors import InferometerError, Unavailable, clean

_SWITCHES = ("TRITON_", "AMDGCN_", "PTXAS_", "DISABLE_PTXAS_", "NVPTX_", "MLIR_", "LLVM_", "USE_IR_LOC", "CUTE_DSL_")
"""Beginnings of the variables that Triton and its compilers obey."""

_KEPT = ("_PATH", "_FP_FUSION")
"""Endings of those that stay: where tools are, and what the user compiles with. Others (the interpreter,
dumps, overrides, another architecture) would change what is built."""

_LAST_LINES = 5


def build_on(
    architecture: str,
    candidate: Candidate,
    operator: str,
    cases: Sequence[Mapping[str, Any]],
    *,
    time_limit_s: float,
) -> ArchitectureBuild:
    """All kernels of a candidate, compiled in a process that is stopped after `time_limit_s`.

    Raises:
        Unavailable: Triton's tools for the architecture aren't here.
    """
    with tempfile.TemporaryDirectory(prefix="inferometer-builds-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        events, messages = folder / "events", folder / "messages"
        request = candidate.as_request()
        backend = candidate.name if candidate.file is None else None
        job = Job(request["file"] or "", backend, operator, architecture, cases, str(events), str(messages))
        ended = _run(job, folder, messages, time_limit_s)
        return _read(architecture, read_events(events), ended, messages)


def _run(job: Job, folder: Path, messages: Path, time_limit_s: float) -> str | None:
    """Why it didn't end by itself or well; None where it did."""
    file = folder / "job"
    file.write_bytes(msgspec.json.encode(job))
    (folder / "work").mkdir()
    command = [sys.executable, "-P", "-m", "inferometer.bench.builds.worker", str(file)]
    with messages.open("wb") as output:
        process = Supervised(command, cwd=folder / "work", env=_environment(folder), output=output)
    try:
        status = process.wait(time_limit_s)
    except subprocess.TimeoutExpired:
        return f"stopped after {time_limit_s:g} s"
    finally:
        process.end()
    if status < 0:
        return f"ended by signal {_signal_name(-status)}"
    return f"ended with status {status}" if status else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _environment(folder: Path) -> dict[str, str]:
    """The user's, without GPUs, without Triton's switches, with a cache of its own and ptxas' log."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SWITCHES) or name.endswith(_KEPT)}
    package = Path(inferometer.__file__).parents[1]
    return kept | {
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TRITON_DUMP_PTXAS_LOG": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HIP_VISIBLE_DEVICES": "",
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(package), kept.get("PYTHONPATH")))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _read(architecture: str, events: Iterable[Event], ended: str | None, messages: Path) -> ArchitectureBuild:
    said = _Said(architecture)
    for event in events:
        said.take(event)
    if not said.is_ready and ended is not None and not ended.startswith("stopped"):
        raise InferometerError(
            f"{architecture}: the process that compiles didn't start: {last_lines(messages, _LAST_LINES)}"
        )
    if not said.is_done and said.error is None:
        said.error = _why_early(ended, said.going_on, messages)
    versions = (_version("triton", "pytorch-triton", "pytorch-triton-rocm"), _version("torch"))
    kernels, torch_products = tuple(said.builds.values()), tuple(sorted(said.products))
    return ArchitectureBuild(architecture, kernels, tuple(said.failed), said.error, *versions, torch_products)


@dataclass
class _Said:
    """What the process that compiles said, event by event; `going_on`: the kernel that it began last."""

    architecture: str
    builds: dict[str, KernelBuild] = field(default_factory=dict)
    failed: list[FailedKernel] = field(default_factory=list)
    products: set[str] = field(default_factory=set)
    error: str | None = None
    going_on: str = ""
    is_ready: bool = False
    is_done: bool = False

    def take(self, event: Event) -> None:
        """Raises `Unavailable` where the process lacks a tool."""
        match event:
            case Ready():
                self.is_ready = True
            case Began(kernel):
                self.going_on = kernel
            case Built(key, build):
                self.builds[key] = build
            case Launched(key, case) if key in self.builds:  # not of a kernel whose line was cut
                self.builds[key] = replace(self.builds[key], cases=(*self.builds[key].cases, case))
            case Refused(kernel, configuration, case, tuned, message):
                self.failed.append(FailedKernel(kernel, self.architecture, configuration, case, tuned, message))
            case Multiplied(names):
                self.products |= set(names)
            case Stopped(message):
                self.error = message
            case Lacking(message, hint):
                raise Unavailable(f"{self.architecture}: {message}", hint=hint)
            case Ended():
                self.is_done = True


def _version(*names: str) -> str | None:
    """Of the first distribution of these that is installed; nightly builds of Triton have names of their own."""
    for name in names:
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def _why_early(ended: str | None, going_on: str, messages: Path) -> str:
    where = f", while or after it compiled {clean(going_on)}" if going_on else ""
    return "\n".join(filter(None, (f"{ended or 'ended early'}{where}", last_lines(messages, _LAST_LINES))))
