"""A transformers model with its weights, from a local folder or from a seed. Nothing is downloaded, no code is run.

A folder has `config.json` and the weights as safetensors, in one file or several with an index; both are looked at
before anything large is read. Left out: quantized weights, weights as pickles, models whose code lies in their folder.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from inferometer.architectures.config import open_config
from inferometer.architectures.limits import EXPERTS, require_sizes
from inferometer.engines.bundled import FAMILIES
from inferometer.engines.hf.weight_files import ONE_MODEL, find_weight_files, require_fit, require_plain
from inferometer.engines.memory import is_out_of_memory, memory_for, require_memory
from inferometer.engines.random_weights import fill_model
from inferometer.engines.safetensors_header import read_header
from inferometer.errors import FormatError, InferometerError, InputError, Unavailable, UnknownName

DTYPES = ("float32", "bfloat16", "float16")
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_LAYER = re.compile(r"(?:^|\.)layers\.(?P<layer>[0-9]{1,9})\.")
_MOST_LACKING = 4  # times as many weights or layers as there are; with fewer, those that lack are listed by name
_EXPERT = re.compile(r"(?P<layer>.*\.experts)\.(?P<expert>[0-9]{1,9})\.(?P<weight>.*)")


def build_random(name: str, fields: Mapping[str, Any], seed: int, *, device: str, dtype: str) -> Any:
    """A model of this configuration, made on the device in the dtype; its weights are those of `webgpu.weights.seeded`.

    Raises:
        UnknownName: Another family.
        InputError: transformers refuses the configuration.
        Unavailable: transformers isn't there, or too little memory.
    """
    model = build_blank(name, fields, device, dtype)
    weight_bytes = sum(weight.numel() for weight in model.parameters()) * ITEM_BYTES[dtype]
    what = f"{name}: weights in {dtype}"
    require_memory(what, weight_bytes, device)
    with memory_for(what, weight_bytes, device):
        materialise(model, device)
        model.tie_weights()
        fill_model(model, seed)
    return model


def load_folder(folder: Path, *, device: str, dtype: str) -> tuple[Any, dict[str, Any]]:
    """The model of a folder, and the fields of its `config.json`.

    Raises:
        InputError: No configuration, no weights, or weights that don't fit the configuration.
        FormatError: A file isn't what it should be: cut off, no JSON.
        UnknownName: Another family.
        Unavailable: transformers isn't there, or too little memory.
    """
    config = open_config(folder)
    fields, whole = dict(config.fields), config.whole
    _require_family(config.where, whole)
    require_sizes(whole, config.where)
    require_plain(folder, whole, fields)
    tensors = {name: tensor for path in find_weight_files(folder) for name, tensor in read_header(path).items()}
    require_layers(config.where, whole, tensors)
    _require_experts(folder, tensors)
    count = sum(math.prod(tensor.shape) for tensor in tensors.values())
    what = f"{folder.name}: weights in {dtype}"
    weight_bytes = count * ITEM_BYTES[dtype]
    for place in {"cpu", device}:  # it passes through the host
        require_memory(what, weight_bytes, place)
    with memory_for(what, weight_bytes, device):
        return _from_pretrained(folder, whole, dtype, count).to(device), fields


def build_blank(name: str, fields: Mapping[str, Any], device: str, dtype: str) -> Any:
    """The modules, with tables where they belong and weights that have no memory yet."""
    auto = _transformers()
    config = _config(name, fields)
    with refusals(f"{name}: transformers refuses the configuration"), _quiet(), _without_weights(device):
        return auto.AutoModelForCausalLM.from_config(
            config, attn_implementation="eager", **{_dtype_option(): _torch_dtype(dtype)}
        ).eval()


@contextmanager
def _without_weights(device: str) -> Iterator[None]:
    """What a module makes for weights has no memory (`meta`); what it computes (rope's frequencies) is on the device.

    A context of this thread, as `torch.device` is; weights of modules come from these three functions.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    blank = {torch.empty, torch.ones, torch.zeros}

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if function in blank:
                kwargs["device"] = "meta"
            return function(*args, **kwargs)

    with torch.device(device), Mode():
        yield


def materialise(model: Any, device: str) -> None:
    """Memory for every weight; one that two modules share stays shared."""
    import torch

    made: dict[int, Any] = {}
    for module in model.modules():
        for name, weight in list(module.named_parameters(recurse=False)):
            if id(weight) not in made:
                empty = torch.empty(weight.shape, dtype=weight.dtype, device=device)
                made[id(weight)] = torch.nn.Parameter(empty, requires_grad=False)
            setattr(module, name, made[id(weight)])


def _from_pretrained(folder: Path, whole: Mapping[str, Any], dtype: str, count: int) -> Any:
    auto = _transformers()
    config = _config(str(folder / "config.json"), whole)
    with refusals(f"{folder}: transformers can't build it"), _quiet():
        _require_count(folder, auto, config, count)
        model, info = auto.AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that it tells of all, and we refuse
            attn_implementation="eager",
            **{_dtype_option(): _torch_dtype(dtype)},
        )
    blank = {
        name for name, weight in model.named_parameters() if weight.is_meta
    }  # transformers 4.51 doesn't report all
    _require_fit(folder, {**info, "missing_keys": blank.union(info.get("missing_keys", ()))})
    return model.eval().requires_grad_(False)


