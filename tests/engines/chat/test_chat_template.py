"""Chat templates: what transformers makes of them, in the styles of published models; and templates that mean harm."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.engines.chat.templates import GEMMA, LLAMA, QWEN, STYLES

from inferometer.engines.chat.chat_template import ChatTemplate
from inferometer.errors import InputError

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
TALK = [
    {"role": "system", "content": "be <brief> "},
    {"role": "user", "content": " héllo & 'you'\n"},
    {"role": "assistant", "content": "<think>hm</think>\nhi"},
    {"role": "user", "content": "once more 🙂"},
]
TALKS = [TALK, TALK[1:], TALK[:2], TALK[1:2]]


def render(text: str, messages: Sequence[dict[str, str]] = TALK) -> str:
    return ChatTemplate(text, SPECIAL, "here").render(messages)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """transformers' own renderer."""
    transformers: Any = pytest.importorskip("transformers")
    tokenizers: Any = pytest.importorskip("tokenizers")
    file: Path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).save(str(file))
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), **SPECIAL)


@pytest.mark.parametrize("talk", TALKS, ids=["all", "no system", "one turn", "one message"])
@pytest.mark.parametrize("style", STYLES)
def test_a_conversation_reads_as_transformers_renders_it(
    reference: Any, style: str, talk: list[dict[str, str]]
) -> None:
    wanted = reference.apply_chat_template(
        talk, chat_template=STYLES[style], add_generation_prompt=True, tokenize=False
    )
    assert render(STYLES[style], talk) == wanted
    assert talk[-1]["content"].strip() in wanted


def test_turns_are_written_as_the_style_says() -> None:
    assert render(GEMMA, TALK[:2]) == "<s><turn>user\nbe <brief> \n\nhéllo & 'you'<end>\n<turn>model\n"
    assert render(QWEN, TALK[3:]) == (
        '<|start|>user\nonce more 🙂<|stop|>\n{"last": 0, "text": "<é>&\'", "tools": null}<|start|>assistant\n'
    )


def test_a_template_may_ask_for_the_day() -> None:
    before, text, after = datetime.now().astimezone(), render(LLAMA), datetime.now().astimezone()
    days = {f"Today: {day:%d %b %Y}\n\nbe <brief><|eot|>" in text for day in (before, after)}
    assert True in days


def test_a_template_may_refuse() -> None:
    with pytest.raises(InputError, match="here: its chat template refuses the conversation: Roles must take turns"):
        render(GEMMA, [TALK[2]])


@pytest.mark.parametrize(
    "text",
    [
        "{% if %}",
        "{{ messages[0].content.upper(1) }}",
        "{{ 1 // 0 }}",
        "{{ messages[9].content.x }}",
        "{{ messages.append(3) }}",  # a sandbox changes nothing
        "{{ ''.__class__.__mro__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception.__globals__['json'] }}{{ raise_exception.__globals__.x() }}",
        "{{ cycler.__init__.__globals__.os.getcwd() }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% include 'a' %}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ strftime_now(3) }}",
    ],
)
def test_what_fails_in_a_template_is_the_folders_fault(text: str) -> None:
    with pytest.raises(InputError, match="here: its chat template refuses the conversation"):
        render(text)


def test_messages_arent_changed() -> None:
    render("{% set messages = [] %}{{ messages }}")
    template = ChatTemplate("{{ messages[0].content }}", SPECIAL, "here")
    assert [template.render(talk) for talk in (TALK, TALK[1:])] == [TALK[0]["content"], TALK[1]["content"]]
