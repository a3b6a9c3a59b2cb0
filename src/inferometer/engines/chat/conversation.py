"""A conversation with a model: questions in, text out as it comes, and what each answer took.

B sequences (here one), T tokens, V vocabulary.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from inferometer.engines.arms import TORCH_ONLY, Arm, Check, checking, run, using
from inferometer.engines.chat.answer import Answer, Ended, OperatorUse, WarmUp
from inferometer.engines.chat.dialogue import Dialogue, OnText, explain_failure
from inferometer.engines.chat.tokens import Tokenizer
from inferometer.engines.engine import Engine
from inferometer.engines.generation import Sampler, generate
from inferometer.engines.kept_prefix import kept_prefix
from inferometer.engines.peak_memory import begin_device_peak, device_peak_bytes, peak_rss_bytes
from inferometer.engines.sampling import Sampling
from inferometer.errors import InferometerError

WARM_UP_PASSES = 18
"""The prompt and 17 tokens: past a length that 16 divides and one that it doesn't, which Triton compiles apart, and
past the second length, at which torch.compile gives up on fixed ones."""

_clock = time.perf_counter_ns


class ChatEngine(Engine, Protocol):
    """An engine with a tokenizer; `context_limit`: positions that it has at most, None: no limit is known."""

    context_limit: int | None

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own, or bytes."""

    def resume(self, cache: Any, kept: int, length: int) -> Any:
        """As `Engine.start`, for one sequence whose first `kept` positions are those of `cache`, which is used up."""


@dataclass
class Conversation:
    """Questions and answers so far, of one model and one arm.

    Attributes:
        new_tokens: Of an answer at most, 1 or more.
        stop_at_eos: Whether the model may end an answer.
        uses_template: Whether a conversation is put as the model was trained to read it; else its text is only
            continued.
        keeps_cache: Whether an answer after the first reads only what the one before didn't.
    """

    engine: ChatEngine
    arm: Arm = TORCH_ONLY
    sampling: Sampling = field(default_factory=Sampling)
    new_tokens: int = 64
    stop_at_eos: bool = True
    uses_template: bool = True
    keeps_cache: bool = True

    def __post_init__(self) -> None:
        self._dialogue = Dialogue(
            self.engine, self.new_tokens, stop_at_eos=self.stop_at_eos, uses_template=self.uses_template
        )
        self.reset()

    def reset(self) -> None:
        """Forget everything: the same questions with the same seed get the same answers again."""
        self._dialogue.reset()
        self._held: _Held | None = None
        self._sampler = self.sampling.sampler()

    def warm_up(self, text: str) -> WarmUp:
        """Run the prompt `text` and some tokens, and forget it: what compiles at a first call is compiled by then.

        Raises:
            InputError: `text` is no prompt; see `ask`.
            Unavailable: Memory is short.
            InferometerError: A backend failed.
        """
        began_ns = _clock()
        prompt = self._dialogue.prompt_with(text)
        passes = _Run(self.engine, self.arm, prompt, self._dialogue.room_after(prompt), began_ns)
        for _ in passes.tokens(self.sampling.sampler(), most=WARM_UP_PASSES):
            pass
        if passes.failure is not None:
            raise passes.failure
        return WarmUp(_clock() - began_ns, passes.ttft_ns or 0)

    def ask(self, text: str, on_text: OnText = lambda piece: None) -> Answer:
        """The answer, which `on_text` gets in pieces as it comes.

        Ctrl-C ends the answer, and it stays in the conversation as far as it is. A backend that fails ends it too
        (`Answer.failure`), and then the question is forgotten. What `on_text` raises is raised.

        Args:
            text: The question; what was asked before is known to the model.
            on_text: Called with text: whole characters, in order.

        Raises:
            InputError: The text is empty or no UTF-8, or the conversation doesn't fit into the model's context.
        """
        began_ns = _clock()
        prompt = self._dialogue.prompt_with(text)
        passes = _Run(self.engine, self.arm, prompt, self._dialogue.room_after(prompt), began_ns, self._held)
        self._held = None
        begin_device_peak(self.engine.device)
        ended = self._dialogue.full(passes.room)
        speech = self._dialogue.speech(on_text)
        try:
            for token in passes.tokens(self._sampler):
                speech.add(token)
                if speech.is_over:
                    ended = "eos"
                    break
        except KeyboardInterrupt:
            ended = "interrupted"
        ended = ended if passes.failure is None else "failed"
        speech.finish()
        passes.end()
        answer = self._answer(passes, ended)
        if answer.failure is None:
            self._dialogue.remember(text, answer.text)
            self._held = passes.held() if self.keeps_cache else None
        return answer

    def _answer(self, passes: "_Run", ended: Ended) -> Answer:
        return Answer(
            text=self._dialogue.text_of(passes.new, ended),
            tokens=tuple(passes.new),
            prompt_tokens=len(passes.prompt),
            kept_tokens=passes.kept,
            ended=ended,
            ttft_ns=passes.ttft_ns,
            prefill_ns=passes.pass_ns[0] if passes.pass_ns else None,
            token_ns=tuple(passes.pass_ns[1:]),
            total_ns=passes.total_ns,
            operators=passes.watch.uses(),
            peak_rss_bytes=peak_rss_bytes(),
            peak_device_bytes=device_peak_bytes(self.engine.device),
            failure=passes.failure,
        )


