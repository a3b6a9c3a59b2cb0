"""What `chat` does with any engine: takes a prompt or line after line, shows text as it comes, tells what it took."""

import signal
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Protocol

import click
import msgspec

from inferometer.commands.base import Output

if TYPE_CHECKING:
    from inferometer.analyses.result import Result
    from inferometer.engines.chat.answer import Answer, ChatAnswer

WARM_UP_TEXT = "Hello"  # where no prompt is known yet
INTERRUPTED = 130
_WORDS = ("/exit", "/reset")
_GREETING = "An empty line does nothing, /reset begins anew, /exit or Ctrl-D leaves; Ctrl-C stops an answer."


class Talk(Protocol):
    """A conversation of any engine."""

    def ask(self, text: str, on_text: Callable[[str], object]) -> "Answer":
        """The answer, which `on_text` gets in pieces as it comes."""

    def reset(self) -> None:
        """Forget everything."""


class AnswerReport(Protocol):
    """Makes the report of an answer; `brief`: only what is new with it."""

    def __call__(self, answer: Any, *, brief: bool = False) -> "ChatAnswer":
        """The report."""


class Session(msgspec.Struct, frozen=True):
    """A conversation that is ready, and how its answers are reported.

    Attributes:
        report: The report of an answer.
        also: More to report of it, after its report; with --json what it returns goes into the document.
        shows_text: Whether stdout gets the answer's text.
    """

    talk: Talk
    report: AnswerReport
    also: Callable[[Any, Output], dict[str, Any]] = lambda answer, out: {}
    shows_text: bool = True


def find_prompt(prompt: str | None, out: Output) -> str | None:
    """The one text to answer; None where a person is asked for lines.

    Raises:
        InputError: It is empty, or no UTF-8.
    """
    if prompt is None and is_terminal(sys.stdin):
        if out.form:
            raise click.UsageError("--json needs a --prompt, or one on standard input: it prints one document.")
        return None
    return _whole_prompt(prompt)


def hold(session: Session, text: str | None, out: Output) -> int:
    """Answer the text, or line after line; the exit code."""
    return _converse(session, out) if text is None else _answer_once(session, text, out)


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a person is at the other end."""
    return stream is not None and stream.isatty()


def print_report(result: "Result") -> None:
    """Print a result to stderr."""
    from inferometer.reports.terminal import render_terminal

    click.echo(render_terminal(result, is_terminal=is_terminal(sys.stderr)), err=True, nl=False)


def _answer_once(session: Session, text: str, out: Output) -> int:
    shows = session.shows_text and not out.form
    answer = session.talk.ask(text, _Screen(out).show if shows else _ignore)
    result = session.report(answer)
    if shows:
        out.write("\n")
    if not out.form:
        print_report(result)
    more = session.also(answer, out)
    if out.form:
        out.show(result, more)
    if answer.failure is not None:
        raise answer.failure
    return INTERRUPTED if answer.ended == "interrupted" else 0


def _converse(session: Session, out: Output) -> int:
    from inferometer.errors import InferometerError

    click.echo(_GREETING, err=True)
    operators: Any = None
    while (line := next_line()) is not None:
        word = line.strip()
        if word == "/exit":
            break
        if word.startswith("/") and " " not in word:
            _obey(word, session.talk)
        elif word:
            try:
                operators = _answer_line(session, word, out, operators)
            except InferometerError as error:
                click.echo(f"error: {error}", err=True)
    return 0


def _answer_line(session: Session, text: str, out: Output, known: Any) -> Any:
    """What ran the operators, which is reported where it isn't what is `known`."""
    answer = session.talk.ask(text, _Screen(out).show)
    out.write("\n")
    ran = {(use.operator, use.backend, use.reason) for use in answer.operators}
    print_report(session.report(answer, brief=ran == known))
    session.also(answer, out)
    if answer.ended == "interrupted":
        click.echo("Ctrl-C stopped the answer; once more leaves.", err=True)
    if answer.failure is not None:
        raise answer.failure
    return ran


def _obey(word: str, talk: Talk) -> None:
    if word == "/reset":
        talk.reset()
        click.echo("a new conversation", err=True)
    else:
        click.echo(f"no command {word}: expected {' or '.join(_WORDS)}", err=True)


def next_line() -> str | None:
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
    """The prompt's text; of standard input all, without the line's end that programs put there."""
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
        raise InputError(f"{where}: expected text in UTF-8, {at}", hint="Convert it first.") from error
    if not text.strip():
        raise InputError(f"{where}: the prompt is empty", hint='Ask something: --prompt "Hello".')
    return text


class _Screen:
    """Pieces of a model's text on stdout, at once. What is hidden is shown, in a pipe too, which may end in a terminal.

    Lines and tabs stay, and so do the joiners of emoji and of some scripts.
    """

    def __init__(self, out: Output) -> None:
        self._out = out

    def show(self, piece: str) -> None:
        """Print it."""
        from inferometer.errors import clean

        self._out.write("".join(each if each in "\n\t\u200c\u200d" else clean(each) for each in piece))


def _ignore(piece: str) -> None:
    pass
