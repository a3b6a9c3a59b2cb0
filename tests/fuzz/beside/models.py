"""Models, chat templates and tokenizers, for the campaign.

Each `open_…` uses a damaged sample as its command does; it gives no trace.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.engines.chat.templates import STYLES
from tests.engines.webgpu.model_folders import save_model

from inferometer.engines.chat.tokens import read_tokenizer
from inferometer.engines.webgpu.weights.checkpoint import open_checkpoint
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.errors import InputError

Files = Mapping[str, bytes]

_TALK = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "héllo 🙂"})
_MODELS = ("tiny-llama", "tiny-gemma3", "tiny-qwen2")
_SHARE_HF = 0.2  # of the model folders: the engine whose weights transformers reads


def load_engine() -> None:
    """Import what the first model folder that transformers reads would, once: no case should take its time."""
    if find_spec("transformers") is not None:
        from inferometer.engines.hf.model import load_model

        for name in _MODELS:
            load_model(name)


@cache
def model_folders() -> Sequence[Files]:
    found = []
    with TemporaryDirectory() as folder:
        for name in _MODELS:
            files = _files_in(save_model(Path(folder) / name, name), "model")
            found.append({**files, "model/generation_config.json": b'{"eos_token_id": [1, 2], "temperature": 0.7}'})
            names = [slot.tensor for slot in weight_slots(open_checkpoint(name).spec).values()]
            index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model.safetensors")}
            found.append({**files, "model/model.safetensors.index.json": json.dumps(index).encode()})
    return found


def open_model_folder(path: Path, rng: Random) -> None:
    folder = str(path if path.is_dir() else path.parent)
    if rng.random() < _SHARE_HF and find_spec("transformers") is not None:
        from inferometer.engines.hf.model import load_model

        assert load_model(folder).tokenizer.name
        return
    checkpoint = open_checkpoint(folder)
    assert checkpoint.parameters > 0
    names = sorted(weight_slots(checkpoint.spec))
    for name in rng.sample(names, 2):
        rows = checkpoint.vector(name) if name.endswith(("norm", "bias")) else checkpoint.matrix(name)
        assert rows.size
    with suppress(InputError):  # there may be no tokenizer
        assert isinstance(checkpoint.tokenizer.chat(_TALK), list)


@cache
def chat_templates() -> Sequence[Files]:
    special = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    inside = [
        {
            **_tokenizer_files()[0],
            "model/tokenizer_config.json": json.dumps({**special, "chat_template": text}).encode(),
        }
        for text in STYLES.values()
    ]
    beside = [
        {**_tokenizer_files()[0], "model/chat_template.jinja": text.encode(),
         "model/tokenizer_config.json": json.dumps(special).encode()}
        for text in STYLES.values()
    ]  # fmt: skip
    return [*inside, *beside]


@cache
def _tokenizer_files() -> Sequence[Files]:
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = {token: i for i, token in enumerate(("<unk>", "<s>", "</s>", "he", "ll", "hell", "Ġ", *letters))}
    special = [{"id": i, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False} for i, token in enumerate(("<unk>", "<s>", "</s>"))]  # fmt: skip
    models: list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]] = [
        ({"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
          "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary,
          "merges": [["h", "e"], ["l", "l"], ["he", "ll"]]},
         {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
         {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}),
        ({"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
         {"type": "Split", "pattern": {"Regex": "\\s+|[a-z]+"}, "behavior": "Isolated", "invert": False}, None),
        ({"type": "Unigram", "unk_id": 0, "vocab": [[token, -float(i)] for token, i in vocabulary.items()],
          "byte_fallback": False},
         {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
         {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}),
        ({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
          "max_input_chars_per_word": 100, "vocab": vocabulary}, {"type": "BertPreTokenizer"}, None),
    ]  # fmt: skip
    common = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
              "post_processor": {"type": "TemplateProcessing", "single": [
                  {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                  "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}}  # fmt: skip
    return [
        {
            "model/tokenizer.json": json.dumps(
                {**common, "model": model, "pre_tokenizer": before, "decoder": after}
            ).encode()
        }
        for model, before, after in models
    ]


def tokenizers() -> Sequence[Files]:
    return _tokenizer_files()


def open_tokenizer(path: Path, rng: Random) -> None:
    """Also where a chat template lies next to it."""
    folder = path if path.is_dir() else path.parent
    tokenizer = read_tokenizer(folder, 4_096, {"eos_token_id": 2})
    for ids in (tokenizer.encode("hello héllo 🙂 " * rng.choice((1, 50))), tokenizer.chat(_TALK)):
        assert all(0 <= each < 4_096 for each in ids)
        assert isinstance(tokenizer.decode(ids), str)


def _files_in(folder: Path, called: str) -> Files:
    return {f"{called}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
