"""The pages say what is true today: outputs, reference, links, and nothing is left out."""

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.test_import_order import ROOMS
from tests.warm_python import WarmPython, modules_of_commands

import inferometer
from inferometer.commands.main import cli
from inferometer.formats.base import known_formats

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = (
    "tables.md",
    "losses.md",
    "commands.md",
    "formats.md",
    "kineto-events.md",
    "works-on.md",
    "findings.md",
    "tools.md",
    "json.md",
)
MADE = ("README.md", "CONTRIBUTING.md", "docs/summary.svg", *(f"docs/reference/{name}" for name in REFERENCE))
MARKDOWN = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("samples/*.md")])
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_OF_A_SHELL = set("<>|&;$*?~`\\")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.fixture(scope="module")
def generate() -> Iterator[ModuleType]:
    """`docs/generate.py`, which finds what it imports in its own folder; commands are forked of a warm Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        module = import_module("generate")
        if sys.platform != "linux":
            yield module
            return
        with WarmPython(*modules_of_commands()) as python:
            patch.setattr("pages.start", partial(start_warm, python, import_module("pages").start))
            yield module


def start_warm(python: WarmPython, start: Callable[..., Any], command: str, **given: Any) -> Any:
    """The process of a command; in the place of a shell, where it runs `inferometer` as it is and needs none."""
    needs_a_shell = not command.startswith("inferometer ") or set(command) & _OF_A_SHELL
    if needs_a_shell or given["env"]["PYTHONPATH"] != str(ROOT / "src"):
        return start(command, **given)
    return python.start_command(command, **given)


@pytest.mark.skipif(sys.platform == "win32", reason="commands in pages run on a pseudo-terminal")
@pytest.mark.parametrize("name", [*MADE, *sorted(f"docs/guide/{path.name}" for path in ROOT.glob("docs/guide/*.md"))])
def test_a_page_shows_what_the_code_says_and_its_blocks_print(
    name: str, generate: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (generate.main(["--check", name]), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(path: Path) -> None:
    lost = []
    for match in _LINK.finditer(_FENCE.sub("", path.read_text("utf-8"))):
        target, _, heading = match["target"].partition("#")
        if "://" in target:
            continue
        file = (path.parent / target).resolve() if target else path
        inside = file.is_relative_to(ROOT) and file.exists()
        if not inside or (heading and heading not in headings_of(file)):
            lost.append(match["target"])
    assert lost == []


@cache
def headings_of(path: Path) -> frozenset[str]:
    """Anchors of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", _FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


@pytest.mark.parametrize("name", cli.list_commands(None))  # type: ignore[arg-type]
def test_every_command_is_in_the_readme_and_has_its_section(name: str) -> None:
    assert f"inferometer {name}" in text_of("README.md")
    assert name in headings_of(ROOT / "docs/reference/commands.md")


@pytest.mark.parametrize("name", known_formats())
def test_every_format_has_its_section(name: str) -> None:
    assert name in headings_of(ROOT / "docs/reference/formats.md")


@pytest.mark.parametrize("suffix", sorted({suffix for fmt in known_formats().values() for suffix in fmt.suffixes}))
def test_every_kind_of_file_is_in_the_readme(suffix: str) -> None:
    assert f"`{suffix}`" in text_of("README.md")


@pytest.mark.parametrize("name", sorted(inferometer.__all__))
def test_every_name_of_the_python_api_is_in_its_guide(name: str) -> None:
    assert re.search(rf"\b{name}\b", text_of("docs/guide/stores-and-python.md"))


def test_the_readme_lists_the_extras_of_pyproject() -> None:
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    assert set(re.findall(r"^\| `([a-z]+)` \|", text_of("README.md"), re.MULTILINE)) == set(extras) - {"dev"}


def test_the_architecture_lists_the_rooms_in_order_and_says_which_are_here() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| (here|to come) \|", text_of("docs/architecture.md"), re.MULTILINE)
    package = ROOT / "src" / "inferometer"
    assert rows == [(room, "here" if (package / room / "__init__.py").is_file() else "to come") for room in ROOMS]
