"""Settings of a folder: values that options have there unless they are given, from a file in it or in one above.

    # inferometer.toml; in a pyproject.toml the same below [tool.inferometer]
    hardware = "H100 SXM"       # of every command that has this option
    columns = 160               # the width of tables, as the variable COLUMNS sets it

    [compare]                   # of this command
    max-regression = 3

`INFEROMETER_CONFIG` names another file, or is empty for none. No setting names a file, folder or address: who can write
into a folder above would choose what is run, read or written.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from inferometer.errors import InputError, printable

VARIABLE = "INFEROMETER_CONFIG"
_OWN, _SHARED = "inferometer.toml", "pyproject.toml"
_COLUMNS = "columns"
_NEVER = frozenset(("output", "force", "check", "json", "csv", "tsv", "markdown"))  # said where they are meant
_PLACES = frozenset(("FILE", "DIR", "FOLDER", "PATH", "OUT", "OUT.ifm", "NAME.ifm.parts", "TABLE", "BASE", "URL")) | {
    *("ADDRESS", "SECRET"),  # of a server: who reaches it
}


@dataclass(frozen=True)
class Settings:
    """What a file sets. `where`: the file, and the table in it."""

    where: str
    columns: int | None
    defaults: dict[str, dict[str, Any]]  # by command, by the option's parameter


def find_settings(commands: Mapping[str, click.Command], folder: Path | None = None) -> Settings | None:
    """Those of `folder`, by default the one that we are in.

    Raises:
        InputError: The file can't be read, no command has such an option, or the value is none that it takes.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        return _read(Path(named), commands) if named else None
    start = folder or Path.cwd()
    for place in (start, *start.parents):
        if (place / _OWN).is_file():
            return _read(place / _OWN, commands)
        if (place / _SHARED).is_file() and (found := _read(place / _SHARED, commands)) is not None:
            return found
    return None


def is_setting(name: str) -> bool:
    """Whether the running command's parameter has its value from the settings: an option that is given goes before."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP


def _read(path: Path, commands: Mapping[str, click.Command]) -> Settings | None:
    """None of a pyproject.toml without ours."""
    import tomllib

    name = printable(str(path))
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}", hint=f"{VARIABLE} is the path of a file in TOML.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if path.name == _SHARED:
            return None  # somebody else's to complain of
        raise InputError(f"{name}: this is no TOML: {error}") from error
    except RecursionError as error:
        raise InputError(f"{name}: this TOML is nested too deeply") from error
    if path.name != _SHARED:
        return _checked(name, data, commands)
    tools = data.get("tool")
    ours: Any = tools.get("inferometer") if isinstance(tools, dict) else None
    where = f"{name}, [tool.inferometer]"
    if ours is None:
        return None
    if not isinstance(ours, dict):
        raise InputError(f"{where}: expected a table, found {ours!r}")
    return _checked(where, ours, commands)


def _checked(where: str, data: Mapping[str, Any], commands: Mapping[str, click.Command]) -> Settings:
    columns = data.get(_COLUMNS)
    if columns is not None and (not isinstance(columns, int) or isinstance(columns, bool) or columns < 1):
        raise InputError(f"{where}: columns: expected a whole number above 0, found {columns!r}")
    options = {name: _options_of(command) for name, command in commands.items()}
    defaults: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for key, value in data.items():
        if key == _COLUMNS:
            continue
        if isinstance(value, dict):
            if key not in commands:
                raise InputError(f"{where}: there is no command {key!r}{_nearest(key, commands)}")
            for option, own in value.items():
                _set(f"{where}, {key}", option, own, {key: options[key]}, defaults, is_own=True)
        else:
            _set(where, key, value, options, defaults, is_own=False)
    return Settings(where, columns, defaults)


def _set(
    where: str,
    key: str,
    value: Any,
    options: Mapping[str, Mapping[str, click.Option]],
    defaults: dict[str, dict[str, Any]],
    *,
    is_own: bool,
) -> None:
    """Put the value where commands have the option; what a command's own table says goes before what all have."""
    having = {command: own[key] for command, own in options.items() if key in own}
    if not having:
        known = {name for own in options.values() for name in own}
        whose = "no command has" if not is_own else "the command has no"
        raise InputError(f"{where}: {whose} option {key!r} that can be set{_nearest(key, known)}")
    for command, option in having.items():
        values = [value] if option.multiple and not isinstance(value, list) else value
        if isinstance(values, list) and not option.multiple and option.nargs == 1:
            raise InputError(f"{where}: {key}: expected one value, found a list")
        try:
            option.type_cast_value(click.Context(click.Command(command)), values)
        except click.BadParameter as error:
            raise InputError(f"{where}: {key}: {error.message}") from error
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: {key}: {value!r} can't be a value of --{key}") from error
        name = option.name or key
        if is_own or name not in defaults[command]:
            defaults[command][name] = values


def _options_of(command: click.Command) -> dict[str, click.Option]:
    """Those that settings may set, by the long name without its dashes."""
    return {
        name.removeprefix("--"): param
        for param in command.params
        if isinstance(param, click.Option) and not (param.hidden or param.is_eager)
        if param.name not in _NEVER and param.metavar not in _PLACES
        for name in param.opts
        if name.startswith("--")
    }


def _nearest(word: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
