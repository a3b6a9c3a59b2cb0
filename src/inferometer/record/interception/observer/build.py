"""Builds the observer for the PyTorch and the Python at hand, once: it is kept in the user's folder of caches.

Headers of PyTorch's are compiled into it, so each version of PyTorch, Python, the compiler and our source has a library
of its own: `~/.cache/inferometer/observer/HASH/observer.so`. It appears there whole (an atomic rename); who
comes while another process builds it waits for that one.
"""

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from inferometer.caches import cache_folder
from inferometer.file_locks import locked
from inferometer.record.clock import monotonic_ns

_SOURCES = Path(__file__).parent
_NAME = "observer"
_BEGUN = "build-"
_PATIENCE_S = 900  # a compilation takes 20 to 60 s, on a machine that is busy many times that
_LONGEST = 200  # characters of a compiler's message
_OPTIONS = ("-O2", "-DNDEBUG", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden", "-w")


class BuildError(Exception):
    """The observer can't be built or used here; the message says why, in one line."""


@dataclass(frozen=True)
class Found:
    """`module`: the observer; None where there is none, then `why`."""

    module: Any = None
    why: str | None = None


@lru_cache(maxsize=1)
def find_observer() -> Found:
    """The observer for this process's PyTorch, built if need be."""
    try:
        return Found(load(build()))
    except BuildError as error:
        return Found(why=str(error))


def build() -> Path:
    """The library, which is compiled now if it wasn't before; that is said on stderr, since it takes a while.

    Raises:
        BuildError: There is no compiler, it fails, or nothing can be written.
    """
    compiler = _find_compiler()
    options = _options()
    try:
        folder = cache_folder() / _NAME / _hash(compiler, options)
        library = folder / f"{_NAME}.so"
        if library.is_file():
            return library
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(folder / "lock"):
            for left in folder.glob(f"{_BEGUN}*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            if not library.is_file():
                _say(f"building the observer of PyTorch's ops, once for this version: about 40 s ({library})")
                _compile(compiler, options, library)
    except OSError as error:
        raise BuildError(f"{error.filename}: {error.strerror}") from error
    return library


def load(library: Path) -> Any:
    """The module in a library.

    Raises:
        BuildError: It can't be loaded, its clock isn't the recording's, or PyTorch doesn't report ops to it.
    """
    spec = spec_from_file_location(_NAME, library, loader=ExtensionFileLoader(_NAME, str(library)))
    if spec is None or spec.loader is None:
        raise BuildError(f"{library}: Python can't load it")
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise BuildError(_first_line(str(error))) from error
    _try(module)
    return module


def _say(line: str) -> None:
    sys.stderr.write(f"inferometer: {line}\n")
    sys.stderr.flush()


def _try(module: Any) -> None:
    """One op must come out as it went in: some builds of PyTorch report none."""
    import torch

    before, between, after = monotonic_ns(), module.now(), monotonic_ns()
    if not before <= between <= after:
        raise BuildError("its clock isn't the one of Python's time.perf_counter_ns")
    module.start(_is_no_users, False, 16)
    torch.empty(0)
    module.stop()
    seen = [call[1] for _, _, rows in module.take() for call in rows[4]]
    if "aten::empty" not in seen:
        raise BuildError("this PyTorch reports no ops to observers")


def _is_no_users(*_: Any) -> None:
    """In place of what distinguishes the user's code from others'."""


def _find_compiler() -> str:
    if platform.python_implementation() != "CPython" or os.name != "posix":
        raise BuildError("it needs CPython on Linux or macOS")
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise BuildError("there is no C++ compiler (c++, g++, clang++, or the one that CXX names)")


def _options() -> list[str]:
    """As PyTorch's own builder of extensions has them; nothing of CUDA, which the observer doesn't need."""
    import torch
    from torch.utils import cpp_extension

    includes = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"]]
    libraries = cpp_extension.library_paths()
    linked = [f"-L{path}" for path in libraries] + ["-lc10", "-ltorch_cpu"]
    if sys.platform == "darwin":
        linked += ["-undefined", "dynamic_lookup"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    return [*_OPTIONS, abi, *(f"-I{path}" for path in includes), *linked]


def _hash(compiler: str, options: Sequence[str]) -> str:
    import torch

    version = _run([compiler, "--version"], timeout_s=30)
    known = [
        torch.__version__,
        str(torch.version.git_version),
        sys.version,
        sysconfig.get_platform(),
        version,
        *options,
    ]
    digest = hashlib.sha256("\0".join(known).encode())
    for source in sorted(_SOURCES.glob("*.[ch]*")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _compile(compiler: str, options: Sequence[str], library: Path) -> None:
    """Into a folder next to it, then renamed. The options that link come after the source, as linkers want it."""
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=_BEGUN) as folder:
        made = Path(folder) / library.name
        _run([compiler, str(_SOURCES / f"{_NAME}.cpp"), *options, "-o", str(made)], timeout_s=_PATIENCE_S)
        made.replace(library)


def _run(words: Sequence[str], timeout_s: float) -> str:
    """What a command printed. It may not see the recording's environment: a Python in it would record itself."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        process_group=0,
    ) as process:
        try:
            printed, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # a compiler is several processes
            if isinstance(error, subprocess.TimeoutExpired):
                raise BuildError(f"{words[0]} took more than {timeout_s:.0f} s") from error
            raise
    if process.returncode:
        raise BuildError(f"{Path(words[0]).name}: {_first_error(errors, process.returncode)}")
    return printed


def _first_error(text: str, code: int) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line] or lines
    return _first_line(errors[0] if errors else f"exit code {code}")


def _first_line(text: str) -> str:
    return text.split("\n", maxsplit=1)[0][:_LONGEST]
