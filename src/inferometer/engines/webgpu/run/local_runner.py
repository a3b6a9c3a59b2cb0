"""Makes an answer token by token on an executor of this process: the prompt in pieces, then batches of decode steps.

The buffer `state` holds the position of one pass, so each piece of a prompt is a submit of its own. A decode step
finds position and token on the device, so that `batch` of them are one submit. Whether a stop token came is seen when
the tokens of a submit are read; steps after it in the same batch ran for nothing (`answer_tokens` counts them).

The cache keeps an answer's keys and values until the next one. A request that `keeps_cache` reads only what follows the
tokens that both have in common; the buffer `seen` gets those from the host.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import numpy as np

from inferometer.engines.kept_prefix import kept_prefix
from inferometer.engines.webgpu.program import MOST_STOP_TOKENS, Pass, Program
from inferometer.engines.webgpu.run.executor import (
    TIMINGS,
    Content,
    Executor,
    LoadPhase,
    OnSubmission,
    OnText,
    Request,
    Submission,
)
from inferometer.engines.webgpu.run.interrupts import interrupts_held_back
from inferometer.engines.webgpu.run.request_words import sampling_words, state_words
from inferometer.errors import InferometerError, InputError


class LocalRunner:
    """A `Runner` over `executor`, which is closed with it."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.adapter = executor.adapter
        self._program: Program | None = None
        self._held: tuple[int, ...] = ()  # tokens whose keys and values are in the cache

    def load(self, program: Program, contents: Mapping[str, Content], on_text: OnText) -> Sequence[LoadPhase]:
        """As `Runner.load`."""
        self._program, self._held = None, ()
        phases = self.executor.load(program, contents, on_text)
        self._program = program
        return phases

    def run(self, request: Request, on_submission: OnSubmission) -> Sequence[Submission]:
        """As `Runner.run`.

        Ctrl-C is seen when a submit is done and `on_submission` has it. It is raised then; the next request begins
        anew.

        Raises:
            InputError: The request asks for what the program or the device can't do.
            DeviceLost: It failed in the middle; what was given to `on_submission` is whole.
        """
        program = self._program
        if program is None:
            raise InferometerError("a runner was asked to run before it had a program")
        check_request(program, request)
        kept = kept_prefix(self._held, request.prompt) if request.keeps_cache else 0
        self._held = request.prompt[:kept]
        self._begin(program, request, kept)
        done: list[Submission] = []
        for passes in _submits(program, request, kept):
            if "prefill" in passes[0].phases:
                self.executor.write("state", state_words(passes[0].position, passes[0].tokens))
            with interrupts_held_back():
                submission = self.executor.submit(passes, request.timing)
                done.append(submission)
                self._held = _held_after(request, done)
                on_submission(submission)
            if request.stop.intersection(submission.tokens):
                break
        return done

    def _begin(self, program: Program, request: Request, kept: int) -> None:
        seen = np.zeros(program.vocabulary, np.uint32)
        seen[list(request.prompt[:kept])] = 1
        self.executor.write("tokens", np.array(request.prompt, np.uint32))
        self.executor.write("sampling", sampling_words(request))
        self.executor.write("seen", seen)

    def close(self) -> None:
        """Close the executor."""
        self._program, self._held = None, ()
        self.executor.close()


def check_request(program: Program, request: Request) -> None:
    """Nothing where the program can do it.

    Raises:
        InputError: It can't; the message says what it could.
    """
    length = len(request.prompt)
    positions = length + request.new_tokens - 1  # the last token is never read
    whole_numbers = {"new tokens": (request.new_tokens, 1), "batch": (request.batch, 1), "top-k": (request.top_k, 0)}
    for name, (value, least) in whole_numbers.items():
        if value < least:
            raise InputError(f"{name}: expected {least} or more, found {value}")
    if not length:
        raise InputError("prompt: expected 1 token or more, found none")
    if positions > program.capacity:
        raise InputError(
            f"{program.name}: a prompt of {length} tokens and {request.new_tokens} new ones take {positions} "
            f"positions, found {program.capacity}",
            hint="Shorten the prompt, ask for fewer new tokens, or load the model with a larger --context.",
        )
    for token in (*request.prompt, *request.stop):
        if not 0 <= token < program.vocabulary:
            raise InputError(f"token {token}: expected one of {program.name}'s vocabulary of {program.vocabulary}")
    if len(request.stop) > MOST_STOP_TOKENS:
        raise InputError(f"stop tokens: expected {MOST_STOP_TOKENS} at most, found {len(request.stop)}")
    if not (isfinite(request.temperature) and request.temperature >= 0):
        raise InputError(f"temperature: expected 0 (greedy) or more, found {request.temperature}")
    if not 0 < request.top_p <= 1:
        raise InputError(f"top-p: expected more than 0, and 1 at most, found {request.top_p}")
    if not (isfinite(request.repetition_penalty) and request.repetition_penalty > 0):
        raise InputError(f"repetition penalty: expected more than 0, found {request.repetition_penalty}")
    if not 0 <= request.seed < 1 << 32:
        raise InputError(f"seed: expected 0 to 2^32 - 1, found {request.seed}")
    if request.timing not in TIMINGS:
        raise InputError(f'timing: expected one of {", ".join(TIMINGS)}, found "{request.timing}"')


def answer_tokens(submissions: Sequence[Submission], stop: frozenset[int]) -> tuple[tuple[int, ...], int]:
    """The tokens of an answer up to its stop token, which is the last; and how many were made after it for nothing."""
    made = tuple(token for submission in submissions for token in submission.tokens)
    kept = next((index + 1 for index, token in enumerate(made) if token in stop), len(made))
    return made[:kept], len(made) - kept


def _held_after(request: Request, done: Sequence[Submission]) -> tuple[int, ...]:
    """The tokens that were read by the end of these submits: steps after a stop token read theirs too."""
    made = tuple(token for submission in done for token in submission.tokens)
    last = done[-1].passes[-1]
    return (*request.prompt, *made)[: last.position + last.tokens]


def _submits(program: Program, request: Request, kept: int) -> Iterator[tuple[Pass, ...]]:
    length, rows = len(request.prompt), program.most_rows
    for first in range(kept, length, rows):
        last = first + rows >= length
        yield (Pass(("prefill", "head") if last else ("prefill",), min(rows, length - first), first),)
    end = length + request.new_tokens - 1
    for first in range(length, end, request.batch):
        yield tuple(Pass(("decode", "head"), 1, position) for position in range(first, min(first + request.batch, end)))
