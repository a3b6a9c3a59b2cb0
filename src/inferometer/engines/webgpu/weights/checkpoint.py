"""A model's weights for the WebGPU engine: from a folder's safetensors, a GGUF file, or random for a name. No torch.

A folder has `config.json` and the weights as safetensors, in one file or several with an index; a GGUF file has all.
That every weight is there in its shape is checked before any is read. Nothing is downloaded, no code is run. Left out:
quantized weights in safetensors.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inferometer.architectures.config import config_of, open_config
from inferometer.architectures.limits import require_sizes
from inferometer.backends.wgsl.weight_formats import F16, WeightFormat, encode
from inferometer.engines.bundled import is_folder, require_config
from inferometer.engines.chat.tokens import Tokenizer, read_gguf_tokenizer, read_tokenizer, tokenizer_notes
from inferometer.engines.gguf.model import find_gguf, open_gguf
from inferometer.engines.hf.weight_files import find_tensors, require_fit, require_plain
from inferometer.engines.safetensors_header import StoredTensor
from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.weights.config import FAMILIES, read_spec
from inferometer.engines.webgpu.weights.safetensors_file import MappedFiles
from inferometer.engines.webgpu.weights.seeded import RandomCheckpoint
from inferometer.engines.webgpu.weights.slots import (
    Slot,
    is_of_seeing,
    require_slot,
    require_span,
    stored_name,
    weight_slots,
)
from inferometer.engines.webgpu.weights.weight_reader import WeightReader
from inferometer.errors import InputError

_ROWS_COMPARED = 64
_HEAD = "lm_head.weight"


def open_checkpoint(model: str, *, seed: int = 0) -> "FileCheckpoint | RandomCheckpoint":
    """A model's plain numbers and where its weights come from; nothing large is read yet.

    Args:
        model: A folder with `config.json` and safetensors, a GGUF file or a folder with one; or the name of a bundled
            model (`bundled_names`) or of a published one's dimensions (`Llama-3.2-1B`), which get random weights. What
            is there goes first.
        seed: Of random weights: the numbers that `hf.load_model` gives the same name and seed.

    Raises:
        InputError: The folder lacks something, its files don't fit each other, or the engine can't run the model.
        FormatError: A file isn't what it should be: cut off, no JSON.
        UnknownName: No such model, or another family.
        Unavailable: The model has a tokenizer, and the tokenizers library isn't installed.
    """
    gguf = find_gguf(model)
    if gguf is not None:
        return _of_gguf(gguf)
    if is_folder(model):
        return _of_folder(Path(model))
    named = require_config(model, FAMILIES)
    spec = read_spec(config_of(named.config, where=named.name, name=named.name))
    return RandomCheckpoint(spec, dict(named.config), seed)


def _of_folder(folder: Path) -> "FileCheckpoint":
    config = open_config(folder)
    require_plain(folder, config.whole, config.fields)
    spec, fields = read_spec(config), dict(config.fields)
    reader = WeightReader(MappedFiles().rows)
    return FileCheckpoint(
        spec, folder, fields, find_tensors(folder), reader, lambda: read_tokenizer(folder, spec.vocab, fields)
    )


def _of_gguf(path: Path) -> "FileCheckpoint":
    model = open_gguf(path)
    require_sizes(model.fields, str(path))
    spec = read_spec(config_of(model.fields, where=str(path), name=path.stem))
    reader = WeightReader(
        lambda name, _, first, last: model.stored(name, first, last),
        lambda name, _, first, last: model.blocks(name, first, last),
    )
    return FileCheckpoint(
        spec, path, model.fields, model.tensors, reader, lambda: read_gguf_tokenizer(model.metadata, spec.vocab)
    )


class FileCheckpoint:
    """Weights of a folder, or of a GGUF file; a `Checkpoint`.

    Args:
        spec: The model.
        place: The folder or file.
        config: Fields of its `config.json`.
        found: Where its tensors lie.
        reader: Of their numbers.
        read_tokenizer: Reads its tokenizer, once weights and configuration are known to fit.

    Attributes:
        spec: The model.
        source: The folder or file.
        parameters: How many numbers; a tied table counts once, what isn't the language model's doesn't.
        config: Fields of its `config.json`; of a model that sees, those of the text.
        tokenizer: Its own.
    """

    def __init__(
        self,
        spec: ModelSpec,
        place: Path,
        config: dict[str, Any],
        found: Mapping[str, StoredTensor],
        reader: WeightReader,
        read_tokenizer: Callable[[], Tokenizer],
    ) -> None:
        self.spec, self.source, self.config = spec, str(place), config
        self._slots = weight_slots(spec)
        self.parameters = sum(math.prod(slot.shape) for slot in self._slots.values())
        self._files = reader
        self._stored, ignored = _place(place, spec, self._slots, found)
        if spec.tied and stored_name(_HEAD, found) in found:
            ignored.append(self._require_same_head(found))
        self.tokenizer = read_tokenizer()
        self._notes = (*ignored, *tokenizer_notes(place, self.tokenizer))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know; of numbers that float16 can't hold well, those that were read so far."""
        return (*self._notes, *self._files.notes())

    def matrix(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """As the protocol says; a number that float16 can't hold, or none that is finite, is an InputError."""
        slot = require_slot(self._slots, name, matrix=True)
        first, last = require_span(name, slot, first, last)
        return self._files.halves(slot.tensor, self._stored[slot.tensor], first, last)

    def floats(self, name: str, first: int = 0, last: int | None = None) -> Any:
        """As the protocol says; numbers that aren't finite are an InputError."""
        slot = require_slot(self._slots, name, matrix=True)
        first, last = require_span(name, slot, first, last)
        return self._files.floats(slot.tensor, self._stored[slot.tensor], first, last)

    def own_format(self, name: str) -> WeightFormat:
        """As the protocol says."""
        return self._files.own_format(self._stored[require_slot(self._slots, name, matrix=True).tensor])

    def rows(self, name: str, weights: WeightFormat, first: int = 0, last: int | None = None) -> Any:
        """As the protocol says; numbers and scales that aren't finite are an InputError."""
        if weights is F16:
            return self.matrix(name, first, last)
        if weights is not self.own_format(name):
            return encode(self.floats(name, first, last), weights)
        slot = require_slot(self._slots, name, matrix=True)
        first, last = require_span(name, slot, first, last)
        return self._files.coded(slot.tensor, self._stored[slot.tensor], first, last)

    def vector(self, name: str) -> Any:
        """As the protocol says; numbers that aren't finite are an InputError."""
        slot = require_slot(self._slots, name, matrix=False)
        return self._files.floats(slot.tensor, self._stored[slot.tensor])

    def source_bytes(self, name: str, first: int = 0, last: int | None = None) -> int:
        """As the protocol says."""
        slot = require_slot(self._slots, name)
        first, last = require_span(name, slot, first, last)
        stored = self._stored[slot.tensor]
        return (stored.end - stored.start) // slot.shape[0] * (last - first)

    def _require_same_head(self, found: Mapping[str, StoredTensor]) -> str:
        """A note of a head that is stored next to the table it is tied to; an InputError where it is another one.

        Compared are the first, middle and last rows: the whole would be the largest read of all.
        """
        rows, name = self.spec.vocab, stored_name(_HEAD, found)
        head, table = found[name], self._stored[self._slots["embed"].tensor]
        for first in (0, rows // 2, max(0, rows - _ROWS_COMPARED)):
            last = min(rows, first + _ROWS_COMPARED)
            if head.shape != table.shape or not np.array_equal(
                *(self._files.floats(name, tensor, first, last) for tensor in (head, table))
            ):
                raise InputError(
                    f"{self.source}: {name}: expected the embedding's numbers (tie_word_embeddings), found others",
                    hint="Set tie_word_embeddings to false in config.json where the model has a head of its own.",
                )
        return f"{self.source}: {name} is stored next to the table that it is tied to; it isn't read"


def _place(
    place: Path, spec: ModelSpec, slots: Mapping[str, Slot], found: Mapping[str, StoredTensor]
) -> tuple[dict[str, StoredTensor], list[str]]:
    """Where each tensor of the text model lies, and notes of what is left aside.

    Raises:
        InputError: The files and the configuration are of two models.
    """
    found, parts = _with_parts(slots, found)
    names = {slot.tensor: stored_name(slot.tensor, found) for slot in slots.values()}
    shapes = [
        f"{name} {list(found[name].shape)} for {list(slot.shape)}"
        for slot in slots.values()
        if (name := names[slot.tensor]) in found and found[name].shape != slot.shape
    ]
    spare = set(found) - set(names.values()) - parts - ({stored_name(_HEAD, found)} if spec.tied else set())
    seeing = {name for name in spare if spec.family == "gemma3" and is_of_seeing(name)}
    missing = [name for name in names.values() if name not in found]
    require_fit(place, missing=missing, unexpected=sorted(spare - seeing), of_another_shape=shapes)
    notes = []
    if seeing:
        count = sum(math.prod(found[name].shape) for name in seeing)
        notes.append(f"{place}: only its text part is run: {len(seeing)} tensors ({count:,} numbers) aren't read")
    return {tensor: found[name] for tensor, name in names.items()}, notes


def _with_parts(
    slots: Mapping[str, Slot], found: Mapping[str, StoredTensor]
) -> tuple[dict[str, StoredTensor], frozenset[str]]:
    """The tensors, those of experts that lie in one by the names that they have apart; and the names of what is one."""
    whole, parts = dict(found), set[str]()
    for slot in slots.values():
        name = stored_name(slot.tensor, found)
        joined = slot.joined
        if joined is None or name in found or (of_all := found.get(stored_name(joined.tensor, found))) is None:
            continue
        parts.add(stored_name(joined.tensor, found))
        if of_all.shape != joined.shape:  # reported by its own name
            whole[name] = of_all
            continue
        item_bytes = (of_all.end - of_all.start) // math.prod(of_all.shape)
        start = of_all.start + joined.first * item_bytes
        end = start + math.prod(slot.shape) * item_bytes
        whole[name] = StoredTensor(of_all.path, of_all.dtype, slot.shape, start, end)
    return whole, frozenset(parts)
