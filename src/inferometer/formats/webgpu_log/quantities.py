"""Numbers in a log's lines: times and sizes with their units, `key=value` pairs, names of keys."""

import math
import re
from typing import Any

from inferometer.errors import InputError
from inferometer.units import parse_duration, parse_exact_duration

_SIZES = {"B": 0, "KB": 1, "kB": 1, "MB": 2, "GB": 3, "TB": 4, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}
_SIZE = re.compile(rf"(?P<number>[0-9]{{1,15}}(?:\.[0-9]{{1,9}})?) ?(?P<unit>{'|'.join(_SIZES)})")
_TIME = re.compile("[0-9][0-9.,]{0,20} ?(?:ns|us|\u00b5s|\u03bcs|ms|s)")
_PAIR = re.compile(r'(?P<key>[A-Za-z_][\w.-]{0,60})=(?P<value>"[^"]*"|\[[^\]]*\]|[^\s,|()]*)')
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WHOLE = re.compile(r"[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,30}\.[0-9]{1,30}")
_LAST_DECIMALS = re.compile(r"=[0-9]+\.([0-9]+)$")
_LONGEST = 8_000  # characters of a line in which pairs are looked for


def read_time(text: str | None) -> int | None:
    """Nanoseconds of a time with its unit; None when it is no such thing."""
    try:
        return None if not text or not _TIME.fullmatch(text) else parse_duration(text)
    except InputError:
        return None


def read_size(text: str | None) -> int | None:
    """Bytes of a size with its unit, a power of 1024 (the engine's 1024 MB are 1 GB); None when it is no such thing."""
    match = _SIZE.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    whole, _, part = match["number"].partition(".")
    scaled = int(whole + part) << (10 * _SIZES[match["unit"]])
    step = 10 ** len(part)
    size = (scaled + step // 2) // step
    return size if size < 2**63 else None


def read_pairs(text: str) -> dict[str, str]:
    """The `key=value` pairs of a text, in order; quotes around a value are gone."""
    return {match["key"]: match["value"].strip('"') for match in _PAIR.finditer(text[:_LONGEST])}


def read_value(key: str, text: str) -> tuple[str, Any]:
    """A key in snake case, with its unit where the value has one, and the value: a number where it is one."""
    name = snake_case(key)
    if (time_ns := read_time(text)) is not None:
        return f"{name}_ns", time_ns
    if (size := read_size(text)) is not None:
        return f"{name}_bytes", size
    return name, read_number(text)


def read_number(text: str) -> int | float | str:
    """A whole number or a decimal as such, anything else as the text that it is."""
    if _WHOLE.fullmatch(text):
        return int(text)
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else text


def snake_case(key: str) -> str:
    """`prefillTokens` as `prefill_tokens`."""
    return _HUMP.sub("_", key).replace("-", "_").replace(".", "_").lower()


def read_step(text: str, unit: str) -> tuple[int, float] | None:
    """A time of a table's cell in ns, and half of what its last digit is worth; None when it is no time of 64 bits."""
    try:
        value, step = parse_exact_duration(text, default_unit=unit)
    except InputError:
        return None
    return None if value < 0 else (round(value), float(step / 2))


def whole_fields(kind: str | None, fields: dict[str, Any], text: str) -> dict[str, Any]:
    """The fields of a line without its ending that can't have been cut: of results and metrics, all but the last one.

    The last one is whole, too, when a unit or a quote follows it, or when it has as many decimals as the one before.
    """
    if kind not in ("result", "metrics") or not fields:
        return {}
    *before, last = text.rstrip("\r").split(" ")
    if read_time(last.rpartition("=")[2]) is not None or last.endswith('"'):
        return fields
    decimals = [len(match[1]) for word in [*before[-1:], last] if (match := _LAST_DECIMALS.search(word))]
    if len(decimals) == 2 and decimals[0] == decimals[1]:
        return fields
    return dict(list(fields.items())[:-1])
