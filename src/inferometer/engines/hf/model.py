"""A Hugging Face model whose operators any backend can run: from a local folder or GGUF file, or from a seed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inferometer.backends.torch.catalogue import torch_unavailable
from inferometer.engines.bundled import bundled_names, is_folder, require_config
from inferometer.engines.chat.tokens import (
    BytesTokenizer,
    Tokenizer,
    read_gguf_tokenizer,
    read_tokenizer,
    tokenizer_notes,
)
from inferometer.engines.gguf.model import find_gguf, open_gguf
from inferometer.engines.hf.decoder import Decoder
from inferometer.engines.hf.gguf_loading import load_gguf
from inferometer.engines.hf.key_values import KeyValues
from inferometer.engines.hf.loading import DTYPES, build_random, load_folder, refusals
from inferometer.engines.memory import memory_for, require_memory
from inferometer.errors import InputError, Unavailable, UnknownName

__all__ = ["HfEngine", "bundled_names", "load_model"]


class HfEngine:
    """A model that runs; an `Engine`.

    Attributes:
        name: The bundled name, or the folder's or file's.
        device: `cpu`, `cuda:0`.
        dtype: Of weights and activations.
        vocabulary: Rows of its table of tokens.
        source: `random weights, seed 0`, or the folder or file.
        config: Fields of its `config.json`.
        tokenizer: Text to tokens and back.
        parameters: Numbers that it has; a table that is used twice counts once.
        weight_bytes: Memory of these.
        context_limit: Positions that it was made for; None where its configuration doesn't say.
        model: The transformers model, which our passes read and don't change.
        notes: What a reader of results must know.
    """

    def __init__(
        self,
        model: Any,
        config: Mapping[str, Any],
        tokenizer: Tokenizer,
        *,
        name: str,
        source: str,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, dict(config)
        self.name, self.source, self.notes = name, source, notes
        weights = list(model.parameters())
        self.device = str(weights[0].device)
        self.dtype = str(weights[0].dtype).removeprefix("torch.")
        self.parameters = sum(weight.numel() for weight in weights)
        self.weight_bytes = sum(weight.numel() * weight.element_size() for weight in weights)
        self.vocabulary = int(model.get_input_embeddings().weight.shape[0])
        limit = self.config.get("max_position_embeddings")
        self.context_limit = limit if type(limit) is int else None
        self._decoder = Decoder(model)
        self._torch_dtype = weights[0].dtype

    def cache_bytes(self, batch: int, length: int) -> int:
        """Memory of the keys and values of `batch` sequences of `length` positions."""
        decoder = self._decoder
        numbers = 2 * len(decoder.layers) * batch * decoder.key_heads * length * decoder.width
        return int(numbers * self._torch_dtype.itemsize)

    def start(self, batch: int, length: int) -> KeyValues:
        """An empty cache for `batch` sequences of at most `length` positions.

        Raises:
            InputError: More positions than the model was made for.
            Unavailable: Too little memory.
        """
        if batch < 1 or length < 1:
            raise InputError(f"{self.name}: expected at least one sequence and position, found {batch} and {length}")
        if self.context_limit is not None and length > self.context_limit:
            raise InputError(
                f"{self.name}: expected at most {self.context_limit} positions (max_position_embeddings), "
                f"found {length}",
                hint="Ask for fewer prompt tokens or new tokens.",
            )
        what = f"{self.name}: keys and values of {batch} sequences of {length} positions"
        wanted_bytes = self.cache_bytes(batch, length)
        require_memory(what, wanted_bytes, self.device)
        decoder = self._decoder
        with memory_for(what, wanted_bytes, self.device):
            return KeyValues(
                *(len(decoder.layers), batch, decoder.key_heads, length, decoder.width),
                dtype=self._torch_dtype,
                device=self.device,
            )

    def resume(self, cache: KeyValues, kept: int, length: int) -> KeyValues:
        """A cache of at most `length` positions that holds the first `kept` of another one, which is used up.

        Raises:
            InputError, Unavailable: As `start`.
        """
        if cache.capacity >= length:
            cache.filled = kept
            return cache
        larger = self.start(cache.batch, length)
        larger.take(cache, kept)
        return larger

    def forward(self, cache: KeyValues, tokens_BT: Any) -> Any:
        """Logits [B, V] of the last position, in the model's dtype.

        Raises:
            InputError: The cache has no room for them.
            Unavailable: Out of memory.
        """
        import torch

        batch, length = tokens_BT.shape
        what = f"{self.name}: a pass over {batch} sequences of {length} tokens"
        held = self.weight_bytes + self.cache_bytes(cache.batch, cache.capacity)
        with torch.no_grad(), memory_for(what, held, self.device):
            return self._decoder(cache, tokens_BT)


def load_model(model: str, *, device: str = "cpu", dtype: str = "float32", seed: int = 0) -> HfEngine:
    """A model with its weights, ready to run.

    Args:
        model: A folder with `config.json` and safetensors, a GGUF file or a folder with one; or the name of a bundled
            one (`bundled_names`) or of a published one's dimensions (`llama_3_1_8b`), which get random weights. What
            is there goes first.
        device: `cpu`, `cuda`, `cuda:1`.
        dtype: `float32`, `bfloat16` or `float16`.
        seed: Of random weights: the same seed gives the same weights, on every device.

    Raises:
        InputError: The folder lacks something, or its files don't fit each other (FormatError: aren't what they should
            be).
        UnknownName: No such model, dtype, or family of models.
        Unavailable: The device, a library or enough memory isn't there.
    """
    if dtype not in DTYPES:
        raise UnknownName("dtype", dtype, DTYPES)
    why = torch_unavailable(device)
    if why is not None:
        raise Unavailable(why)
    gguf = find_gguf(model)
    if gguf is not None:
        return _from_gguf(gguf, device, dtype)
    if is_folder(model):
        return _from_folder(Path(model), device, dtype)
    named = require_config(model)
    built = build_random(named.name, named.config, seed, device=device, dtype=dtype)
    source = f"random weights, seed {seed}"
    return HfEngine(built, named.config, BytesTokenizer(), name=named.name, source=source)


def _from_folder(folder: Path, device: str, dtype: str) -> HfEngine:
    built, fields = load_folder(folder, device=device, dtype=dtype)
    vocabulary = int(built.get_input_embeddings().weight.shape[0])
    tokenizer = read_tokenizer(folder, vocabulary, fields)
    name, notes = folder.resolve().name, tokenizer_notes(folder, tokenizer)
    with refusals(f"{folder}: its modules can't be read"):
        return HfEngine(built, fields, tokenizer, name=name, source=str(folder), notes=notes)


def _from_gguf(path: Path, device: str, dtype: str) -> HfEngine:
    opened = open_gguf(path)
    built = load_gguf(opened, device=device, dtype=dtype)
    tokenizer = read_gguf_tokenizer(opened.metadata, int(built.get_input_embeddings().weight.shape[0]))
    notes = tokenizer_notes(path, tokenizer)
    return HfEngine(built, opened.fields, tokenizer, name=path.stem, source=str(path), notes=notes)
