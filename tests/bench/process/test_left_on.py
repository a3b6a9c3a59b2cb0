"""What stands under later work is the candidate's where its code is in no library, wherever those are installed."""

import gc
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inferometer.bench.process.left_on import LeftOn
from inferometer.bench.process.libraries import Libraries

pytest.importorskip("torch", reason="torch isn't installed")


def function_of(file: str) -> Callable[..., Any]:
    """A function that a file of this name defines."""
    namespace: dict[str, Any] = {}
    exec(compile("def left(*_): pass\n", file, "exec"), namespace)
    found: Callable[..., Any] = namespace["left"]
    return found


@pytest.fixture
def collected() -> Iterator[list[Any]]:
    before = list(gc.callbacks)
    yield gc.callbacks
    gc.callbacks[:] = before


@pytest.mark.parametrize(
    ("folder", "is_left"),
    [("{stdlib}", False), ("{purelib}/torch", False), ("/opt/other/site-packages/torch", False), ("/home/me", True)],
)
def test_hooks_of_libraries_are_left_alone(
    folder: str, is_left: bool, collected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "/opt/other/site-packages"])
    state = LeftOn.of()
    before = state.found()
    collected.append(function_of(f"{folder.format(**sysconfig.get_paths())}/x.py"))
    new = [each for each in state.found() if each not in before]
    assert new == (["a hook of the garbage collector (gc.callbacks)"] if is_left else [])


def test_a_handler_is_named_by_its_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    state, own = LeftOn.of(), function_of("/home/me/x.py")
    monkeypatch.setattr(signal, "getsignal", lambda number: own if number == signal.SIGUSR1 else None)
    assert [each for each in state.found() if "handler" in each] == ["a handler of SIGUSR1"]


def test_a_library_below_pythons_own_folder_isnt_pythons_own() -> None:
    libraries, paths = Libraries(), sysconfig.get_paths()
    assert libraries.is_standard(f"{paths['stdlib']}/json/__init__.py")
    assert libraries.is_standard("<frozen posixpath>")
    assert libraries.is_installed(f"{paths['purelib']}/torch/__init__.py")
    assert not libraries.is_standard(f"{paths['purelib']}/torch/__init__.py")
    assert not libraries.is_standard(str(Path(__file__)))
