"""What a speed claim must say of its place: the processor, the cores used, the memory, and the versions."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from benchmarks.trace_files import ROOT

_ASK: Final = """
import json, platform, sqlite3, sys
from importlib.metadata import version
known = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
print(json.dumps({name: known.get(name) or version(name) for name in ("python", *sys.argv[1:])}))
"""


def use_cores(number: int) -> int:
    """Bind this process, and all that it starts, to so many cores where the system can; returns how many it may use."""
    if not hasattr(os, "sched_setaffinity"):
        return os.cpu_count() or 1
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])
    return len(os.sched_getaffinity(0))


def describe_machine(cores_used: int) -> dict[str, object]:
    """Model, cores, memory, system, and how busy it was before."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_used": cores_used,
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": f"{platform.system()} {platform.release()}",
        "load_average_1min": round(os.getloadavg()[0], 2),
    }


def our_versions(libraries: Sequence[str]) -> dict[str, str | None]:
    """Ours, with the commit; `-dirty`: with changes that aren't committed; None outside a repository."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions |= {name: version(name) for name in ("inferometer", *libraries)}
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return versions | {"commit": None}
    return versions | {"commit": said.stdout.strip()}


def fingerprint_source() -> str:
    """Changes with any file of the package: a run during which it changed measured no one version."""
    code = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()


def peer_versions(python: Path, names: Sequence[str]) -> dict[str, str]:
    """The peers', asked of their own interpreter; `sqlite` is the library in it."""
    said = subprocess.run([python, "-c", _ASK, *names], capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(said.stdout)
    return versions


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
