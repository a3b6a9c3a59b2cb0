"""A wheel is for one system where the library was built, else for any; an installation never fails by it."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAME = "src/inferometer/formats/native/formats.decoder.so"


class App:
    """What the hook says."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def run_hook() -> tuple[dict[str, Any], list[str]]:
    """What the wheel is built with, and what was said."""
    pytest.importorskip("hatchling", reason="the build backend comes with the extra dev")
    from hatch_build import LibraryHook

    app = App()
    hook: Any = LibraryHook(str(ROOT), {}, None, None, "", "wheel", app)  # type: ignore[arg-type]
    data: dict[str, Any] = {"artifacts": []}
    hook.initialize("standard", data)
    return data, app.warnings


def test_a_wheel_with_the_library_is_for_any_python_of_one_system() -> None:
    data, warnings = run_hook()
    if warnings:
        pytest.skip(warnings[0])
    assert data["artifacts"] == [NAME]
    assert data["pure_python"] is False
    assert re.fullmatch(r"py3-none-(linux|macosx)_\w+", data["tag"])


def test_a_wheel_without_it_is_for_any_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFEROMETER_NATIVE", "0")
    assert run_hook() == ({"artifacts": []}, [])


def test_without_a_compiler_the_installation_says_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    run = runpy.run_path
    monkeypatch.setattr(runpy, "run_path", lambda path: run(path) | {"is_current": lambda library: False})
    monkeypatch.setenv("PATH", "/no/such/folder")
    monkeypatch.delenv("CXX", raising=False)
    data, (warning,) = run_hook()
    assert data == {"artifacts": []}
    assert "reads more slowly: there is no C++ compiler" in warning
