"""What a module of this room declares: a family of models, the configurations that it reads and the calls of a step."""

from collections.abc import Callable, Iterator

import msgspec

from inferometer import registry
from inferometer.architectures.calls import ModelStep, OperatorCall
from inferometer.architectures.config import Config
from inferometer.architectures.model import Model
from inferometer.errors import UnknownName


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """A family of models.

    Attributes:
        name: The family, as the module is called.
        model_types: What configurations of the family have under `model_type`.
        read: Takes the dimensions from a configuration.
        calls: Every operator call of a step, in the order in which they run.
    """

    name: str
    model_types: tuple[str, ...]
    read: Callable[[Config], Model]
    calls: Callable[[Model, ModelStep], Iterator[OperatorCall]]


def find_architecture(model_type: str) -> Architecture:
    """The family whose configurations say this.

    Raises:
        UnknownName: None does; the known ones are listed.
    """
    families: dict[str, Architecture] = registry.collect("inferometer.architectures", "ARCHITECTURE")
    by_type = {model_type: family for family in families.values() for model_type in family.model_types}
    if model_type not in by_type:
        raise UnknownName("model_type", model_type, by_type)
    return by_type[model_type]
