"""A model in a GGUF file as transformers would have it: fields of a `config.json`, weights by their names in modules.

Rows of weights come as float32, or as the blocks that lie in the file, for who multiplies with these.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from inferometer.engines.gguf.families import ROPE_FACTORS, find_family
from inferometer.engines.gguf.header import MAGIC, Header, read_header
from inferometer.engines.gguf.metadata import Metadata
from inferometer.engines.gguf.tensor_types import viewed
from inferometer.engines.safetensors_header import StoredTensor
from inferometer.engines.stored_numbers import widen
from inferometer.errors import InputError
from inferometer.side_files import open_plain

_SUFFIX = ".gguf"
_NORM = "norm.weight"
_PAIRED = {".self_attn.q_proj.": "num_attention_heads", ".self_attn.k_proj.": "num_key_value_heads"}


class GgufModel:
    """One file. It is mapped when numbers are first read, and must not change while this lives.

    Rows of queries and keys are in the order of transformers' modules, whatever the file's. A vector has rows of one
    number.

    Attributes:
        path: The file.
        metadata: Of the file.
        fields: Of a `config.json`.
        tensors: By transformers' names; `dtype` is a name of `tensor_types.TYPES`.

    Raises:
        FormatError: It lacks what a configuration needs, or has it wrong.
        UnknownName: Another family.
        InputError: The model isn't of a form that can be run here.
    """

    def __init__(self, header: Header) -> None:
        self.path = header.path
        self.metadata = Metadata(header.path, header.metadata)
        self._family = find_family(self.metadata)
        weights = {name: tensor for name, tensor in header.tensors.items() if name != ROPE_FACTORS}
        self.tensors = {self._family.name(name): tensor for name, tensor in weights.items()}
        self._require_whole(header)
        factors = header.tensors.get(ROPE_FACTORS)
        shapes = {name: tensor.shape for name, tensor in header.tensors.items()}
        numbers = None if factors is None else widen(viewed(self._rows(factors, 0, factors.shape[0]), factors.dtype))
        self.fields = self._family.fields(self.metadata, shapes, None if numbers is None else numbers.reshape(-1))

    def blocks(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """Rows as they lie in the file: uint8 [rows, bytes of a row].

        What the file adds to the weights of a norm is still in them.
        """
        tensor = self.tensors[name]
        last = tensor.shape[0] if last is None else last
        heads = self._paired_heads(name)
        if not heads:
            return self._rows(tensor, first, last)
        width = tensor.shape[0] // heads
        begin, end = first // width * width, -(-last // width) * width  # whole heads, whose rows are mixed
        pairs_HPtB = self._rows(tensor, begin, end).reshape((end - begin) // width, width // 2, 2, -1)
        return pairs_HPtB.swapaxes(1, 2).reshape(end - begin, -1)[first - begin : last - begin]

    def stored(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """Rows [rows, K], or numbers of a vector [n]: F16 and F32 as they are, BF16 as its bits, others as float32.

        Raises:
            Unavailable: They are quantized, and the gguf library isn't installed.
        """
        tensor = self.tensors[name]
        numbers_RK = viewed(self.blocks(name, first, last), tensor.dtype)
        if not (offset := self._offset(name)):
            return numbers_RK if len(tensor.shape) > 1 else numbers_RK.reshape(-1)
        return widen(numbers_RK).reshape(-1) - np.float32(offset)

    def floats(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """As `stored`, all as float32 that may be written to."""
        found = self.stored(name, first, last)
        return found if found.dtype == np.float32 and found.flags.writeable else widen(found)

    def _rows(self, tensor: StoredTensor, first: int, last: int) -> Any:
        row_bytes = (tensor.end - tensor.start) // tensor.shape[0]
        data = self._bytes[tensor.start + first * row_bytes : tensor.start + last * row_bytes]
        return data.reshape(last - first, row_bytes)

    @cached_property
    def _bytes(self) -> Any:
        return np.asarray(np.memmap(self.path, np.uint8, mode="r"))

    def _paired_heads(self, name: str) -> int:
        """How many heads' rows lie in pairs; 0: none."""
        field = next((field for part, field in _PAIRED.items() if part in name), None)
        return self.fields[field] if field is not None and self._family.pairs else 0

    def _offset(self, name: str) -> float:
        return self._family.norm_offset if name.endswith(_NORM) else 0.0

    def _require_whole(self, header: Header) -> None:
        parts = self.metadata.integer("split.count", 0)
        if parts > 1:
            raise InputError(
                f"{self.path}: expected a whole model, found one of {parts} parts",
                hint="Join them with llama.cpp's llama-gguf-split --merge.",
            )
        if len(self.tensors) < len(header.tensors) - (ROPE_FACTORS in header.tensors):
            raise InputError(f"{self.path}: expected one tensor for each weight, found two of one name")


def open_gguf(path: Path) -> GgufModel:
    """The model of a file, of which only the header is read.

    Raises:
        FormatError: It is no GGUF file, or not whole; see `read_header` and `GgufModel`.
        InputError: It can't be read, or the model can't be run here.
        UnknownName: Another family.
    """
    return GgufModel(read_header(path))


def find_gguf(model: str) -> Path | None:
    """The GGUF file of what a user called a model: itself, or the one of a folder without safetensors; None: neither.

    Raises:
        InputError: The folder has several.
    """
    path = Path(model)
    try:
        if path.is_file():
            return path if path.suffix == _SUFFIX or _begins_one(path) else None
        found = sorted(path.glob(f"*{_SUFFIX}")) if path.is_dir() else []
    except (OSError, ValueError):  # longer than a path may be, or with a null character
        return None
    if not found or any(path.glob("*.safetensors")):
        return None
    if len(found) > 1:
        raise InputError(
            f"{path}: expected one GGUF file, found {', '.join(each.name for each in found[:4])}",
            hint="Name the one to run instead of the folder.",
        )
    return found[0]


def _begins_one(path: Path) -> bool:
    with open_plain(path) as file:
        return file.read(len(MAGIC)) == MAGIC
