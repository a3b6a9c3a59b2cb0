"""What Inductor's Triton source says of a kernel: which pointers it reads and writes, which of them by a table of rows.

Read are the files that a trace names as `kernel_file`, and `output_code.py`, which has the same sources as texts and
says above each what ops are fused. As PyTorch 2.4 to 2.13 write them. They are parsed, never run.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

import msgspec
from msgspec.structs import replace

_ORIGINAL = re.compile(r"Original ATen: \[([^\]]*)\]")
_PATH = re.compile(r"^# kernel path: (.+)$", re.MULTILINE)
_HEURISTICS: Final = "triton_heuristics"
_LOADED: Final = "tmp"  # how Inductor names what it loaded, and what it made of that


class Pointer(msgspec.Struct, frozen=True):
    """A tensor that a kernel is called with.

    `is_read`: it is loaded before anything is stored there; `is_indirect`: at places that other tensors name.
    """

    name: str
    is_read: bool
    is_written: bool
    is_indirect: bool


class KernelSource(msgspec.Struct, frozen=True):
    """A kernel. `stem`: of its file's name, which is the hash that a trace has; None where that isn't said.

    `numels`: numbers of elements in the order of its arguments, None for those that it is called with; all of its
    arguments that are numbers are `numbers`. `fused`: ops, where the source says them whole.
    """

    name: str
    stem: str | None
    pointers: tuple[Pointer, ...]
    numbers: tuple[str, ...]
    numels: tuple[tuple[str, int | None], ...]
    fused: tuple[str, ...] | None = None

    def elements(self, recorded: Sequence[int]) -> tuple[int, ...] | None:
        """The numbers of elements of a call; None where numbers that it was called with don't show them.

        Args:
            recorded: Values of the call's arguments that are numbers.
        """
        given = dict(zip(self.numbers, recorded, strict=True)) if len(recorded) == len(self.numbers) else {}
        found = [given.get(name) if value is None else value for name, value in self.numels]
        return None if None in found or not found else tuple(value for value in found if value is not None)


def read_source(text: str, stem: str | None = None) -> list[KernelSource]:
    """The kernels of a file; none of what isn't Python, or has no kernel that is understood."""
    try:
        tree = ast.parse(text)
        return list(_kernels(tree, text, stem))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the latter two: nested too deeply
        return []


def _kernels(tree: ast.Module, text: str, stem: str | None) -> Iterator[KernelSource]:
    lines = text.splitlines()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if (found := _kernel(node, stem)) is not None:
                yield found
        elif isinstance(node, ast.Assign) and (inner := _embedded(node)) is not None:
            about = _comment_above(lines, node.lineno)
            path, original = _PATH.search(about), _ORIGINAL.search(about)
            fused = tuple(op.strip().partition(".")[2] for op in original[1].split(",")) if original else None
            for each in read_source(inner, PurePath(path[1].strip()).stem if path else None):
                yield replace(each, fused=fused)


def _embedded(node: ast.Assign) -> str | None:
    """The source in `NAME = async_compile.triton(NAME, SOURCE, …)`."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "triton":
        return None
    texts = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return texts[1] if len(texts) > 1 else None


def _comment_above(lines: Sequence[str], line: int) -> str:
    first = line - 1
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : line - 1])


def _kernel(node: ast.FunctionDef, stem: str | None) -> KernelSource | None:
    """None of a function that isn't Inductor's, or uses a pointer in another way than to load and store."""
    signature = next((found for each in node.decorator_list if (found := _signature(each)) is not None), None)
    if signature is None:
        return None
    names = [each.arg for each in node.args.args if each.arg in signature]
    pointers = [name for name in names if signature[name].startswith("*")]
    numbers = [name for name in names if not signature[name].startswith("*") and signature[name] != "constexpr"]
    accesses = _accesses(node, frozenset(pointers))
    if not pointers or {name for name, _, _ in accesses} != set(pointers):
        return None
    constants = _constants(node)
    numels = [name for name in names if name.endswith("numel")]
    return KernelSource(
        node.name,
        stem,
        tuple(_pointer(name, [access for access in accesses if access[0] == name]) for name in pointers),
        tuple(numbers),
        tuple((name, constants.get(name)) for name in numels),
    )


def _signature(decorator: ast.expr) -> dict[str, str] | None:
    """`signature` of `triton_meta`: the type of each argument."""
    if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Attribute):
        return None
    if not isinstance(decorator.func.value, ast.Name) or decorator.func.value.id != _HEURISTICS:
        return None
    for keyword in decorator.keywords:
        if keyword.arg == "triton_meta" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "signature":
                    found = ast.literal_eval(value)
                    texts = isinstance(found, dict) and all(isinstance(each, str) for each in found.values())
                    return found if texts else None
    return None


def _accesses(node: ast.FunctionDef, pointers: frozenset[str]) -> list[tuple[str, str, bool]]:
    """Pointer, `load`, `store` or `atomic_…`, and whether its place was loaded, in the order of the source."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and each.args and _of_triton(each.func)]
    found = []
    for call in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
        assert isinstance(call.func, ast.Attribute)
        names = [each.id for each in ast.walk(call.args[0]) if isinstance(each, ast.Name)]
        indirect = any(name.startswith(_LOADED) for name in names)
        found += [(name, call.func.attr, indirect) for name in names if name in pointers]
    return found


def _of_triton(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "tl"
        and (function.attr in ("load", "store") or function.attr.startswith("atomic_"))
    )


def _pointer(name: str, accesses: Sequence[tuple[str, str, bool]]) -> Pointer:
    kinds = [kind for _, kind, _ in accesses]
    return Pointer(
        name,
        is_read=kinds[0] != "store",
        is_written=any(kind != "load" for kind in kinds),
        is_indirect=any(indirect for _, _, indirect in accesses),
    )


def _constants(node: ast.FunctionDef) -> dict[str, int]:
    """Numbers of elements that the source has as such: `xnumel = 2048`."""
    return {
        each.targets[0].id: each.value.value
        for each in node.body
        if isinstance(each, ast.Assign)
        and isinstance(each.targets[0], ast.Name)
        and isinstance(each.value, ast.Constant)
        and type(each.value.value) is int
        and each.value.value > 0
    }
