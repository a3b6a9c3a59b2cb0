"""Text to tokens and back: a folder's `tokenizer.json`, a GGUF file's metadata, or bytes for models that have none.

Left out: tokenizers that exist only as a SentencePiece model or as Python code.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import msgspec

from inferometer.engines.gguf.metadata import Metadata
from inferometer.engines.gguf.tokenizer import KIND, ends_of_answers, special_tokens, unknown_kind
from inferometer.errors import FormatError, InputError
from inferometer.guarded import Guarded, GuardedError
from inferometer.side_files import read_side_file

Message = Mapping[str, str]
"""Of a conversation: `role` (system, user, assistant) and `content`."""

_BOS, _EOS, _PAD = 256, 257, 258
BYTES_VOCABULARY = 259
_LARGEST_BYTES_VOCABULARY = 512  # a model of bytes rounds its table up; one with more has tokens of its own
_TEMPLATE = "--no-chat-template puts the text to the model as it is."
_OTHER_FILE = "Take the model's safetensors with its tokenizer.json, or another GGUF file of it."
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


class ChatForm(NamedTuple):
    """How a conversation becomes text.

    Attributes:
        where: What begins the message of an error.
        special: The special tokens that the template may name.
        template: None: there is none, and the conversation is put as plain text.
    """

    where: str
    special: Mapping[str, str]
    template: str | None


class FileTokenizer:
    """A `tokenizer.json`, with the chat template that lies next to it, or both from the metadata of a GGUF file.

    They come with a model and from anybody. A tokenizers library that panics or aborts, and a template that never ends,
    do so in a process of their own (`text_worker.py`).

    Args:
        path: The file.
        limit: The model's number of tokens.
        eos: Those that end an answer, besides the form's `eos_token`.
        form: Of conversations.
        load: What the process calls to read the file.
    """

    def __init__(self, path: Path, limit: int, eos: frozenset[int], form: ChatForm, *, load: str = "load") -> None:
        self.name = path.name
        self._path, self._limit, self._form, self._load_function = path, limit, form, load
        self._worker = Guarded("inferometer.engines.chat.text_worker")
        read = self._load()
        if read["own"] > limit:  # added tokens may lie above: Gemma 3's text models have one for images
            raise InputError(
                f"{path}: expected at most the model's {limit} tokens, found {read['own']}",
                hint="The tokenizer is another model's: take the files of one model.",
            )
        self.vocabulary: int = read["all"]
        named = self._call("token_to_id", form.special.get("eos_token", ""))
        self.eos = eos if named is None else eos | {named}

    def encode(self, text: str) -> list[int]:
        """As the protocol says."""
        return self._ids(text, add_special_tokens=True)

    def decode(self, ids: Sequence[int]) -> str:
        """As the protocol says."""
        return str(self._call("decode", list(ids)))

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """As the protocol says; a template that refuses the messages is an InputError."""
        where, special, template = self._form
        if template is None:
            return self.encode(_plain(messages))
        with _refusals(f"{where}: its chat template can't be used", _TEMPLATE):
            text: str = self._worker.call("render", template, dict(special), where, [*map(dict, messages)])
        return self._ids(text, add_special_tokens=False)  # it writes those that begin

    def _ids(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._call("encode", text, add_special_tokens)
        above = next((each for each in ids if each >= self._limit), None)
        if above is not None:
            token = self._call("id_to_token", above)
            raise InputError(f"{self._path}: {token} is token {above}; the model has only {self._limit}")
        return ids

    def _call(self, function: str, *args: Any) -> Any:
        if not self._worker.is_running:  # an earlier call ended it
            self._load()
        with _refusals(f"{self._path}: the tokenizers library can't use it", _SAVE):
            return self._worker.call(function, *args)

    def _load(self) -> dict[str, int]:
        with _refusals(f"{self._path}: expected a tokenizer of the tokenizers library", _SAVE):
            read: dict[str, int] = self._worker.call(self._load_function, str(self._path))
            return read


@contextmanager
def _refusals(what: str, hint: str) -> Iterator[None]:
    """What went wrong in the worker is an error of the file: its message begins with `what`."""
    try:
        yield
    except GuardedError as error:
        raise FormatError(f"{what}: {error.message}", hint=hint) from error


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
    if os.path.lexists(path):
        return FileTokenizer(path, vocabulary, eos, ChatForm(str(folder), *_read_template(folder)))
    return _without(vocabulary, eos, f"{folder}: expected a tokenizer.json to read text with, found none", _SAVE)


def read_gguf_tokenizer(metadata: Metadata, vocabulary: int) -> Tokenizer:
    """The tokenizer of a GGUF file. Without one: bytes where the model can be one of bytes.

    Args:
        metadata: Of the file.
        vocabulary: The model's.

    Returns:
        One whose methods raise InputError where there is none, or it is of a kind that isn't known here.

    Raises:
        FormatError: A key is missing or wrong.
        InputError: It has more tokens than the model.
    """
    if KIND not in metadata:
        lacking = f"{metadata.path}: {KIND}: expected a tokenizer to read text with, found none"
        return _without(vocabulary, frozenset(), lacking, _OTHER_FILE)
    why = unknown_kind(metadata)
    if why is not None:
        return NoTokenizer(vocabulary, frozenset(), why, _OTHER_FILE)
    form = ChatForm(str(metadata.path), special_tokens(metadata), metadata.optional_text("tokenizer.chat_template"))
    return FileTokenizer(metadata.path, vocabulary, ends_of_answers(metadata), form, load="load_gguf")


def tokenizer_notes(where: Path, tokenizer: Tokenizer) -> tuple[str, ...]:
    """What a reader must know of a folder or file without a tokenizer; nothing of one that has it."""
    if isinstance(tokenizer, FileTokenizer):
        return ()
    instead = "text goes in as bytes" if isinstance(tokenizer, BytesTokenizer) else "only tokens can be run, no text"
    lacking = "tokenizer.json" if where.is_dir() else "tokenizer of a known kind"
    return (f"{where} has no {lacking}: {instead}",)


def _without(vocabulary: int, eos: frozenset[int], why: str, hint: str) -> Tokenizer:
    if BYTES_VOCABULARY <= vocabulary <= _LARGEST_BYTES_VOCABULARY:
        return BytesTokenizer()
    return NoTokenizer(vocabulary, eos, why, hint)


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
    if os.path.lexists(file):
        try:
            return special, read_side_file(file).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{file}: expected text in UTF-8: {error}") from error
    template = fields.get("chat_template")
    if isinstance(template, list):  # several by name
        named = [each for each in template if isinstance(each, dict) and each.get("name") == "default"]
        template = named[-1].get("template") if named else None
    return special, template if isinstance(template, str) else None


def _read_fields(path: Path) -> dict[str, Any]:
    if not os.path.lexists(path):
        return {}
    try:
        found = msgspec.json.decode(read_side_file(path))
    except RecursionError as error:
        raise FormatError(f"{path}: expected a JSON object, found JSON nested too deeply") from error
    except ValueError as error:  # of msgspec, or no UTF-8
        raise FormatError(f"{path}: expected a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise FormatError(f"{path}: expected a JSON object, found a {type(found).__name__}")
    return found


def _ids_of(value: object) -> frozenset[int]:
    values = value if isinstance(value, list) else [value]
    return frozenset(each for each in values if type(each) is int)
