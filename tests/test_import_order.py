"""Imports go one way, and nothing heavy loads with them: read from the source with `ast`, so nothing is run.

Imports inside functions and under TYPE_CHECKING count for the order. So do the package names given as text to
`import_module` and `registry.collect`, which import as surely.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "inferometer"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE
GROUND = ("errors", "units", "registry", "privacy")
ROOMS = (
    *("trace", "hardware", "names", "operators", "architectures", "formats", "analyses", "findings"),
    *("backends", "record", "engines", "bench", "fleet", "reports", "commands"),
)
FLOOR = dict.fromkeys(GROUND, 0) | {room: floor for floor, room in enumerate(ROOMS, start=1)}
DOORS = ("__init__", "__main__")  # of the package itself: they may lead anywhere, lazily

# Too slow to load for a question that doesn't need it, or not there without an extra.
HEAVY = {
    *("torch", "triton", "transformers", "tokenizers", "safetensors", "wgpu", "ray", "fsspec", "s3fs", "gcsfs"),
    *("cupti", "pynvml", "psutil", "pandas", "pyarrow", "plotly", "scipy.stats"),
}


KERNELS = tuple(f"{PACKAGE}.backends.{folder}." for folder in ("torch_kernels", "triton_kernels"))
"""Loaded when one is asked for, and nothing without torch."""


def find_imports(tree: ast.AST, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Every dotted name that a module may import, with its line; `from a import b` gives `a` and `a.b`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                parents = module.split(".")[: None if is_package and level == 1 else -level + is_package]
                base = ".".join([*(parents if level else []), *([base] if base else [])])
                yield node.lineno, base
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "collect") | ast.Attribute(attr="import_module" | "collect"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def find_uphill(tree: ast.AST, module: str, *, is_package: bool = False) -> list[str]:
    """The imports that lead to a later room than the module's own, in words; none when the order holds."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] in DOORS:
        return []
    room = parts[1]
    if room not in FLOOR:
        return [f"{module}: no such room; add it to ROOMS where DESIGN puts it"]
    problems = []
    for line, name in find_imports(tree, module, is_package=is_package):
        target = name.split(".")[1] if name.startswith(f"{PACKAGE}.") else None
        if target is not None and FLOOR.get(target, 0 if target == "__version__" else len(ROOMS)) > FLOOR[room]:
            problems.append(f"{module}:{line}: {room} must not import {name}")
    return problems


def find_heavy(tree: ast.Module, module: str, *, is_package: bool = False) -> list[str]:
    """The imports of heavy or optional libraries that run when the module is imported, in words."""
    eager = ast.Module(body=list(_eager(tree.body)), type_ignores=[])
    return sorted(
        {
            f"{module}:{line}: import {name} inside the function that needs it"
            for line, name in find_imports(eager, module, is_package=is_package)
            if any(name == heavy or name.startswith(f"{heavy}.") for heavy in HEAVY)
        }
    )


def _eager(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The import statements that run at import: not those in functions or under TYPE_CHECKING."""
    for statement in body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                yield statement
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=orelse):
                yield from _eager(orelse)
            case _:
                for block in ("body", "orelse", "finalbody"):
                    yield from _eager(getattr(statement, block, []))
                for handler in getattr(statement, "handlers", []):
                    yield from _eager(handler.body)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_earlier_rooms_and_nothing_heavy(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), path)
    is_package = path.stem == "__init__"
    file = path.parent if is_package else path.with_suffix("")
    module = ".".join((PACKAGE, *file.relative_to(SOURCE).parts))
    assert find_uphill(tree, module, is_package=is_package) == []
    assert module.startswith(KERNELS) or find_heavy(tree, module, is_package=is_package) == []


@pytest.mark.parametrize(
    "text",
    [
        "import inferometer.commands.main",
        "from inferometer import formats",
        "from inferometer.formats.kineto import FORMAT",
        "from ..formats import kineto",
        "from .. import reports",
        "def lazily():\n    from inferometer.reports import html",
        "if TYPE_CHECKING:\n    from inferometer.formats import base",
        "FORMATS = registry.collect('inferometer.formats', 'FORMAT')",
        "importlib.import_module('inferometer.commands')",
        "import inferometer.attic",
    ],
)
def test_every_way_up_is_seen(text: str) -> None:
    assert len(find_uphill(ast.parse(text), "inferometer.trace.store")) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "import json, polars",
        "from inferometer.errors import InputError",
        "from inferometer import __version__, units",
        "from . import tables",
        "from .losses import Losses",
        "from ..registry import collect",
        "TABLES = collect('inferometer.trace', 'TABLE')",
    ],
)
def test_ways_down_and_inside_a_room_are_free(text: str) -> None:
    assert find_uphill(ast.parse(text), "inferometer.trace.store") == []


def test_relative_imports_of_a_package_start_at_itself() -> None:
    assert find_uphill(ast.parse("from .commands import x"), "inferometer.trace", is_package=True) == []
    assert len(find_uphill(ast.parse("from ..commands import x"), "inferometer.trace", is_package=True)) >= 1


def test_an_unknown_room_is_refused_and_the_doors_lead_anywhere() -> None:
    assert "no such room" in find_uphill(ast.parse(""), "inferometer.utils")[0]
    assert find_uphill(ast.parse("from inferometer.commands.main import main"), "inferometer.__main__") == []
    assert find_uphill(ast.parse("from inferometer.formats import opening"), "inferometer", is_package=True) == []


@pytest.mark.parametrize(
    ("text", "heavy"),
    [
        ("import torch.nn.functional as F", True),
        ("from scipy import stats", True),
        ("try:\n    import triton\nexcept ImportError:\n    import wgpu", True),
        ("class A:\n    import ray", True),
        ("def f():\n    import torch", False),
        ("if TYPE_CHECKING:\n    from torch import Tensor", False),
        ("from scipy import special\nimport torchless", False),
    ],
)
def test_heavy_libraries_are_seen_where_they_load_at_import(text: str, heavy: bool) -> None:
    assert bool(find_heavy(ast.parse(text), "inferometer.trace.store")) is heavy
