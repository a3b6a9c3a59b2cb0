"""Fields of a `config.json` that this engine reads besides what `architectures` does, and how it refuses one."""

from typing import Any, NoReturn

from inferometer.architectures.config import Config
from inferometer.errors import InputError

_CANT = "The WebGPU engine can't run that; `inferometer chat` without --engine webgpu runs it with PyTorch."


def mapping(config: Config, name: str) -> dict[str, Any]:
    """An object; empty where there is none."""
    value = config.fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        config.refuse(name, "expected an object", value)
    return value


def number(config: Config, name: str, default: float | None) -> float:
    """A number above 0; `default` None: it must be there."""
    value = config.fields.get(name)
    if value is None and default is not None:
        return float(default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e30:
        config.refuse(name, "expected a number above 0", value)
    return float(value)


def refuse(config: Config, field: str, wanted: str, found: object) -> NoReturn:
    """Say that the engine can't compute what a field asks for."""
    raise InputError(f"{config.where}: {field}: expected {wanted}, found {found}", hint=_CANT)
