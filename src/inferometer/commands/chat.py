"""`inferometer chat`: a model answers, and each answer's times, memory and backends are told."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from inferometer.commands.base import Output, command, output_options
from inferometer.commands.choosing import Number

if TYPE_CHECKING:
    from inferometer.engines.answer import Answer, ChatAnswer, Setup
    from inferometer.engines.arms import Arm
    from inferometer.engines.conversation import Conversation
    from inferometer.engines.sampling import Sampling

_INTERRUPTED = 130
_WARM_UP_TEXT = "Hello"  # where no prompt is known yet
_WORDS = ("/exit", "/reset")
_GREETING = "An empty line does nothing, /reset begins anew, /exit or Ctrl-D leaves; Ctrl-C stops an answer."


@command(
    "chat",
    help="Let a model answer, and tell what the answer took.\n\n"
    "MODEL is a bundled name (tiny-llama, tiny-qwen3, …: random weights, so the text is noise) or a folder with "
    "config.json, safetensors and a tokenizer; nothing is downloaded. With --prompt, or with a prompt on standard "
    "input, it answers once; else it asks for one line after the other. Text goes to stdout as it comes, all else to "
    "stderr: time to first token, time of each further token, tokens a second, memory, and the backend that really "
    "ran each operator. A warm-up of the same prompt comes first and isn't counted. Needs the extra torch.",
    example='inferometer chat tiny-llama --prompt "Hello"',
)
@click.argument("model")
@click.option("--prompt", metavar="TEXT", help="Answer this once; - reads it from standard input.")
@click.option("--backend", "backends", metavar="CHOICE", multiple=True, help=(
    "torch, compile or triton, or by operator: rms_norm=triton,attention=compile. Repeatable.  "
    "[default: torch]"))  # fmt: skip
@click.option("--new-tokens", type=click.IntRange(1, 100_000), default=64, show_default=True, metavar="N",
              help="Tokens of an answer, at most.")  # fmt: skip
@click.option("--temperature", type=Number(0, 100), default=0.0, show_default=True,
              help="0: always the most probable token.")  # fmt: skip
@click.option("--top-k", type=click.IntRange(0), default=0, metavar="K", help="Draw from the K most probable only.")
@click.option("--top-p", type=Number(0, 1, min_open=True), default=1.0, metavar="P",
              help="Draw from the fewest whose probabilities reach P.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
              help="Of random weights and draws.")  # fmt: skip
@click.option("--dtype", type=click.Choice(("float32", "bfloat16", "float16")), default="float32", show_default=True,
              help="Of weights and activations.")  # fmt: skip
@click.option("--on", metavar="DEVICE", default="cpu", show_default=True, help="Where to run: cpu, cuda, cuda:1.")
@click.option("--stop-at-eos/--no-stop-at-eos", default=True, show_default=True,
              help="Whether the model may end its answer.")  # fmt: skip
@click.option("--chat-template/--no-chat-template", default=True, show_default=True,
              help="Put the prompt as the model was trained to read it, or continue it as it is.")  # fmt: skip
@click.option("--cold", is_flag=True, help="No warm-up: the first answer includes what compiles at a first call.")
@click.option("--record", "recording", metavar="OUT.ifm", help="Keep a recording of the answers for other commands.")
@click.option("--force", is_flag=True, help="Replace OUT.ifm.")
@output_options("json")
def run(model: str, prompt: str | None, recording: str | None, force: bool, out: Output, **options: Any) -> int:
    import gc

    gc.enable()  # off in commands, which are short
    asked = _Asked(model=model, **options)
    backend, sampling = asked.backend(), asked.sampling()
    asks_lines = prompt is None and _is_terminal(sys.stdin)
    if asks_lines and out.form:
        raise click.UsageError("--json needs a --prompt, or one on standard input: it prints one document.")
    text = None if asks_lines else _whole_prompt(prompt)
    store = _Store(recording, force)
    arm, device = _choose(backend, asked.on)
    setup, conversation = _get_ready(asked, arm, device, sampling, text, recording)
    with store.recorded():
        if text is None:
            return _converse(conversation, setup, out)
        return _answer_once(conversation, setup, text, out)


class _Asked(NamedTuple):
    """What to run, and how."""

    model: str
    backends: tuple[str, ...]
    new_tokens: int
    temperature: float
    top_k: int
    top_p: float
    seed: int
    dtype: str
    on: str
    stop_at_eos: bool
    chat_template: bool
    cold: bool

    def backend(self) -> str:
        """The choice in one text, as an arm has it."""
        if len(self.backends) > 1 and any("=" not in each for each in self.backends):
            raise click.UsageError("--backend again needs OPERATOR=BACKEND: a model runs once, with one choice.")
        return ",".join(self.backends) or "torch"

    def sampling(self) -> "Sampling":
        """How tokens are chosen."""
        from inferometer.engines.sampling import Sampling

        return Sampling(self.temperature, self.top_k, self.top_p, self.seed)


class _Store:
    """Where a recording goes, if one is wanted; refused at once where it can't."""

    def __init__(self, path: str | None, force: bool) -> None:
        self._path, self._force = path, force
        if path is not None:
            from inferometer.trace.store import StoreFolder

            StoreFolder(Path(path), force=force)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what runs in the block."""
        if self._path is None:
            yield
            return
        from inferometer.record.recorder import record

        recording = record(self._path, force=self._force)
        try:
            with recording:
                yield
        finally:
            for line in recording.remarks:
                click.echo(line, err=True)
            click.echo(f"written: {self._path}\n  inferometer summary {self._path}", err=True)


def _choose(backend: str, on: str) -> "tuple[Arm, str]":
    from inferometer.commands.devices import require_device_at
    from inferometer.engines.arms import parse_arm

    device = require_device_at(on)
    return parse_arm(backend, device), device


def _get_ready(
    asked: _Asked, arm: "Arm", device: str, sampling: "Sampling", text: str | None, recording: str | None
) -> "tuple[Setup, Conversation]":
    from inferometer.commands.progress import working
    from inferometer.engines.answer import Setup
    from inferometer.engines.conversation import Conversation
    from inferometer.engines.hf import load_model

    with working() as say:
        say(f"the model {asked.model}")
        began_ns = time.perf_counter_ns()
        engine = load_model(asked.model, device=device, dtype=asked.dtype, seed=asked.seed)
        load_ns = time.perf_counter_ns() - began_ns
        conversation = Conversation(
            engine, arm, sampling, asked.new_tokens, stop_at_eos=asked.stop_at_eos, uses_template=asked.chat_template
        )
        say("a warm-up")
        warm_up = None if asked.cold else conversation.warm_up(_WARM_UP_TEXT if text is None else text)
    return Setup(
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
        recording=recording,
        notes=engine.notes,
    ), conversation


def _answer_once(conversation: "Conversation", setup: "Setup", text: str, out: Output) -> int:
    answer = conversation.ask(text, _ignore if out.form else _Screen(out).show)
    result = _result(setup, answer)
    if out.form:
        out.write_json(result.as_json())
    else:
        out.write("\n")
        _tell(result)
    if answer.failure is not None:
        raise answer.failure
    return _INTERRUPTED if answer.ended == "interrupted" else 0


def _converse(conversation: "Conversation", setup: "Setup", out: Output) -> int:
    from inferometer.errors import InferometerError

    click.echo(_GREETING, err=True)
    operators: Any = None
    while (line := _next_line()) is not None:
        word = line.strip()
        if word == "/exit":
            break
        if word.startswith("/") and " " not in word:
            _obey(word, conversation)
        elif word:
            try:
                operators = _answer_line(conversation, setup, word, out, operators)
            except InferometerError as error:
                click.echo(f"error: {error}", err=True)
    return 0


def _answer_line(conversation: "Conversation", setup: "Setup", text: str, out: Output, known: Any) -> Any:
    """What ran the operators, which is told where it isn't what is `known`."""
    answer = conversation.ask(text, _Screen(out).show)
    out.write("\n")
    ran = {(use.operator, use.backend, use.reason) for use in answer.operators}
    _tell(_result(setup, answer, brief=ran == known))
    if answer.ended == "interrupted":
        click.echo("Ctrl-C stopped the answer; once more leaves.", err=True)
    if answer.failure is not None:
        raise answer.failure
    return ran


