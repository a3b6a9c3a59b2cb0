"""Models that need no file of weights: small ones of `models/*.json`, and the shapes of published ones.

A small one has the form of its family (grouped queries, norms, windows, experts) at sizes that a test can run. A
published one has the dimensions that `architectures/models` knows and nothing else: what that leaves out (rope's base,
epsilons) is its class's default, which changes no time.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from inferometer.architectures.known import bundled_models, plain_name
from inferometer.errors import InputError, UnknownName

DEFAULT = "tiny-llama"
FAMILIES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "gemma3_text", "mixtral", "qwen2_moe", "qwen3_moe")
"""The `model_type`s whose modules `decoder.py` can run."""


class NamedConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a name stands for: `config` holds the fields of a Hugging Face `config.json`, whatever its family."""

    name: str
    source: str
    config: dict[str, Any]


def bundled_names() -> tuple[str, ...]:
    """The small models, the default first."""
    return tuple(sorted(_small(), key=lambda name: (name != DEFAULT, name)))


def known_names(families: Collection[str] = FAMILIES) -> tuple[str, ...]:
    """All of these families, without second names for the same dimensions."""
    known = (*(_small()[name] for name in bundled_names()), *_published().values())
    return tuple(dict.fromkeys(config.name for config in known if config.config["model_type"] in families))


def find_config(name: str) -> NamedConfig | None:
    """The configuration of this name; None where there is none. Case and kinds of punctuation don't count."""
    wanted = _folded(name)
    return {_folded(each): config for each, config in _small().items()}.get(wanted) or _published().get(wanted)


def require_config(name: str, families: Collection[str] = FAMILIES) -> NamedConfig:
    """The configuration of what a user called a model and what is no folder.

    Raises:
        UnknownName: No such model; those of the families are listed.
        InputError: It is a path, which leads nowhere or to another file than a model's.
    """
    named = None if "/" in name else find_config(name)  # an organisation's name means its weights, not its shape
    if named is not None:
        return named
    if _is_there(name):
        raise InputError(
            f"{name}: expected a folder with config.json and safetensors, or a GGUF file, found another file"
        )
    if "/" in name or "\\" in name:
        raise InputError(
            f"{name}: there is no such folder",
            hint="Nothing is downloaded: give a folder that is here, or a name without a slash for random weights:\n"
            f"{', '.join(known_names(families))}",
        )
    raise UnknownName("model", name, known_names(families))


def is_folder(name: str) -> bool:
    """Whether what a user called a model is a folder here; a folder goes before a name."""
    return _is_there(name) and Path(name).is_dir()


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # longer than a path may be
        return False


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", plain_name(name))


@cache
def _small() -> Mapping[str, NamedConfig]:
    from importlib.resources import files

    paths = [path for path in (files("inferometer.engines") / "models").iterdir() if path.name.endswith(".json")]
    found = [msgspec.json.decode(path.read_bytes(), type=NamedConfig) for path in paths]
    return {config.name: config for config in found}


@cache
def _published() -> Mapping[str, NamedConfig]:
    return {
        _folded(name): NamedConfig(model.name, model.source, model.config)
        for model in bundled_models()
        for name in (model.name, *model.aliases)
    }
