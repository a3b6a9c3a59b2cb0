"""Has the library in C++ read damaged text under the compiler's checks of memory and of undefined behaviour.

    python -m tests.fuzz.native                 for a minute
    python -m tests.fuzz.native --seconds 600 --seed 7
    python -m tests.fuzz.native --texts 5000    at most so many: the same ones each time, however quick the machine is

Exits 1 when a check found something, which it prints; 0 also where there is no compiler that has such checks.
"""

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from inferometer.formats.native.build import BuildError, build

OPTIONS: Final = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-D_GLIBCXX_ASSERTIONS")
SECONDS: Final = 60.0


def main() -> int:
    """The exit code."""
    asked = _arguments()
    runtime = find_runtime()
    if not runtime:
        print("there is no compiler here whose checks of memory can be used: nothing was tried")
        return 0
    with TemporaryDirectory(prefix="fuzz-native-") as folder:
        try:
            library = build(OPTIONS, Path(folder) / "checked.so")
        except BuildError as error:
            print(f"the library can't be built with checks: {error}")
            return 1
        return run(library, runtime, asked.seed, asked.seconds, asked.texts)


def find_runtime() -> list[Path]:
    """What a process must load before Python: the checks of memory, and C++'s exceptions, which they look at."""
    found = [_find("libasan.so"), _find("libstdc++.so.6")]
    return [path for path in found if path] if sys.platform == "linux" and all(found) else []


def run(library: Path, runtime: Sequence[Path], seed: int, seconds: float = math.inf, texts: int = sys.maxsize) -> int:
    """Damage and read in a process of its own; its exit code, 1 for any that isn't 0."""
    command = [sys.executable, "-m", "tests.fuzz.native.reading", *map(str, (library, seed, seconds, texts))]
    checks = {"LD_PRELOAD": ":".join(map(str, runtime)), "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
    done = subprocess.run(command, env=os.environ | checks | {"PYTHONMALLOC": "malloc"}, check=False)
    return int(done.returncode != 0)


def _find(name: str) -> Path | None:
    """A library of the compiler's."""
    compiler = os.environ.get("CXX", "c++")
    try:
        told = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = Path(told.stdout.strip())
    return found.resolve() if found.is_absolute() and found.is_file() else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.native")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long (%(default)s)")
    parser.add_argument("--texts", type=int, default=sys.maxsize, help="how many at most")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