def _obey(word: str, conversation: "Conversation") -> None:
    if word == "/reset":
        conversation.reset()
        click.echo("a new conversation", err=True)
    else:
        click.echo(f"no command {word}: want {' or '.join(_WORDS)}", err=True)


def _next_line() -> str | None:
    """What a person types; None at its end. Text that is no UTF-8 is asked for again."""
    while True:
        click.echo("> ", nl=False, err=True)
        if hasattr(signal, "siginterrupt"):  # Polars, once used, lets a read go on after Ctrl-C
            signal.siginterrupt(signal.SIGINT, True)
        read = sys.stdin.buffer.readline()
        if not read:
            click.echo(err=True)
            return None
        try:
            return read.decode()
        except UnicodeDecodeError:
            click.echo("error: that is no text in UTF-8", err=True)


def _whole_prompt(prompt: str | None) -> str:
    """The prompt's text; of standard input all, without the line's end that programs put there.

    Raises:
        InputError: It is empty, or no UTF-8.
    """
    from inferometer.errors import InputError

    if prompt is not None and prompt != "-":
        text, where = prompt, "--prompt"
    else:
        where = "standard input"
        read = b"" if sys.stdin is None else sys.stdin.buffer.read()
        text = read.decode(errors="surrogateescape").removesuffix("\n").removesuffix("\r")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = f"found another byte at character {error.start + 1}"
        raise InputError(f"{where}: want text in UTF-8, {at}", hint="Convert it first.") from error
    if not text.strip():
        raise InputError(f"{where}: the prompt is empty", hint='Ask something: --prompt "Hello".')
    return text


def _is_terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


class _Screen:
    """Pieces of text on stdout, at once. On a terminal a control character, which could drive it, is a space."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._cleans = _is_terminal(sys.stdout)

    def show(self, piece: str) -> None:
        """Print it."""
        from inferometer.errors import clean

        self._out.write("".join(each if each in "\n\t" else clean(each) for each in piece) if self._cleans else piece)


def _ignore(piece: str) -> None:
    pass


def _result(setup: "Setup", answer: "Answer", *, brief: bool = False) -> "ChatAnswer":
    from inferometer.engines.answer import ChatAnswer

    return ChatAnswer(setup, answer, brief)


def _tell(result: "ChatAnswer") -> None:
    from inferometer.reports.terminal import render_terminal

    click.echo(render_terminal(result, is_terminal=_is_terminal(sys.stderr)), err=True, nl=False)
