"""Chat templates: what transformers makes of them, in the styles of published models; and templates that mean harm."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from inferometer.engines.chat.chat_template import ChatTemplate
from inferometer.errors import InputError

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
LLAMA = """{{- bos_token }}
{%- if not date is defined %}
    {%- if strftime_now is defined %}
        {%- set date = strftime_now("%d %b %Y") %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set reported = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set reported = "" %}
{%- endif %}
{{- "<|head|>system<|end|>\\n\\n" }}
{%- if tools is not none %}{{- "Tools: " }}{%- endif %}
{{- "Today: " + date + "\\n\\n" + reported + "<|eot|>" }}
{%- for message in messages %}
    {{- '<|head|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|end|>\\n\\n' }}
{%- endif %}
"""
QWEN = """{%- if messages[0].role == 'system' %}
    {{- '<|start|>system\\n' + messages[0].content + '<|stop|>\\n' }}
{%- endif %}
{%- set ns = namespace(looking=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.looking and message.role == "user" and message.content is string and not('<t>' in message.content) %}
        {%- set ns.looking = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|start|>' + message.role + '\\n' + message.content + '<|stop|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- generation %}{{- '<|start|>assistant\\n' + content + '<|stop|>\\n' }}{%- endgeneration %}
    {%- endif %}
    {%- if loop.index0 > 20 %}{%- break %}{%- endif %}
{%- endfor %}
{{- {"last": ns.last, "text": "<é>&'", "tools": tools} | tojson }}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '

' -%}
    {%- endif -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set rest = messages -%}
{%- endif -%}
{%- for message in rest -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Roles must take turns") }}
    {%- endif -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<turn>' + role + '
' + (prefix if loop.first else "") }}
    {%- if message['content'] is iterable and message['content'] is not string -%}
        {%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- else -%}
        {{ message['content'] | trim }}
    {%- endif -%}
    {{ '<end>
' }}
{%- endfor -%}
{% if add_generation_prompt %}{{ '<turn>model
' }}{% endif %}
"""
TRIMMED = """{% for message in messages %}
    {% if message.role == 'user' %}
{{ message.content }}
    {% endif %}
{% endfor %}
{% for message in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}[{{ message.role }}]{% endfor %}
{{ messages | tojson(indent=2) }}{{ pad_token }}
"""
STYLES = {"llama": LLAMA, "qwen": QWEN, "gemma": GEMMA, "trimmed": TRIMMED}
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
