"""Which Python frames are the user's own: not PyTorch's, not Triton's, not the interpreter's.

A frame is `file(line): function`; PyTorch takes the search path off, so a file reads `torch/nn/modules/module.py`
where the package is installed, and has its whole path where it runs from its sources. A file of the standard library
has its bare name (`threading.py`): it is known by the name, save those that users give to scripts of their own.
"""

import re
import sys
from functools import lru_cache

import msgspec

_FILE = re.compile(r"(?P<file>.*?\.py|<ipython-input-[^>]*>)(?:\((?P<line>\d+)\): |:\d+ )(?P<function>.*)", re.DOTALL)
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/")
_STDLIB_PATH = re.compile(r"(?:.*/)?lib/python3(?:\.\d+)?/(?!(?:site|dist)-packages/)")
_TOOLS = (  # packages that carry calls on; at the start of a file's path
    *("torch/", "triton/", "functorch/", "numpy/", "torch_tensorrt/", "nvtx/", "pybind11/", "_pytest/", "pluggy/"),
    *("IPython/", "ipykernel/", "tornado/", "traitlets/", "uvloop/", "ray/", "decorator.py", "wrapt/", "tqdm/"),
)
_SOURCES = re.compile(  # of a source build, somewhere in the path
    r"/torch/(?:_\w+|nn|utils|autograd|fx|cuda|cpu|distributed|jit|profiler|overrides|functional|library|hub|amp|optim)"
    r"(?:/|\.py)|/triton/(?:runtime|compiler|language|backends|testing|knobs)(?:/|\.py)"
)
_MADE = re.compile(r"<|.*(?:^|/)torchinductor_|.*/torch_compile_debug/|.*/\.triton/cache/")  # by a compiler
_SCRIPTS = {"test", "profile", "code", "this", "cmd", "copy", "bench", "main", "trace", "timeit", "statistics", "token"}
_STDLIB = frozenset(sys.stdlib_module_names) - _SCRIPTS


class UserCode(msgspec.Struct, frozen=True):
    """What counts as the user's code.

    Args:
        my: Only files whose path has one of these at its start or behind a slash; all that are no tool's by default.
        framework: More such prefixes that are not the user's.
    """

    my: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()

    def is_own(self, frame: str) -> bool:
        """Whether this frame is in the user's code."""
        file = python_file(frame)
        if file is None:
            return False
        if self.my:
            return any(_has(file, prefix) for prefix in self.my)
        return not _is_tool(file) and not any(_has(file, prefix) for prefix in self.framework)


def python_file(frame: str) -> str | None:
    """The Python file of a frame, without the place of installed packages; None for a module's or a native frame."""
    match = _FILE.match(frame)
    if match is None:
        return None
    file = match["file"].replace("\\", "/")
    return _INSTALLED.sub("", file)


def _has(file: str, prefix: str) -> bool:
    prefix = prefix.replace("\\", "/")
    return file.startswith(prefix) or f"/{prefix.lstrip('/')}" in file


@lru_cache(maxsize=65_536)
def _is_tool(file: str) -> bool:
    if file.startswith("<ipython-input"):
        return False
    if _MADE.match(file) or file.startswith(_TOOLS) or _STDLIB_PATH.match(file):
        return True
    if file.startswith("/"):
        return _SOURCES.search(file) is not None
    return file.split("/", 1)[0].removesuffix(".py") in _STDLIB
