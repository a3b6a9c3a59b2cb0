"""Imports go one way, in no circle, and load nothing heavy: read from the source with `ast`, so nothing is run.

Imports inside functions and under TYPE_CHECKING count. So do the package names given as text to
`import_module` and `registry.collect`, which import as surely.
"""

import ast
import functools
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "inferometer"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE
GROUND = (
    *("errors", "units", "patterns", "registry", "privacy", "processes", "new_files"),
    *("side_files", "file_locks", "spreadsheets", "guarded", "caches", "samples", "loopback", "failures"),
)
ROOMS = (
    *("trace", "hardware", "names", "operators", "architectures", "formats", "analyses", "findings"),
    *("backends", "record", "engines", "bench", "fleet", "watch", "reports", "commands"),
)
FLOOR = dict.fromkeys(GROUND, 0) | {room: floor for floor, room in enumerate(ROOMS, start=1)}
DOORS = ("__init__", "__main__")  # of the package itself: they may lead anywhere, lazily

QUESTIONS = (
    *(
        "hardware",
        "counters",
        "timeline",
        "tables",
        "launched_by",
        "memory",
        "groups",
        "steps",
        "model",
        "roofline",
        "compare",
    ),
    *("operators", "ab", "path_table", "latencyprism", "sql"),
)
"""Folders of `analyses`, each of which may use those before it and the files at the top."""

# Too slow to load for a question that doesn't need it, or not there without an extra.
HEAVY = {
    *("torch", "triton", "transformers", "tokenizers", "safetensors", "wgpu", "ray", "fsspec", "s3fs", "gcsfs"),
    *("cupti", "cutlass", "pynvml", "psutil", "pandas", "pyarrow", "plotly", "scipy.stats"),
    *("anyio", "jsonschema", "mcp", "starlette", "uvicorn"),
}


KERNELS = tuple(f"{PACKAGE}.backends.{backend}.kernels." for backend in ("torch", "triton"))
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
    if room == "analyses" and (folder := _folder(module)) not in (None, *QUESTIONS):
        problems.append(f"{module}: no such folder: add {folder} to QUESTIONS")
    for line, name in find_imports(tree, module, is_package=is_package):
        target = name.split(".")[1] if name.startswith(f"{PACKAGE}.") else None
        if target is not None and FLOOR.get(target, 0 if target == "__version__" else len(ROOMS)) > FLOOR[room]:
            problems.append(f"{module}:{line}: {room} must not import {name}")
        elif room == target == "analyses" and _question(name) > _question(module):
            problems.append(f"{module}:{line}: {_folder(module) or 'the top of analyses'} must not import {name}")
    return problems


def _folder(name: str) -> str | None:
    """The folder of `analyses` in which a module of it stands; None of those at the top."""
    folder = f"{name}..".split(".")[2]
    return folder if folder and (SOURCE / "analyses" / folder).is_dir() else None


def _question(name: str) -> int:
    folder = _folder(name)
    return 0 if folder is None else 1 + QUESTIONS.index(folder) if folder in QUESTIONS else len(QUESTIONS) + 1


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


def module_of(path: Path) -> str:
    file = path.parent if path.stem == "__init__" else path.with_suffix("")
    return ".".join((PACKAGE, *file.relative_to(SOURCE).parts))


def find_files(tree: ast.AST, module: str, files: Collection[str], *, is_package: bool = False) -> set[str]:
    """The modules among `files` that a module imports, other than itself.

    `from a import b` is an import of `a.b` where that is a file, else of `a`. Names given as text aren't counted: they
    name folders, whose files a registry takes one by one.
    """
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = set(find_imports(ast.Module(body=[*statements], type_ignores=[]), module, is_package=is_package))
    bases = {(line, name.rpartition(".")[0]) for line, name in names} & names
    found = {_file_of(name, files) for line, name in names if (line, name) not in bases}
    return {name for name in found if name is not None and name != module}


def _file_of(name: str, files: Collection[str]) -> str | None:
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name or None


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """Which file of the package imports which. What the package's own door leads to, lazily, isn't counted."""
    paths = {module_of(path): path for path in SOURCE.rglob("*.py")}
    graph = {}
    for module, path in paths.items():
        tree = ast.parse(path.read_text("utf-8"), path)
        graph[module] = find_files(tree, module, paths, is_package=path.stem == "__init__")
    return graph | {PACKAGE: set()}


def find_circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Files that import each other in a circle, the first of them again at the end; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in reversed(error.args[1])]
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert " imports ".join(find_circle(import_graph())) == ""


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("from inferometer.trace import store", {"inferometer.trace.store"}),
        ("from inferometer.trace.store import write", {"inferometer.trace.store"}),
        ("from inferometer.trace import store, TABLE", {"inferometer.trace", "inferometer.trace.store"}),
        ("import inferometer.trace.store as module", {"inferometer.trace.store"}),
        ("def lazily():\n    from . import store", {"inferometer.trace.store"}),
        ("if TYPE_CHECKING:\n    from .store import Store", {"inferometer.trace.store"}),
        ("from inferometer.trace.builder import Builder\nimport json", set()),
    ],
)
def test_an_import_leads_to_the_file_that_has_the_name(text: str, files: set[str]) -> None:
    known = ("inferometer", "inferometer.trace", "inferometer.trace.store", "inferometer.trace.builder")
    assert find_files(ast.parse(text), "inferometer.trace.builder", known) == files


def test_a_circle_is_found() -> None:
    graph: dict[str, set[str]] = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    circle = find_circle(graph)
    assert circle[0] == circle[-1]
    assert {*circle} == {"b", "c"}
    assert find_circle({**graph, "c": set()}) == []


def test_a_question_uses_those_before_it_and_the_top_uses_none() -> None:
    later = "from inferometer.analyses.steps.table import x"
    earlier = "from inferometer.analyses.timeline.gaps import x"
    module = "inferometer.analyses.launched_by.attribution"
    assert find_uphill(ast.parse(later), module) == [
        f"{module}:1: launched_by must not import inferometer.analyses.steps.table",
        f"{module}:1: launched_by must not import inferometer.analyses.steps.table.x",
    ]
    assert find_uphill(ast.parse(earlier), module) == []
    assert find_uphill(ast.parse("from inferometer.analyses.result import Result"), module) == []
    assert len(find_uphill(ast.parse(earlier), "inferometer.analyses.result")) >= 1


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_earlier_rooms_and_nothing_heavy(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), path)
    is_package = path.stem == "__init__"
    module = module_of(path)
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
