"""Settings of a folder: values that options have there unless they are given, from a file in it or in one above.

    # inferometer.toml; in a pyproject.toml the same below [tool.inferometer]
    hardware = "H100 SXM"       # of every command that has this option
    columns = 160               # the width of tables, as the variable COLUMNS sets it
    theme = "dark"              # of the terminal and of pages

    [compare]                   # of this command
    max-regression = 3

    [thresholds]                # of the rules that make findings
    idle_device.low = 0.3

`INFEROMETER_CONFIG` names another file, or is empty for none. No setting names a file, folder or address: who can write
into a folder above would choose what is run, read or written.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from inferometer.commands.base import remember
from inferometer.errors import InputError, printable
from inferometer.reports.themes import THEMES, Theme

VARIABLE = "INFEROMETER_CONFIG"
_HINT = (
    f"Settings are taken from the file that {VARIABLE} names, or from one in this folder or above; empty: from none."
)
_MOST_BYTES = 1 << 20  # 1 MiB
_OWN, _SHARED = "inferometer.toml", "pyproject.toml"
_COLUMNS, _THEME, _THRESHOLDS = "columns", "theme", "thresholds"
_NEVER = frozenset(("output", "force", "check", "json", "csv", "tsv", "markdown"))  # said where they are meant
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_PLACES = frozenset(("FILE", "DIR", "FOLDER", "PATH", "OUT", "OUT.ifm", "NAME.ifm.parts", "TABLE", "BASE", "URL")) | {
    *("ADDRESS", "SECRET"),  # of a server: who reaches it
}

Commands = Callable[[], Mapping[str, click.Command]]


class Settings(msgspec.Struct, frozen=True):
    """What a file sets. `where`: the file, and the table in it."""

    where: str
    columns: int | None
    theme: Theme
    thresholds: dict[str, float]
    defaults: dict[str, dict[str, Any]]  # by command, by the option's parameter

    def explain(self, error: click.UsageError) -> str | None:
        """What of a refused call stands in the file: options that the refusal names, else all; None where none do."""
        context = error.ctx
        if context is None:
            return None
        source_of = context.get_parameter_source
        ours = {f"--{name}": param for name, param in _options_of(context.command).items()}
        ours = {
            name: param for name, param in ours.items() if source_of(param.name or "") is ParameterSource.DEFAULT_MAP
        }
        words = set(_OPTION.findall(error.message))
        refused = error.param if isinstance(error, click.BadParameter) else None
        named = [name for name, param in ours.items() if name in words or param is refused]
        if not named and isinstance(error, click.NoSuchOption | click.MissingParameter):
            return None  # no value is to blame for these
        shown = ", ".join(named or ours)
        return f"{shown}: set in {self.where}, not on the command line." if shown else None


def find_settings(commands: Commands) -> Settings | None:
    """Those of the folder that we are in. `commands`: all, asked for where there is a file.

    Raises:
        InputError: The file can't be read, no command has such an option, or the value is none that it takes.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        return _read(Path(named), commands) if named else None
    start = Path.cwd()
    for place in (start, *start.parents):
        if (place / _OWN).is_file():
            return _read(place / _OWN, commands)
        if (place / _SHARED).is_file() and (found := _read(place / _SHARED, commands)) is not None:
            return found
    return None


def explain_settings(error: click.UsageError) -> str | None:
    """Of the settings that the refused command ran with: `Settings.explain`."""
    settings = None if error.ctx is None else error.ctx.meta.get(__name__)
    return settings.explain(error) if isinstance(settings, Settings) else None


def use_settings(settings: Settings, context: click.Context) -> None:
    """Have the commands below `context` run with them."""
    context.meta[__name__] = settings
    context.default_map = {**settings.defaults}
    remember(context, "theme", settings.theme)
    remember(context, "thresholds", settings.thresholds)
    if settings.columns is not None:
        os.environ.setdefault("COLUMNS", str(settings.columns))


def is_setting(name: str) -> bool:
    """Whether the running command's parameter has its value from the settings: an option that is given goes before."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP


def _read(path: Path, commands: Commands) -> Settings | None:
    """None of a pyproject.toml without ours."""
    import tomllib

    name = printable(str(path))
    try:
        with path.open("rb") as file:
            text = file.read(-1 if path.name == _SHARED else _MOST_BYTES + 1)
        if path.name != _SHARED and len(text) > _MOST_BYTES:
            raise InputError(f"{name}: expected at most 1 MiB of settings", hint=_HINT)
        data = tomllib.loads(text.decode())
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}", hint=f"{VARIABLE} is the path of a file in TOML.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if path.name == _SHARED:
            return None  # somebody else's to complain of
        where = f"byte {error.start:,} is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise InputError(f"{name}: this is no TOML: {where}", hint=_HINT) from error
    except RecursionError as error:
        raise InputError(f"{name}: this TOML is nested too deeply", hint=_HINT) from error
    if path.name != _SHARED:
        return _checked(name, data, commands())
    tools = data.get("tool")
    ours: Any = tools.get("inferometer") if isinstance(tools, dict) else None
    where = f"{name}, [tool.inferometer]"
    if ours is None:
        return None
    if not isinstance(ours, dict):
        raise InputError(f"{where}: expected a table, found {ours!r}")
    return _checked(where, ours, commands())


def _checked(where: str, data: Mapping[str, Any], commands: Mapping[str, click.Command]) -> Settings:
    columns = data.get(_COLUMNS)
    if columns is not None and (not isinstance(columns, int) or isinstance(columns, bool) or columns < 1):
        raise InputError(f"{where}: columns: expected a whole number above 0, found {columns!r}")
    theme = data.get(_THEME, "auto")
    if theme not in THEMES:
        near = _nearest(theme, THEMES) if isinstance(theme, str) else ""
        raise InputError(f"{where}: theme: expected one of {', '.join(THEMES)}, found {theme!r}{near}")
    options = {name: _options_of(command) for name, command in commands.items()}
    defaults: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for key, value in data.items():
        if key in (_COLUMNS, _THEME, _THRESHOLDS):
            continue
        if isinstance(value, dict):
            if key not in commands:
                raise InputError(f"{where}: there is no command {key!r}{_nearest(key, commands)}")
            for option, own in value.items():
                _set(f"{where}, {key}", option, own, {key: options[key]}, defaults, is_own=True)
        else:
            _set(where, key, value, options, defaults, is_own=False)
    return Settings(where, columns, theme, _thresholds_of(where, data.get(_THRESHOLDS, {})), defaults)


def _thresholds_of(where: str, given: Any) -> dict[str, float]:
    """By name; loads the rules, where any are set."""
    if not isinstance(given, dict):
        raise InputError(f"{where}: {_THRESHOLDS}: expected a table, found {given!r}")
    flat = dict(_flat(given))
    if flat:
        from inferometer.findings.engine import known_rules
        from inferometer.findings.thresholds import check_thresholds, thresholds_of

        check_thresholds(flat, thresholds_of(known_rules().values()), where=f"{where}, {_THRESHOLDS}")
    return flat


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names with dots, whether they were written so or as tables in tables."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


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
