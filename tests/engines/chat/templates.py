"""Chat templates in the styles of published models, written for the tests."""

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
