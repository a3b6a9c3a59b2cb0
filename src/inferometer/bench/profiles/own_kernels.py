"""Which kernels a candidate's file defines itself, and which names in a profile are theirs.

Found: functions under Triton's and Gluon's `jit` (also below `autotune` and `heuristics`, or handed to them), under
`cute.kernel` of the CuTe DSL, and `__global__` functions in text (CUDA or HIP source for load_inline, NVRTC, cupy).
A kernel that is imported isn't own, nor one that torch.compile generates. Left out: names that are put together while
it runs, Triton's `repr`, source in other files, Numba, TileLang. Two functions of one name, one of them a library's,
can't be distinguished unless one is in a namespace.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from inferometer.bench.process.candidate import MODULE
from inferometer.bench.profiles.global_functions import global_functions
from inferometer.names.decoding import read_parts
from inferometer.names.demangle import strip_suffixes

_TRITON = frozenset({"jit", "autotune", "heuristics"})
_CUTE = "cutlass.cute.kernel"
_CUTE_PREFIX = "kernel_cutlass_"  # of kernels of the CuTe DSL; a prefix of the user's own may come before it
_OBJECT = "_object_at_"  # in the name of a method: what Python prints for `self`, without its dots
_OLD_SUFFIX = re.compile(r"_(0[\dcde]*)")  # of Triton before 3.0: each argument's number, and what is known of it
_HOLE = "\0"  # what an f-string puts in
_MARK = "__global__"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def own_kernels(source: str) -> frozenset[str]:
    """Names of the kernels that this Python source defines, C++ ones with their namespaces; none where it's no Python.

    Those of the CuTe DSL are the beginnings of their mangled names.
    """
    try:
        with warnings.catch_warnings():  # of odd escapes in its texts
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    imported = dict(_imports(tree))
    return frozenset({*_decorated(tree, imported), *_handed_over(tree, imported), *_in_text(tree)})


def is_own(kernel_name: str, own: frozenset[str]) -> bool:
    """Whether a name, as a profiler shows it, is of one of `own`: plain, mangled, demangled, with Triton's suffix."""
    name = strip_suffixes(kernel_name)
    if name in own:
        return True
    path = read_parts(kernel_name).path
    return path in own or _without_old_suffix(path) in own or any(_is_cute(path, each) for each in own)


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What names that are imported anywhere stand for, with dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                named = _TRITON if alias.name == "*" else (alias.name,)
                for name in named:
                    yield alias.asname or name, f"{node.module}.{name}"


def _decorated(tree: ast.AST, imported: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, Function):
            continue
        paths = [_path(decorator, imported) for decorator in node.decorator_list]
        if any(map(_is_triton, paths)):
            yield node.name
        if _CUTE in paths:
            is_method = bool(node.args.args) and node.args.args[0].arg == "self"
            yield f"{_CUTE_PREFIX}{node.name}_{MODULE}" if is_method else f"{_CUTE_PREFIX}{node.name}"


def _handed_over(tree: ast.AST, imported: dict[str, str]) -> Iterator[str]:
    """`kernel = triton.jit(function)`, of functions that are defined here."""
    defined = {node.name for node in ast.walk(tree) if isinstance(node, Function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_triton(_path(node.func, imported)):
            yield from (each.id for each in node.args if isinstance(each, ast.Name) and each.id in defined)


def _path(node: ast.AST, imported: dict[str, str]) -> str:
    """`triton.jit` of `tr.jit(do_not_specialize=…)` after `import triton as tr`; empty for what is no such path."""
    if isinstance(node, ast.Call):
        return _path(node.func, imported)
    if isinstance(node, ast.Attribute):
        return f"{_path(node.value, imported)}.{node.attr}"
    return imported.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def _is_triton(path: str) -> bool:
    return path.startswith("triton.") and path.rpartition(".")[2] in _TRITON


def _in_text(tree: ast.AST) -> Iterator[str]:
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = _text(node) if id(node) not in parts else ""
        if _MARK in text:
            yield from global_functions(text)


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or _HOLE for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _without_old_suffix(name: str) -> str:
    """`my_kernel` of `my_kernel_0d1d2de`, where the numbers count up from 0."""
    match = next(iter(reversed(list(_OLD_SUFFIX.finditer(name)))), None)
    if match is None or match.end() != len(name):
        return name
    digits, counted, number = re.sub("[cde]", "", match[1]), "", 0
    while len(counted) < len(digits):
        counted += str(number)
        number += 1
    return name[: match.start()] if counted == digits else name


def _is_cute(path: str, own: str) -> bool:
    """A function's name is followed by its arguments; a method's by its object, whose module shows whose it is."""
    if not own.startswith(_CUTE_PREFIX) or own not in path:
        return False
    rest = path.partition(own)[2]
    if own.endswith(f"_{MODULE}"):
        return _OBJECT in rest
    return not rest or (rest.startswith("_") and _OBJECT not in rest.partition("_tensor")[0])
