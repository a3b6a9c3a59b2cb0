"""A pretended machine: files, GPUs, a clock that moves when reported."""

from collections.abc import Mapping
from pathlib import Path

from inferometer.errors import Unavailable
from inferometer.hardware.measure.nvml import Nvml
from inferometer.record.counters.family import Family
from inferometer.record.counters.files import Files
from inferometer.record.counters.metric import SystemRoots


class Clockwork:
    """Nanoseconds, moved by hand."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000

    def __call__(self) -> int:
        return self.now_ns

    def pass_s(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def write(root: Path, files: Mapping[str, str]) -> None:
    """Files under `root`; one that is there is written anew in its place, as the kernel's are."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def pretend(root: Path, *, cpu_ns: Mapping[int, int] | None = None, process: int = 7) -> tuple[SystemRoots, list[str]]:
    """A place under `root` whose only process is 7, and what it lacks. `cpu_ns` is each process's time, read anew."""
    files, lacking = Files(root), list[str]()
    family = Family((process,), files, cpu_ns=(cpu_ns or {}).get)
    return SystemRoots(files, family, lacking.append, gpus=no_gpus, environ={}), lacking


def no_gpus() -> list[Nvml]:
    raise Unavailable("there is no GPU")


def stat_of(
    *, parent: int = 1, minor: int = 0, major: int = 0, threads: int = 1, name: str = "python", state: str = "S"
) -> str:
    """/proc/PID/stat, with a name that may hold anything."""
    fields = [state, parent, 7, 7, 0, -1, 0, minor, 0, major, 0, 5, 6, 0, 0, 20, 0, threads, 0, 100]
    return f"7 ({name}) {' '.join(map(str, fields))}\n"
