"""A conversation with a model on WebGPU: questions in, text out as submits come back, and what each answer took.

Tokens of a batch reach the host together, with the submit that they were made in. So the time of a token is its
submit's wall time over the tokens that it gave: a batch that the model ended early gives fewer, and each took longer.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from inferometer.engines.chat.answer import Answer, Ended, OperatorUse, WarmUp
from inferometer.engines.chat.dialogue import Dialogue, OnText, Speaker, Speech, explain_failure
from inferometer.engines.peak_memory import peak_rss_bytes
from inferometer.engines.sampling import Sampling
from inferometer.engines.webgpu.plan.difference import executed_counts
from inferometer.engines.webgpu.program import MOST_STOP_TOKENS
from inferometer.engines.webgpu.run.executor import LoadedModel, Request, Runner, Submission, Timing
from inferometer.errors import InferometerError, InputError

BATCH = 4
"""Decode steps of a submit where nothing else is known."""
_WARM_UP_BATCHES = 2  # the first one after the prompt may still allocate what the second one finds

_clock = time.perf_counter_ns


@dataclass(frozen=True)
class DeviceSampling(Sampling):
    """As `Sampling`, drawn on the device. `repetition_penalty`: divides logits of tokens that occurred; 1: none."""

    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.repetition_penalty < float("inf"):
            raise InputError(f"repetition penalty: expected a number above 0, found {self.repetition_penalty:g}")


class DeviceEngine(Speaker, Protocol):
    """What a conversation needs of `engine.WebGpuEngine`."""

    runner: Runner
    loaded: LoadedModel


@dataclass(frozen=True)
class KernelUse(OperatorUse):
    """Calls of one operator in one phase that one kernel took; `reason`: why it was selected.

    `operator` is `linear:qkv_proj`, the kernel path's operator and its role; `backend` the kernel.
    """

    phase: str = ""


@dataclass(frozen=True)
class DeviceAnswer(Answer):
    """As `Answer`, with what was asked of the runner and the submits that it made; `token_ns` are shares of theirs.

    Attributes:
        prefill_ns: Wall time of the submits up to the one with the first token.
        prompt: The question.
        began_ns: When it came, of `time.perf_counter_ns`.
    """

    prompt: str = ""
    began_ns: int = 0
    request: Request | None = None
    submissions: Sequence[Submission] = ()


@dataclass
class DeviceConversation:
    """Questions and answers so far, of one model and one runner.

    Attributes:
        new_tokens: Of an answer at most, 1 or more.
        batch: Decode steps of one submit.
        timing: The form of each answer's submits; `timestamps` where answers are profiled.
        stop_at_eos: Whether the model may end an answer.
        uses_template: Whether a conversation is put as the model was trained to read it; else its text is only
            continued.
        keeps_cache: Whether an answer after the first reads only what the one before didn't.
    """

    engine: DeviceEngine
    sampling: DeviceSampling = field(default_factory=DeviceSampling)
    new_tokens: int = 64
    batch: int = BATCH
    timing: Timing = "single_pass"
    stop_at_eos: bool = True
    uses_template: bool = True
    keeps_cache: bool = True

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError(f"batch: expected 1 decode step of a submit or more, found {self.batch}")
        self._dialogue = Dialogue(
            self.engine, self.new_tokens, stop_at_eos=self.stop_at_eos, uses_template=self.uses_template
        )
        if len(self._dialogue.eos) > MOST_STOP_TOKENS:
            raise InputError(
                f"{self.engine.name}: expected {MOST_STOP_TOKENS} tokens that end an answer at most, found "
                f"{len(self._dialogue.eos)}",
                hint="--no-stop-at-eos goes on past them.",
            )
        self.reset()

    def reset(self) -> None:
        """Forget everything: the same questions with the same seed get the same answers again."""
        self._dialogue.reset()
        self._answers = 0

    def warm_up(self, text: str) -> WarmUp:
        """Run the prompt `text` and two batches, and forget it: what is made at a first use is made by then.

        Raises:
            InputError: `text` is no prompt; see `ask`.
            InferometerError: The device failed.
        """
        began_ns = _clock()
        prompt = self._dialogue.prompt_with(text)
        room = min(self._dialogue.room_after(prompt), 1 + _WARM_UP_BATCHES * self.batch)
        run = _Run(self._request(prompt, room), self._dialogue.speech(_unheard), began_ns)
        run.go(self.engine.runner)
        if run.failure is not None:
            raise run.failure
        return WarmUp(_clock() - began_ns, run.ttft_ns or 0)

    def ask(self, text: str, on_text: OnText = lambda piece: None) -> DeviceAnswer:
        """The answer, which `on_text` gets in pieces as submits come back.

        Ctrl-C ends the answer, and it stays in the conversation as far as it is. A device that is lost ends it too
        (`Answer.failure`), and then the question is forgotten. What `on_text` raises is raised.

        Raises:
            InputError: The text is empty or no UTF-8, or the conversation doesn't fit into the cache.
        """
        began_ns = _clock()
        prompt = self._dialogue.prompt_with(text)
        room = self._dialogue.room_after(prompt)
        speech = self._dialogue.speech(on_text)
        run = _Run(self._request(prompt, room), speech, began_ns)
        self._answers += 1
        try:
            run.go(self.engine.runner)
            ended: Ended = "eos" if speech.is_over else self._dialogue.full(room)
        except KeyboardInterrupt:
            ended = "interrupted"
        ended = ended if run.failure is None else "failed"
        speech.finish()
        answer = self._answer(run, ended, text)
        if answer.failure is None:
            self._dialogue.remember(text, answer.text)
        return answer

    def _request(self, prompt: Sequence[int], room: int) -> Request:
        sampling = self.sampling
        return Request(
            prompt=tuple(prompt),
            new_tokens=room,
            batch=self.batch,
            timing=self.timing,
            stop=self._dialogue.eos,
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            seed=_seed_of(sampling.seed, self._answers),
            repetition_penalty=sampling.repetition_penalty,
            keeps_cache=self.keeps_cache and self._answers > 0,
        )

    def _answer(self, run: "_Run", ended: Ended, prompt: str) -> DeviceAnswer:
        return DeviceAnswer(
            text=self._dialogue.text_of(run.new, ended),
            tokens=tuple(run.new),
            prompt_tokens=len(run.request.prompt),
            kept_tokens=run.submissions[0].passes[0].position if run.submissions else 0,
            ended=ended,
            ttft_ns=run.ttft_ns,
            prefill_ns=run.prefill_ns,
            token_ns=tuple(run.token_ns),
            total_ns=run.total_ns or _clock() - run.began_ns,
            operators=kernel_uses(self.engine.loaded, run.submissions),
            peak_rss_bytes=peak_rss_bytes(),
            failure=run.failure,
            prompt=prompt,
            began_ns=run.began_ns,
            request=run.request,
            submissions=tuple(run.submissions),
        )


def kernel_uses(loaded: LoadedModel, submissions: Sequence[Submission]) -> tuple[KernelUse, ...]:
    """Which kernel ran each operator of each phase, how often, and why; in the order of the first calls."""
    reasons = {(each.phase, each.op, each.role, each.kernel): each.reason for each in loaded.selections}
    passes = Counter(phase for submission in submissions for pass_ in submission.passes for phase in pass_.phases)
    return tuple(
        KernelUse(op if role is None else f"{op}:{role}", kernel, calls, reasons.get((phase, op, role, kernel)), phase)
        for (phase, op, role), kernels in executed_counts(loaded.program, passes).items()
        for kernel, calls in kernels.items()
    )


class _Run:
    """One request, and the tokens and times of its submits as they come."""

    def __init__(self, request: Request, speech: Speech, began_ns: int) -> None:
        self.request, self.began_ns = request, began_ns
        self.new: list[int] = []
        self.token_ns: list[int] = []
        self.submissions: list[Submission] = []
        self.ttft_ns: int | None = None
        self.prefill_ns: int | None = None
        self.total_ns = 0
        self.failure: InferometerError | None = None
        self._speech = speech
        self._unheard: BaseException | None = None  # what `on_text` raised

    def go(self, runner: Runner) -> None:
        """Run it to its end. A device that fails ends it; what the listener raises is raised."""
        try:
            runner.run(self.request, self._take)
        except Exception as error:  # noqa: BLE001  # drivers and browsers raise what they like
            if self._unheard is not None:
                raise self._unheard from None
            self.failure = _explain(error)

    def _take(self, submission: Submission) -> None:
        now_ns = _clock()
        self.submissions.append(submission)
        fresh = self._until_stop(submission.tokens)
        if not fresh:
            return
        if self.ttft_ns is None:
            self.ttft_ns = now_ns - self.began_ns
            self.prefill_ns = sum(each.wall_ns for each in self.submissions)
            self.token_ns += [0] * (len(fresh) - 1)  # none, where the prompt has submits of its own
        else:
            self.token_ns += _shares(submission.wall_ns, len(fresh))
        self.new += fresh
        self.total_ns = now_ns - self.began_ns
        try:
            for token in fresh:
                self._speech.add(token)
        except BaseException as error:
            self._unheard = error
            raise

    def _until_stop(self, tokens: Sequence[int]) -> list[int]:
        """Those that are the answer's: a batch runs to its end after one that stops."""
        if self._speech.is_over:
            return []
        first = next((i for i, token in enumerate(tokens) if token in self.request.stop), len(tokens))
        return list(tokens[: first + 1])


def _shares(total_ns: int, number: int) -> list[int]:
    """Equal whole parts that add up to the total."""
    each, more = divmod(total_ns, number)
    return [each + (i < more) for i in range(number)]


def _seed_of(seed: int, answers: int) -> int:
    """32 bits for the device, other ones for each answer of a conversation; the first of a seed below 2^32 is that."""
    return (seed ^ seed >> 32 ^ answers * 0x9E3779B9) & 0xFFFFFFFF  # the golden ratio spreads small numbers


def _explain(error: Exception) -> InferometerError:
    return explain_failure(
        error,
        "the engine",
        hint="--debug shows where.",
        memory_hint="A shorter prompt, fewer --new-tokens, a smaller --context or a smaller model needs less.",
    )


def _unheard(piece: str) -> None:
    pass
