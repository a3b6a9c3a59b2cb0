"""Text to tokens and back: a folder's `tokenizer.json`, or bytes for models that have none.

Left out: tokenizers that exist only as a SentencePiece model or as Python code.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from inferometer.engines.chat.chat_template import ChatTemplate
from inferometer.errors import FormatError, InputError, Unavailable

Message = Mapping[str, str]
"""Of a conversation: `role` (system, user, assistant) and `content`."""

_BOS, _EOS, _PAD = 256, 257, 258
BYTES_VOCABULARY = 259
_LARGEST_BYTES_VOCABULARY = 512  # a model of bytes rounds its table up; one with more has tokens of its own
_SAVE = "With the model's own library: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)."


class Tokenizer(Protocol):
    """What a model reads and writes.

    Attributes:
        name: What it is, for reports.
        vocabulary: Number of tokens.
        eos: Those that end an answer.
    """

    name: str
    vocabulary: int
    eos: frozenset[int]

    def encode(self, text: str) -> list[int]:
        """Tokens of a text to go on with, with what begins one.

        Raises:
            InputError: There is no tokenizer, or a token isn't in the model's vocabulary.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """The text, without tokens that only control; what isn't UTF-8 shows as U+FFFD."""

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a conversation whose answer comes next: by the folder's template, or as plain text."""


class BytesTokenizer:
    """A token a byte, after one that begins; what is above the bytes and its own three tokens shows as U+FFFD."""

    name = "bytes"
    vocabulary = BYTES_VOCABULARY
    eos = frozenset({_EOS})

    def encode(self, text: str) -> list[int]:
        """As the protocol says."""
        return [_BOS, *text.encode("utf-8", "surrogateescape")]

    def decode(self, ids: Sequence[int]) -> str:
        """As the protocol says."""
        data = b"".join(bytes((i,)) if i < _BOS else b"" if i <= _PAD else b"\xff" for i in ids)
        return data.decode("utf-8", "replace")

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """As the protocol says."""
        return self.encode(_plain(messages))


class NoTokenizer:
    """Stands in a folder that has none: tokens can be run, text can't. `why` and `hint` are the error's."""

    name = "none"

    def __init__(self, vocabulary: int, eos: frozenset[int], why: str, hint: str) -> None:
        self.vocabulary, self.eos = vocabulary, eos
        self._why, self._hint = why, hint

    def encode(self, text: str) -> list[int]:
        """Raise InputError."""
        self._refuse()

    def decode(self, ids: Sequence[int]) -> str:
        """Raise InputError."""
        self._refuse()

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """Raise InputError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(self._why, hint=self._hint)


class FileTokenizer:
    """A `tokenizer.json`, with the chat template that lies next to it."""

    def __init__(self, path: Path, limit: int, eos: frozenset[int]) -> None:
        try:
            from tokenizers import Tokenizer as Reader
        except ImportError as error:
            raise Unavailable(
                f"{path}: tokenizers is not installed: {error}",
                hint="Install it with: pip install 'inferometer[webgpu]'",
            ) from error
        try:
            self._reader = Reader.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise FormatError(f"{path}: expected a tokenizer of the tokenizers library: {error}", hint=_SAVE) from error
        own = self._reader.get_vocab_size(with_added_tokens=False)
        if own > limit:  # added tokens may lie above: Gemma 3's text models have one for images
            raise InputError(
                f"{path}: expected at most the model's {limit} tokens, found {own}",
                hint="The tokenizer is another model's: take the files of one model.",
            )
        self.name = path.name
        self.vocabulary = self._reader.get_vocab_size()
        self._path, self._limit = path, limit
        special, template = _read_template(path.parent)
        self._template = None if template is None else ChatTemplate(template, special, str(path.parent))
        named = self._reader.token_to_id(special.get("eos_token", ""))
        self.eos = eos if named is None else eos | {named}

    def encode(self, text: str) -> list[int]:
        """As the protocol says."""
        return self._ids(text, add_special_tokens=True)

    def decode(self, ids: Sequence[int]) -> str:
        """As the protocol says."""
        return str(self._reader.decode(list(ids), skip_special_tokens=True))

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """As the protocol says; a template that refuses the messages is an InputError."""
        if self._template is None:
            return self.encode(_plain(messages))
        return self._ids(self._template.render(messages), add_special_tokens=False)  # it writes those that begin

    def _ids(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._reader.encode(text, add_special_tokens=add_special_tokens).ids
        above = next((each for each in ids if each >= self._limit), None)
        if above is not None:
            token = self._reader.id_to_token(above)
            raise InputError(f"{self._path}: {token} is token {above}; the model has only {self._limit}")
        return ids


def read_tokenizer(folder: Path, vocabulary: int, config: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer of a model's folder. Without a `tokenizer.json`: bytes where the model can be one of bytes.

    Args:
        folder: Of the model.
        vocabulary: The model's.
        config: Fields of its `config.json`, for the tokens that end an answer.

    Returns:
        One whose methods raise InputError where there is none for this model.

    Raises:
        FormatError: A file isn't what it should be.
        InputError: It has more tokens than the model.
    """
    path = folder / "tokenizer.json"
    eos = _ids_of(_read_fields(folder / "generation_config.json").get("eos_token_id")) | _ids_of(
        config.get("eos_token_id")
    )
    if path.is_file():
        return FileTokenizer(path, vocabulary, eos)
    if BYTES_VOCABULARY <= vocabulary <= _LARGEST_BYTES_VOCABULARY:
        return BytesTokenizer()
    return NoTokenizer(vocabulary, eos, f"{folder}: expected a tokenizer.json to read text with, found none", _SAVE)


def tokenizer_notes(folder: Path, tokenizer: Tokenizer) -> tuple[str, ...]:
    """What a reader must know of a folder without a `tokenizer.json`; nothing of one that has it."""
    if isinstance(tokenizer, FileTokenizer):
        return ()
    instead = "text goes in as bytes" if isinstance(tokenizer, BytesTokenizer) else "only tokens can be run, no text"
    return (f"{folder} has no tokenizer.json: {instead}",)


def _plain(messages: Sequence[Message]) -> str:
    lines = [f"{message['role']}: {message['content']}\n" for message in messages]
    return "".join([*lines, "assistant: "])


def _read_template(folder: Path) -> tuple[dict[str, str], str | None]:
    """The special tokens that a template may name, and the template."""
    fields = _read_fields(folder / "tokenizer_config.json")
    special = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = fields.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            special[name] = text
    file = folder / "chat_template.jinja"
    if file.is_file():
        return special, file.read_text("utf-8")
    template = fields.get("chat_template")
    if isinstance(template, list):  # several by name
        named = {each.get("name"): each.get("template") for each in template if isinstance(each, dict)}
        template = named.get("default")
    return special, template if isinstance(template, str) else None


def _read_fields(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise FormatError(f"{path}: expected a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise FormatError(f"{path}: expected a JSON object, found a {type(found).__name__}")
    return found


def _ids_of(value: object) -> frozenset[int]:
    values = value if isinstance(value, list) else [value]
    return frozenset(each for each in values if type(each) is int)
