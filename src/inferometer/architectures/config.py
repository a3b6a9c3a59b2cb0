"""A Hugging Face `config.json`, read field by field: what is missing or of another type is reported with its place.

Multimodal configurations keep the language model under `text_config`; only that part is read. Left out: everything that
changes no size (rope scaling, epsilons, tokens), and the type that quantized weights are stored in.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from inferometer.architectures.limits import EXPERTS, LAYERS, most_of
from inferometer.architectures.model import Mixture, Model
from inferometer.errors import FormatError
from inferometer.side_files import read_side_file

_MOST_BYTES = 4 * 2**20
_HINT = "Give the config.json that lies next to a model's weights on Hugging Face, or the name of a bundled model."
_OUTER = ("dtype", "torch_dtype", "tie_word_embeddings", "_name_or_path")  # given above `text_config`, meant for it


class Config:
    """The fields of one configuration; every method raises a FormatError that names the field.

    A field that is null counts as absent, since that is how the format writes "not set".

    Attributes:
        fields: Of the language model.
        whole: Of the file, with what lies above a `text_config`.
        where, name: What begins the message of an error; what the model is called.
        defaulted: Fields whose default was taken.
    """

    def __init__(
        self,
        fields: dict[str, Any],
        *,
        where: str,
        name: str,
        prefix: str = "",
        whole: Mapping[str, Any] | None = None,
    ) -> None:
        self.fields = fields
        self.whole = fields if whole is None else whole
        self.where = where
        self.name = name
        self.defaulted: list[str] = []
        self._prefix = prefix

    def integer(self, name: str, *, default: int | None = None, least: int = 1, most: int | None = None) -> int:
        """A whole number, up to the field's limit of `limits.FIELDS`; where the default is used, `defaulted` has it."""
        value = self.optional_integer(name, least=least, most=most)
        if value is not None:
            return value
        if default is None:
            self.refuse(name, f"expected a whole number from {least}", None)
        self.defaulted.append(name)
        return default

    def optional_integer(self, name: str, *, least: int = 1, most: int | None = None) -> int | None:
        """A whole number, or None where there is none and that has a meaning."""
        value = self.fields.get(name)
        most = most_of(name) if most is None else most
        if value is None:
            return None
        if type(value) is not int or not least <= value <= most:
            self.refuse(name, f"expected a whole number from {least} to {most}", value)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self.fields.get(name)
        if value is None:
            return default
        if type(value) is not bool:
            self.refuse(name, "expected true or false", value)
        return value

    def text(self, name: str, *, default: str | None = None) -> str:
        """Text that isn't empty."""
        value = self.fields.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not value:
            self.refuse(name, "expected text", value)
        return value

    def is_number(self, name: str, *, default: bool) -> bool:
        """Whether a number is set here; the default where the field isn't there at all, so null says no."""
        if name not in self.fields:
            return default
        value = self.fields[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            self.refuse(name, "expected a number or null", value)
        return value is not None

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of layers, counted from 0; empty where there is none."""
        value = self.fields.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(type(item) is int and 0 <= item < LAYERS for item in value):
            self.refuse(name, "expected a list of layers", value)
        return tuple(value)

    def sliding_layers(self, layers: int) -> tuple[int, ...] | None:
        """The layers that `layer_types` calls sliding; None where it isn't given."""
        value = self.fields.get("layer_types")
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != layers:
            self.refuse("layer_types", f"expected a list of {layers}, one per layer", value)
        for layer, kind in enumerate(value):
            if kind not in ("full_attention", "sliding_attention"):
                self.refuse(f"layer_types[{layer}]", 'expected "full_attention" or "sliding_attention"', kind)
        return tuple(layer for layer, kind in enumerate(value) if kind == "sliding_attention")

    def refuse(self, name: str, wanted: str, found: object) -> NoReturn:
        """Raise what a wrong field raises; found None: there is nothing."""
        shown = "nothing" if found is None else _show(found)
        raise FormatError(f"{self.where}: {self._prefix}{name}: {wanted}, found {shown}", hint=_HINT)


def open_config(path_or_text: str | os.PathLike[str]) -> Config:
    """The fields of a configuration: a file, a folder that holds `config.json`, or the JSON itself.

    Raises:
        InputError: There is no such file, or it can't be read.
        FormatError: It is no JSON object, or larger than any configuration (4 MiB).
    """
    if isinstance(path_or_text, str) and path_or_text.lstrip().startswith("{"):
        return decode_config(path_or_text.encode("utf-8", "surrogateescape"), where="config")
    path = Path(path_or_text)
    is_folder = _is_folder(path)
    path = path / "config.json" if is_folder else path
    data = read_side_file(path, most=_MOST_BYTES, hint=_HINT, pipe=not is_folder)
    return decode_config(data, where=str(path), name=_name_of(path))


def decode_config(data: bytes, *, where: str, name: str | None = None) -> Config:
    """As `open_config`, from bytes; `where` begins the message of an error."""
    if len(data) > _MOST_BYTES:
        raise FormatError(f"{where}: expected a configuration of at most 4 MiB, found more", hint=_HINT)
    try:
        fields = msgspec.json.decode(data)
    except RecursionError as error:
        raise FormatError(f"{where}: expected a configuration, found JSON nested too deeply", hint=_HINT) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{where}: expected JSON: {error}", hint=_HINT) from error
    if not isinstance(fields, dict):
        raise FormatError(f"{where}: expected a JSON object, found {_show(fields)}", hint=_HINT)
    return config_of(fields, where=where, name=name)


def config_of(fields: dict[str, Any], *, where: str, name: str | None = None) -> Config:
    """The language model's part of a decoded configuration."""
    whole, inner = fields, fields.get("text_config")
    prefix = ""
    if isinstance(inner, dict):
        outer = {key: fields[key] for key in _OUTER if key in fields}
        fields, prefix = {"model_type": fields.get("model_type"), **outer, **inner}, "text_config."
    own = fields.get("_name_or_path")
    own = own.rstrip("/").rpartition("/")[2] if isinstance(own, str) else ""
    kind = fields.get("model_type")
    return Config(
        fields, where=where, name=name or own or (kind if isinstance(kind, str) else where), prefix=prefix, whole=whole
    )


def read_decoder(
    config: Config, *, tied: bool, head_dim: int | None = None, defaults: dict[str, int] | None = None
) -> Model:
    """The fields that every family has; those that only one has are added by its own module.

    Args:
        config: What to read.
        tied: Whether the family shares the embedding table where the configuration doesn't say.
        head_dim: Width of a head where the family has other fields for it.
        defaults: What the family's class has for dimensions that published configurations leave out.
    """
    known = defaults or {}
    hidden = config.integer("hidden_size", default=known.get("hidden_size"))
    heads = config.integer("num_attention_heads", default=known.get("num_attention_heads"))
    kv_heads = config.integer("num_key_value_heads", default=known.get("num_key_value_heads", heads))
    if heads % kv_heads:
        config.refuse("num_key_value_heads", f"expected a divisor of num_attention_heads ({heads})", kv_heads)
    return Model(
        name=config.name,
        architecture=config.text("model_type"),
        source=config.where,
        dtype=_dtype(config),
        layers=config.integer("num_hidden_layers", default=known.get("num_hidden_layers")),
        hidden=hidden,
        vocab=config.integer("vocab_size", default=known.get("vocab_size")),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(config, hidden, heads, known.get("head_dim")) if head_dim is None else head_dim,
        intermediate=config.integer("intermediate_size", default=known.get("intermediate_size")),
        activation=_activation(config),
        tied_embeddings=config.flag("tie_word_embeddings", default=tied),
        qkv_bias=config.flag("attention_bias", default=False),
        o_bias=config.flag("attention_bias", default=False),
        defaulted=tuple(config.defaulted),
    )


def with_window(model: Model, window: int | None, layers: Sequence[int]) -> Model:
    """The model with this sliding window in these layers; without any where there is none."""
    if window is None or not layers:
        return model
    return msgspec.structs.replace(model, sliding_window=window, sliding_layers=tuple(layers))


def with_upper_window(config: Config, model: Model) -> Model:
    """The dense Qwen models' window: where it is switched on, in the layers from `max_window_layers` up."""
    if not config.flag("use_sliding_window", default=False):
        return model
    layers = config.sliding_layers(model.layers)
    if layers is None:
        layers = tuple(range(config.integer("max_window_layers", least=0), model.layers))
    return with_window(model, config.integer("sliding_window"), layers)


def read_mixture(config: Config, *, experts: str, width: str, layers: Sequence[int]) -> Mixture | None:
    """The experts of these layers, from the fields that the family has their number and width under; None without."""
    if not layers:
        return None
    count = config.integer(experts, most=EXPERTS)
    each = config.integer("num_experts_per_tok", most=count)
    return Mixture(layers=tuple(layers), experts=count, each=each, width=config.integer(width))


def _head_dim(config: Config, hidden: int, heads: int, default: int | None) -> int:
    given = config.optional_integer("head_dim")
    if given is not None:
        return given
    if default is not None:
        return config.integer("head_dim", default=default)
    if hidden % heads:
        config.refuse("head_dim", f"expected it given, since {heads} heads don't divide {hidden}", None)
    return hidden // heads


def _activation(config: Config) -> str:
    """Its name stands under one of two fields; Gemma's own one goes first, as the other may contradict it."""
    return config.text("hidden_activation", default=config.text("hidden_act", default="silu"))


def _dtype(config: Config) -> str | None:
    for field in ("dtype", "torch_dtype"):
        if config.fields.get(field) is not None:
            return config.text(field).removeprefix("torch.")
    return None


def _name_of(path: Path) -> str | None:
    """What a model is called by its place: its folder's name, or the file's own where that says more.

    The cache of the Hugging Face hub keeps `models--google--gemma-3-1b-it/snapshots/<hash>/config.json`.
    """
    if path.name != "config.json":
        return path.stem or None
    folder = path.absolute().parent
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.rpartition("--")[2] or None
    return folder.name or None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # longer than a path may be, or with a null character
        return False


def _show(value: object) -> str:
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 60 else f"{text[:57]}..."
