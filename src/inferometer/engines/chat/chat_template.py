"""A model's chat template: messages to the text that the model goes on from.

Templates are Jinja as transformers renders it: blocks trimmed, loop controls, `raise_exception`, `strftime_now`,
`tojson` that keeps HTML's characters, and `{% generation %}`, which marks an answer for training and shows nothing.
They come with a model and are trusted as little: they run in Jinja's sandbox, and change nothing that they are given.
Limits of time and memory are those of the process that renders them (`text_worker.py`).
Source: the page "Chat templates" of transformers' documentation. Left out: tools, documents, images.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from inferometer.errors import InputError


class ChatTemplate:
    """One template.

    Args:
        text: Of the template.
        special: Tokens that it may name: `bos_token`, `eos_token`.
        where: What begins the message of an error.
    """

    def __init__(self, text: str, special: Mapping[str, str], where: str) -> None:
        self._text, self._special, self._where = text, dict(special), where
        self._compiled: Any = None

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The conversation's text, up to where the answer begins.

        Raises:
            InputError: It is no template, or it refuses the messages.
        """
        try:
            if self._compiled is None:  # once: that takes longer than an answer's first token
                self._compiled = _environment().from_string(self._text)
            return str(
                self._compiled.render(
                    messages=[dict(message) for message in messages],
                    add_generation_prompt=True,
                    tools=None,
                    documents=None,
                    **self._special,
                )
            )
        except Exception as error:  # a template is a program, and what it raises may be anything
            message = str(error) or type(error).__name__
            raise InputError(f"{self._where}: its chat template refuses the conversation: {message}") from error


def _environment() -> Any:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 - jinja2 reads it from the class

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def refuse(message: object) -> NoReturn:
        raise TemplateError(str(message))

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation])
    made.globals.update(raise_exception=refuse, strftime_now=_now)
    made.filters["tojson"] = _json
    return made


def _now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


def _json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
