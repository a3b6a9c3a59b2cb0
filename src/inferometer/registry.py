"""Finds the one-file things: formats, commands, backends and the like each declare one constant in one module.

Looks at the direct modules and subpackages of a folder, then at the entry points that other packages declare:

    [project.entry-points."inferometer.formats"]
    my-format = "my_package.my_format:FORMAT"

A module of ours that fails to import is a bug and raises. A plugin that fails is left out with a `PluginWarning`
that names it, so that somebody else's broken package never stops the tool.
"""

import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from inferometer.errors import InferometerError, UnknownName

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INSTALLED = (".dist-info", ".egg-info")  # endings of the folders that describe an installed package


class Named(Protocol):
    """What a registry holds: anything with a name."""

    @property
    def name(self) -> str:
        """What a user types to get it; unique in its registry."""


T = TypeVar("T", bound=Named)


class PluginWarning(UserWarning):
    """An entry point of another package couldn't be used and was left out."""


def collect(package: str, constant: str, *, group: str | None = None, deep: bool = False) -> dict[str, T]:
    """Import every module of a folder once and return the objects that they declare, by their `.name`, sorted.

    Modules without the constant, and those whose name starts with an underscore, are passed over. The answer is
    cached for the life of the process; the dict is a copy. Annotate the variable that takes it:
    `formats: dict[str, Format] = collect("inferometer.formats", "FORMAT")`.

    Args:
        package: Dotted name of the folder, such as `inferometer.formats`.
        constant: The module-level name to take, such as `FORMAT`.
        group: Entry-point group of other packages' objects. None: the same as `package`.
        deep: Subpackages without the constant are folders of such modules, too.

    Raises:
        InferometerError: Two of our modules declare one name, or an object has no name.
        ModuleNotFoundError: There is no such package.
    """
    found = _collect(package, constant, package if group is None else group, deep=deep)
    return cast("dict[str, T]", dict(found))


@cache
def find(package: str, constant: str, name: str) -> Any:
    """The constant of one module of a folder, or the object of another package's entry point of that name.

    Only that module is imported. The name may lead into subpackages: `operators.list`.

    Raises:
        UnknownName: There is neither.
    """
    path = importlib.import_module(package).__path__
    *folders, last = name.split(".")
    for folder in folders:
        path = [f"{each}/{folder}" for each in path]
    if any(module.name == last for module in pkgutil.iter_modules(path)):
        return getattr(importlib.import_module(f"{package}.{name}"), constant)
    for plugin in _entry_points(package):
        if plugin.name == name:
            return plugin.load()
    raise UnknownName(constant.lower(), name, [module.name for module in pkgutil.iter_modules(path)])


@cache
def _collect(package: str, constant: str, group: str, *, deep: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, item in _from_modules(package, constant, deep=deep):
        _add(found, origins, origin, item)
    for plugin in _entry_points(group):
        origin = _describe(plugin)
        try:
            _add(found, origins, origin, plugin.load())
        except Exception as error:  # noqa: BLE001  the edge to code that isn't ours: it may raise anything
            cause = error if isinstance(error, InferometerError) else f"{type(error).__name__}: {error}"
            warnings.warn(f"left out {origin}: {cause}", PluginWarning, stacklevel=3)
    return dict(sorted(found.items()))


def _from_modules(package: str, constant: str, *, deep: bool) -> Iterator[tuple[str, Any]]:
    for module_info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module_info.name.startswith("_"):
            continue
        name = f"{package}.{module_info.name}"
        module = importlib.import_module(name)
        if hasattr(module, constant):
            yield f"{name}.{constant}", getattr(module, constant)
        elif deep and module_info.ispkg:
            yield from _from_modules(name, constant, deep=True)


def _add(found: dict[str, Any], origins: dict[str, str], origin: str, item: Any) -> None:
    name = getattr(item, "name", None)
    if not isinstance(name, str) or not name:
        raise InferometerError(f"{origin}: expected an object with a name, found {type(item).__name__}")
    if name in found:
        raise InferometerError(f'{origin}: the name "{name}" is already taken by {origins[name]}')
    found[name] = item
    origins[name] = origin


def _describe(plugin: "EntryPoint") -> str:
    package = f" of {plugin.dist.name}" if plugin.dist is not None else ""
    return f"plugin {plugin.name} = {plugin.value} ({plugin.group}){package}"


def _entry_points(group: str) -> Iterable["EntryPoint"]:
    """Those of other packages. Mostly there is none, and the module that reads them is slow to import."""
    if not _may_have_any(group):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _may_have_any(group: str) -> bool:
    """False where all packages are installed in plain folders, and none of them declares such an entry point."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    sign = f"[{group}]".encode()
    for place in dict.fromkeys(sys.path):
        try:
            found = os.listdir(place or ".")  # noqa: PTH208  pathlib takes several times as long
        except NotADirectoryError:  # a zip file
            return True
        except OSError:
            continue
        if place.endswith(".egg") or any(_declares(f"{place or '.'}/{name}", sign) for name in found):
            return True
    return False


def _declares(path: str, sign: bytes) -> bool:
    """Whether it is the description of an installed package that has `sign` among its entry points."""
    if not path.lower().endswith(_INSTALLED):
        return False
    try:
        with open(f"{path}/entry_points.txt", "rb") as file:  # noqa: PTH123  as above
            return sign in file.read()
    except OSError:
        return False
