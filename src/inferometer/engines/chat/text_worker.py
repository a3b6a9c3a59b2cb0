"""What runs in the guarded process of a model's texts: its tokenizer and its chat template."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from inferometer.engines.chat.chat_template import ChatTemplate
from inferometer.engines.gguf.header import read_header
from inferometer.engines.gguf.metadata import Metadata
from inferometer.engines.gguf.tokenizer import tokenizer_fields
from inferometer.errors import FormatError, Unavailable
from inferometer.side_files import read_side_file

_LARGEST = 256 << 20  # bytes; a tokenizer of 262,144 tokens with its merges is 33 MB
_held: dict[str, Any] = {}
"""`reader`: the tokenizer that was loaded; `template`: the one that was last rendered, with what it was made of."""


def _load(path: str) -> dict[str, int]:
    return _hold(
        path,
        read_side_file(path, most=_LARGEST),
        hint="With the model's own library: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER).",
    )


def _load_gguf(path: str) -> dict[str, int]:
    fields = tokenizer_fields(Metadata(Path(path), read_header(Path(path)).metadata))
    return _hold(path, msgspec.json.encode(fields), hint="Take another file of the model.")


def _hold(path: str, data: bytes, hint: str) -> dict[str, int]:
    """Use the tokenizer of this `tokenizer.json`; how many tokens it has, without and with those that were added."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise Unavailable(
            f"{path}: tokenizers is not installed: {error}", hint="Install it with: pip install 'inferometer[webgpu]'"
        ) from error
    try:
        reader = Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises nothing narrower
        raise FormatError(f"{path}: expected a tokenizer of the tokenizers library: {error}", hint=hint) from error
    _held["reader"] = reader
    reader.decode(reader.encode("a b").ids)  # what only its use shows is an error of loading it
    return {"own": reader.get_vocab_size(with_added_tokens=False), "all": reader.get_vocab_size()}


def _encode(text: str, add_special_tokens: bool) -> list[int]:
    ids: list[int] = _held["reader"].encode(text, add_special_tokens=add_special_tokens).ids
    return ids


def _decode(ids: Sequence[int]) -> str:
    return str(_held["reader"].decode(ids, skip_special_tokens=True))


def _token_to_id(token: str) -> int | None:
    found: int | None = _held["reader"].token_to_id(token)
    return found


def _id_to_token(number: int) -> str | None:
    found: str | None = _held["reader"].id_to_token(number)
    return found


def _render(text: str, special: Mapping[str, str], where: str, messages: Sequence[Mapping[str, str]]) -> str:
    made = (text, special, where)
    if _held.get("template", (None, None))[0] != made:
        _held["template"] = made, ChatTemplate(text, special, where)  # compiling takes longer than a first token
    rendered: str = _held["template"][1].render(messages)
    return rendered


SERVED: Mapping[str, Callable[..., Any]] = {
    "load": _load,
    "load_gguf": _load_gguf,
    "encode": _encode,
    "decode": _decode,
    "token_to_id": _token_to_id,
    "id_to_token": _id_to_token,
    "render": _render,
}