class _Watch(Check):
    """Counts what ran each operator, and knows which one runs: it costs a look-up a call."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        self._counts: Counter[tuple[str, str]] = Counter()
        self.running: str | None = None

    def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
        self.running = operator
        out, used = run(self._arm, operator, args, settings)
        self.running = None
        self._counts[operator, used] += 1
        return out

    def uses(self) -> tuple[OperatorUse, ...]:
        """In the order of the first calls."""
        found = []
        for (operator, used), calls in self._counts.items():
            backend, _, reason = used.removesuffix(")").partition(" (")
            found.append(OperatorUse(operator, backend, calls, reason or None))
        return tuple(found)

    def where(self) -> str:
        """Which backend runs what."""
        if self.running is None:
            return "the model"
        return f"{self._arm.backend_of(self.running)}, asked for {self.running},"


@dataclass(frozen=True)
class _Held:
    """A cache and the tokens whose keys and values it holds, by position."""

    cache: Any
    tokens: Sequence[int]


class _Run:
    """The passes of one answer and their times. `room`: tokens it may have, for which the cache is made.

    `held`: what the answer before left; `kept`: tokens of the prompt that needn't be read thanks to it.
    """

    def __init__(
        self,
        engine: ChatEngine,
        arm: Arm,
        prompt: Sequence[int],
        room: int,
        began_ns: int,
        held: _Held | None = None,
    ) -> None:
        self.prompt, self.room = prompt, room
        self.kept = 0 if held is None else kept_prefix(held.tokens, prompt)
        self._cache: Any = None if held is None or not self.kept else held.cache
        self.watch = _Watch(arm)
        self.new: list[int] = []
        self.pass_ns: list[int] = []
        self.ttft_ns: int | None = None
        self.total_ns = 0
        self.failure: InferometerError | None = None
        self._engine, self._arm, self._began_ns = engine, arm, began_ns

    def tokens(self, sampler: Sampler, most: int | None = None) -> Iterator[int]:
        """The new tokens as they come, `most` at most; a backend that fails ends them."""
        passes: Iterator[tuple[Any, Any]] | None = None
        for _ in range(self.room if most is None else min(most, self.room)):
            began_ns = _clock()
            try:
                passes = passes or self._passes(sampler)
                token = self._next_of(passes)
            except Exception as error:  # noqa: BLE001  # kernels of any backend raise what they like
                self.failure = _explain(error, self.watch)
                return
            self._add(token, began_ns)
            yield token

    def end(self) -> None:
        """No more tokens come. An answer without any took the time until here."""
        self.total_ns = self.total_ns or _clock() - self._began_ns

    def held(self) -> _Held | None:
        """What it leaves to the next answer: the last token was chosen and not read. None: nothing was read whole."""
        return _Held(self._cache, (*self.prompt, *self.new[:-1])) if self.new else None

    def _passes(self, sampler: Sampler) -> Iterator[tuple[Any, Any]]:
        import torch

        length = len(self.prompt) + self.room
        if self._cache is None:
            self._cache = self._engine.start(1, length)
        else:
            self._cache = self._engine.resume(self._cache, self.kept, length)
        prompt_BT = torch.tensor([list(self.prompt)], dtype=torch.int64, device=self._engine.device)
        return generate(self._engine, prompt_BT, self.room, sampler, cache=self._cache, kept=self.kept)

    def _next_of(self, passes: Iterator[tuple[Any, Any]]) -> int:
        """One pass; its token's number makes the host wait for the device."""
        with using(self._arm), checking(self.watch):
            _, tokens_B = next(passes)
            return int(tokens_B[0])

    def _add(self, token: int, began_ns: int) -> None:
        now_ns = _clock()
        self.new.append(token)
        self.pass_ns.append(now_ns - began_ns)
        self.total_ns = now_ns - self._began_ns
        if self.ttft_ns is None:
            self.ttft_ns = self.total_ns


def _explain(error: Exception, watch: _Watch) -> InferometerError:
    return explain_failure(
        error,
        watch.where(),
        hint="--backend torch runs the model without kernels of other backends; --debug shows where.",
        memory_hint="A shorter prompt, fewer --new-tokens, --dtype bfloat16 or a smaller model needs less.",
    )
