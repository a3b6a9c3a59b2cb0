"""What MLC LLM and WebLLM say of each answer: the `usage.extra` of responses, and the text of `runtimeStatsText()`.

Source: WebLLM 0.2.86's own code; MLC LLM's fields by the names that its callers read: no file of it was seen.
Fills `tests` (rates of prefill and decode, times to the first token and to the last, over all answers of a kind) and
`log` (a row per answer with its numbers, and lines of other text). Leaves out: what was asked and answered, WebLLM's
`latencyBreakdown`, times of grammars.

`answers` finds answers and their numbers, `reader` makes tests of them.
"""

import re
from typing import TYPE_CHECKING, Final

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_SIGNS: Final = re.compile(
    rb'"(?:prefill|decode)_tokens_per_s"\s*:|\bprefill: [\d.]{1,20} tokens/s(?:ec)?, decoding: [\d.]{1,20} tokens/s'
)


def _sniff(head: bytes) -> bool:
    """A rate of an answer, as responses or the text of statistics have it."""
    return b"\0" not in head and b'"traceEvents"' not in head and _SIGNS.search(head) is not None


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.mlc.reader import read

    return read(source, out)


FORMAT = Format(
    name="mlc",
    title="responses of MLC LLM and WebLLM with usage.extra, .json or .jsonl, and their runtimeStatsText()",
    suffixes=(".json", ".jsonl", ".txt"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"tests", "log"}),
    limits="Holds rates and times of whole answers, no kernels and no steps. The text of an answer is not kept.",
    aliases=("web-llm", "webllm", "mlc-llm"),
    recorded_by="for await (const part of await engine.chat.completions.create({messages, stream: true, "
    "stream_options: {include_usage: true}})) if (part.usage) console.log(JSON.stringify(part))",
)
