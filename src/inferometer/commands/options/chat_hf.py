"""`chat` with transformers and torch: which backends run the operators, on which device, and the recording of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from inferometer.commands.base import Output
from inferometer.commands.options.chat import WARM_UP_TEXT, Session, hold

if TYPE_CHECKING:
    from inferometer.engines.arms import Arm
    from inferometer.engines.chat.answer import Answer, ChatAnswer
    from inferometer.engines.sampling import Sampling


class HfAsked(NamedTuple):
    """What to run, and how."""

    model: str
    backends: tuple[str, ...]
    new_tokens: int
    temperature: float
    top_k: int
    top_p: float
    seed: int
    dtype: str
    on: str | None
    stop_at_eos: bool
    chat_template: bool
    cold: bool
    recording: str | None
    force: bool

    def backend(self) -> str:
        """The choice in one text, as an arm has it."""
        if len(self.backends) > 1 and any("=" not in each for each in self.backends):
            raise click.UsageError("--backend again needs OPERATOR=BACKEND: a model runs once, with one choice.")
        return ",".join(self.backends) or "torch"

    def sampling(self) -> "Sampling":
        """How tokens are chosen."""
        from inferometer.engines.sampling import Sampling

        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)


def chat_with_hf(asked: HfAsked, text: str | None, out: Output) -> int:
    """Answer the text, or line after line; the exit code."""
    backend, sampling = asked.backend(), asked.sampling()
    store = _Store(asked.recording, asked.force)
    arm, device = _choose(backend, asked.on or "cpu")
    session = _get_ready(asked, arm, device, sampling, text)
    with store.recorded():
        return hold(session, text, out)


class _Store:
    """Where a recording goes, if one is wanted; refused at once where it can't."""

    def __init__(self, path: str | None, force: bool) -> None:
        self._path, self._force = path, force
        if path is not None:
            from inferometer.trace.store_writer import StoreFolder

            StoreFolder(Path(path), force=force)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what runs in the block."""
        if self._path is None:
            yield
            return
        from inferometer.record.start import record

        recording = record(self._path, force=self._force)
        try:
            with recording:
                yield
        finally:
            for line in recording.remarks:
                click.echo(line, err=True)
            click.echo(f"written: {self._path}\n  inferometer summary {self._path}", err=True)


def _choose(backend: str, on: str) -> "tuple[Arm, str]":
    from inferometer.commands.options.devices import require_device_at
    from inferometer.engines.arms import parse_arm

    device = require_device_at(on)
    return parse_arm(backend, device), device


def _get_ready(asked: HfAsked, arm: "Arm", device: str, sampling: "Sampling", text: str | None) -> Session:
    from inferometer.commands.options.progress import working
    from inferometer.engines.chat.answer import ChatAnswer, Setup
    from inferometer.engines.chat.conversation import Conversation
    from inferometer.engines.hf.model import load_model

    with working() as say:
        say(f"the model {asked.model}")
        began_ns = time.perf_counter_ns()
        engine = load_model(asked.model, device=device, dtype=asked.dtype, seed=asked.seed)
        load_ns = time.perf_counter_ns() - began_ns
        conversation = Conversation(
            engine, arm, sampling, asked.new_tokens, stop_at_eos=asked.stop_at_eos, uses_template=asked.chat_template
        )
        say("a warm-up")
        warm_up = None if asked.cold else conversation.warm_up(WARM_UP_TEXT if text is None else text)
    setup = Setup(
        model=asked.model,
        source=engine.source,
        device=engine.device,
        dtype=engine.dtype,
        parameters=engine.parameters,
        weight_bytes=engine.weight_bytes,
        arm=arm.name,
        sampling=sampling,
        load_ns=load_ns,
        warm_up=warm_up,
        recording=asked.recording,
        notes=engine.notes,
    )

    def report(answer: "Answer", *, brief: bool = False) -> "ChatAnswer":
        return ChatAnswer(setup, answer, brief)

    return Session(conversation, report)