def _require_count(folder: Path, auto: Any, config: Any, held: int) -> None:
    """Not many times the weights of the files: what they lack gets memory before it is missed."""
    import torch

    with torch.device("meta"):
        described = sum(weight.numel() for weight in auto.AutoModelForCausalLM.from_config(config).parameters())
    if described > _MOST_LACKING * held:
        raise InputError(
            f"{folder}: expected the weights that config.json describes, {described:,} numbers, "
            f"found {held:,} in the files",
            hint=ONE_MODEL,
        )


def _require_fit(folder: Path, info: Mapping[str, Any]) -> None:
    shapes = [
        each if isinstance(each, str) else f"{each[0]} {list(each[1])} for {list(each[2])}"  # by version
        for each in info.get("mismatched_keys", ())
    ]
    missing, unexpected = info.get("missing_keys", ()), info.get("unexpected_keys", ())
    require_fit(folder, missing=missing, unexpected=unexpected, of_another_shape=shapes)


def _require_experts(folder: Path, names: Collection[str]) -> None:
    """Each expert of a layer has the weights that another has; transformers 5 joins them, and can't say which lack."""
    layers: dict[str, dict[int, set[str]]] = {}
    for name in names:
        if found := _EXPERT.fullmatch(name):
            layers.setdefault(found["layer"], {}).setdefault(int(found["expert"]), set()).add(found["weight"])
    for layer, experts in layers.items():
        if max(experts) >= EXPERTS:
            raise InputError(f"{folder}: {layer}.{max(experts)}: expected at most {EXPERTS:,} experts", hint=ONE_MODEL)
        kinds = set().union(*experts.values())
        lacking = [f"{layer}.{i}.{kind}" for i in range(max(experts) + 1) for kind in kinds - experts.get(i, set())]
        if lacking:
            raise InputError(
                f"{folder}: expected the weights of every expert, "
                f"found {len(lacking)} missing ({', '.join(lacking[:3])})",
                hint=ONE_MODEL,
            )


def require_layers(where: str, config: Mapping[str, Any], names: Collection[str]) -> None:
    """Not many times the layers of the files: modules take time and memory before their weights are missed."""
    held = {int(found["layer"]) for name in names if (found := _LAYER.search(name))}
    for part, fields in (("", config), *((f"{key}.", inner) for key, inner in config.items())):
        layers = fields.get("num_hidden_layers") if isinstance(fields, dict) else None
        if type(layers) is int and layers > _MOST_LACKING * len(held):
            raise InputError(
                f"{where}: {part}num_hidden_layers: expected the {len(held):,} layers of the files, found {layers:,}",
                hint=ONE_MODEL,
            )


def _config(where: str, fields: Mapping[str, Any]) -> Any:
    kind = _require_family(where, fields)
    auto = _transformers()
    inner = {key: value for key, value in fields.items() if key not in ("model_type", "auto_map")}
    with refusals(f"{where}: transformers refuses the configuration"), _quiet():
        return auto.AutoConfig.for_model(kind, **deepcopy(inner))  # it writes into what is nested


def _require_family(where: str, fields: Mapping[str, Any]) -> str:
    kind = fields.get("model_type")
    if not isinstance(kind, str):
        raise FormatError(f"{where}: model_type: expected text, found {kind!r}")
    if kind not in FAMILIES:
        raise UnknownName("architecture (model_type)", kind, FAMILIES)
    return kind


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """What transformers raises on a bad configuration or bad weights is an InputError that begins with `what`."""
    try:
        yield
    except (InferometerError, MemoryError):
        raise
    except Exception as error:  # a configuration reaches every line of a model's class
        if isinstance(error, RuntimeError) and is_out_of_memory(error):
            raise
        raise InputError(f"{what}: {type(error).__name__}: {' '.join(str(error).split())}", hint=ONE_MODEL) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars and reports, which say again what we raise."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise Unavailable(
            f"transformers is not installed: {error}", hint="Install it with: pip install 'inferometer[torch]'"
        ) from error
    return transformers


def _dtype_option() -> str:
    """The option's name until and since transformers 4.56."""
    import transformers

    major, minor = (int(part) for part in transformers.__version__.split(".")[:2])
    return "dtype" if (major, minor) >= (4, 56) else "torch_dtype"


def _torch_dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)
