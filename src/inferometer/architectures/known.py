"""Models by name: the bundled ones of `models/*.json`, and any that a user has the configuration of.

A bundled file holds the fields of the published `config.json` that decide sizes, the source, and the number of
parameters that the publisher gives, which a test holds our count against.
"""

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from inferometer.architectures.architecture import find_architecture
from inferometer.architectures.config import Config, config_of, open_config
from inferometer.architectures.model import Model
from inferometer.errors import UnknownName

_TUNINGS = frozenset({"it", "instruct", "chat", "base", "pt", "hf", "thinking"})  # the same dimensions, other weights


class BundledModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of `models/`: `config` as published, `parameters` as published, `aliases` with the same dimensions."""

    name: str
    source: str
    parameters: int
    config: dict[str, Any]
    aliases: tuple[str, ...] = ()

    @property
    def model(self) -> Model:
        """The dimensions, with our name and source."""
        return msgspec.structs.replace(
            _read(config_of(self.config, where=self.name)), name=self.name, source=self.source
        )


@cache
def bundled_models() -> tuple[BundledModel, ...]:
    """All that we have, by name."""
    from importlib.resources import files

    paths = [path for path in (files("inferometer.architectures") / "models").iterdir() if path.name.endswith(".json")]
    found = [msgspec.json.decode(path.read_bytes(), type=BundledModel) for path in paths]
    return tuple(sorted(found, key=lambda bundled: bundled.name))


def read_model(path_or_text: str | os.PathLike[str]) -> Model:
    """The model of a configuration: a `config.json`, a folder that holds one, or the JSON itself.

    Raises:
        InputError: There is no such file, or it can't be read.
        FormatError: It is no configuration, or a field is missing or wrong; the message names it.
        UnknownName: Its `model_type` is none of the known families.
    """
    return _read(open_config(path_or_text))


def find_model(name: str) -> Model | None:
    """The bundled model of this name; None where there is none.

    Organisations (`google/`), case, and words that name a tuning but no size (`-it`, `-instruct`) don't count.
    """
    wanted = plain_name(name)
    for bundled in bundled_models():
        if wanted in map(plain_name, (bundled.name, *bundled.aliases)):
            return bundled.model
    return None


def require_model(name_or_path: str) -> Model:
    """A model that a user asked for: a file or a folder goes first, then a bundled name.

    Raises:
        InputError: A path leads nowhere, or the file is no configuration (a FormatError).
        UnknownName: No such model is bundled; the nearest come first.
    """
    if _is_config(Path(name_or_path)):
        return read_model(name_or_path)
    found = find_model(name_or_path)
    if found is not None:
        return found
    if name_or_path.endswith((".json", "/")) or name_or_path.lstrip().startswith("{"):  # meant as no name
        return read_model(name_or_path)
    raise UnknownName("model", name_or_path, [bundled.name for bundled in bundled_models()])


def plain_name(name: str) -> str:
    """A name as names are compared: `google/gemma-3-1B-it` is `gemma-3-1b`."""
    words = re.split(r"[-_\s]+", name.strip().rstrip("/").rpartition("/")[2].casefold())
    return "-".join(word for word in words if word and word not in _TUNINGS)


def _is_config(path: Path) -> bool:
    try:
        return path.is_file() or (path / "config.json").is_file()
    except (OSError, ValueError):  # longer than a path may be, or with a null character
        return False


def _read(config: Config) -> Model:
    return find_architecture(config.text("model_type")).read(config)
