"""What conversations of every engine share: the prompt of a question, the room for its answer, what is remembered."""

from collections.abc import Callable, Sequence
from typing import Protocol

from inferometer.engines.chat.answer import Ended
from inferometer.engines.chat.text_stream import TextStream
from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.memory import is_out_of_memory
from inferometer.errors import InferometerError, InputError, Unavailable

_LONGEST_LINE = 300

OnText = Callable[[str], object]
"""Gets an answer's text in pieces as it comes: whole characters, in order."""


class Speaker(Protocol):
    """What a dialogue must know of an engine; `context_limit`: positions that it has, None: no limit is known."""

    name: str
    vocabulary: int
    context_limit: int | None

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own, or bytes."""


class Dialogue:
    """Questions and answers so far.

    Args:
        engine: Who answers.
        new_tokens: Of an answer at most, 1 or more.
        stop_at_eos: Whether the model may end an answer.
        uses_template: Whether a conversation is put as the model was trained to read it; else its text is only
            continued.
    """

    def __init__(self, engine: Speaker, new_tokens: int, *, stop_at_eos: bool, uses_template: bool) -> None:
        if new_tokens < 1:
            raise InputError(f"new tokens: expected 1 or more, found {new_tokens}")
        self.new_tokens = new_tokens
        self._engine, self._stop_at_eos, self._uses_template = engine, stop_at_eos, uses_template
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._messages: list[dict[str, str]] = []
        self._text = ""

    @property
    def eos(self) -> frozenset[int]:
        """Tokens that end an answer; none where the model mustn't."""
        return frozenset(self._engine.tokenizer.eos) if self._stop_at_eos else frozenset()

    def prompt_with(self, text: str) -> Sequence[int]:
        """Tokens of the conversation with this question.

        Raises:
            InputError: The text is empty or no UTF-8, or the tokenizer is another model's.
        """
        _check_text(text)
        tokenizer = self._engine.tokenizer
        if self._uses_template:
            tokens = list(tokenizer.chat([*self._messages, _message("user", text)]))
        else:
            tokens = list(tokenizer.encode(self._text + text))
        if not tokens:
            raise InputError("the prompt has no tokens", hint="Ask something.")
        if wrong := [token for token in tokens if not 0 <= token < self._engine.vocabulary]:
            raise InputError(
                f"the tokenizer doesn't fit the model: it makes token {wrong[0]}, and the model has "
                f"{self._engine.vocabulary} tokens",
                hint="Give the folder the tokenizer that belongs to these weights.",
            )
        return tokens

    def room_after(self, prompt: Sequence[int]) -> int:
        """New tokens that fit, as many as are wanted at most.

        Raises:
            InputError: None does.
        """
        limit = self._engine.context_limit
        room = self.new_tokens if limit is None else min(self.new_tokens, limit - len(prompt))
        if room < 1:
            raise InputError(
                f"the prompt has {len(prompt):,} tokens; {self._engine.name} has {limit:,} positions, and one at least "
                "is the answer's",
                hint="Shorten it." if not self._messages else "Begin a new conversation: /reset.",
            )
        return room

    def full(self, room: int) -> Ended:
        """Why an answer ends that took all of its room."""
        return "new_tokens" if room == self.new_tokens else "context"

    def remember(self, question: str, answer: str) -> None:
        """Both texts belong to the conversation from now on."""
        self._messages += [_message("user", question), _message("assistant", answer)]
        self._text += question + answer

    def text_of(self, tokens: Sequence[int], ended: Ended) -> str:
        """The text of an answer, without the token that ended it."""
        spoken = tokens[:-1] if ended == "eos" and tokens and tokens[-1] in self._engine.tokenizer.eos else tokens
        return self._engine.tokenizer.decode(spoken) if spoken else ""

    def speech(self, on_text: OnText) -> "Speech":
        """The text of the next answer as its tokens come, for `on_text`."""
        return Speech(self._engine.tokenizer, self.eos, on_text)


class Speech:
    """Tokens in, pieces of text out. `is_over`: one of them ended the answer; what follows it isn't shown."""

    def __init__(self, tokenizer: Tokenizer, eos: frozenset[int], on_text: OnText) -> None:
        self._stream, self._eos, self._on_text = TextStream(tokenizer.decode), eos, on_text
        self.is_over = False

    def add(self, token: int) -> None:
        """The next token."""
        self.is_over = self.is_over or token in self._eos
        if not self.is_over and (piece := self._stream.add(token)):
            self._on_text(piece)

    def finish(self) -> None:
        """Say what was held back: no more tokens come."""
        if piece := self._stream.rest():
            self._on_text(piece)


def explain_failure(error: Exception, who: str, *, hint: str, memory_hint: str) -> InferometerError:
    """What an answer failed with: an error of ours as it is, memory that ran out, or `who` and what it raised."""
    if isinstance(error, InferometerError):
        return error
    first_line = str(error).strip().split("\n")[0][:_LONGEST_LINE]
    if is_out_of_memory(error):
        return Unavailable(
            f"out of memory: {first_line or 'none is left'}", hint=memory_hint
        )  # its frames hold tensors
    failure = InferometerError(f"{who} raised {type(error).__name__}: {first_line}", hint=hint)
    failure.__cause__ = error
    return failure


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _check_text(text: str) -> None:
    if not text.strip():
        raise InputError("the prompt is empty", hint="Ask something.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the prompt is no text in UTF-8: see character {error.start + 1}") from error
