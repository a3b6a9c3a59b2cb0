"""Logs of llama.cpp: how long a prompt and its answer took, as its programs and its server print them; ops on Vulkan.

Source: llama.cpp's `llama_perf_context_print`, `common_perf_print`, the older `llama_print_timings`, the server's
`print_timing`, `GGML_VK_PERF_LOGGER` (its `vk_perf_logger`), as of 2023 to 2026, and what llama-completion printed
here; no log of Vulkan was seen. Fills `steps` (a prompt, the tokens after it; a graph of the perf logger), `totals` (an
op of each graph) and `log` (all lines). Times are printed in hundredths of a ms. A time of 0.00 ms was not measured: no
row. Leaves out, but keeps in `log`: load, sampling and total times.

`lines` takes a line apart, `reader` fills the tables.
"""

import re
from typing import TYPE_CHECKING, Final

from inferometer.formats.base import Format
from inferometer.formats.llama_bench import is_result

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_SIGNS: Final = re.compile(
    rb"^[^\n]{0,80}?\b(?:llama_perf_context_print|common_perf_print|llama_print_timings|print_timings?):"
    rb"|^Vulkan Timings:\r?$|^[^\n]{0,40}\bllama_model_loader: |^(?:prompt )?eval time += +[\d.]+ ms /",
    re.MULTILINE,
)
_WORDS: Final = (  # each sign has one
    *(b"perf_context_print", b"common_perf_print", b"print_timing", b"Vulkan Timings", b"llama_model_loader"),
    b"eval time",
)


def _sniff(head: bytes) -> bool:
    """A line that llama.cpp prints while it loads a model or at the end; not what llama-bench logs before its tests."""
    if b"\0" in head or not any(word in head for word in _WORDS):
        return False
    return _SIGNS.search(head) is not None and not is_result(head)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.llama_log.reader import read

    return read(source, out)


FORMAT = Format(
    name="llama-log",
    title="log of llama.cpp with its timings, also of GGML_VK_PERF_LOGGER, .log or .txt",
    suffixes=(".log", ".txt"),
    sniff=_sniff,
    read=_read,
    tables=frozenset({"steps", "totals", "log"}),
    limits="A step is all of a prompt, or all tokens after it: times are sums, printed in hundredths of a ms. What "
    "several slots of a server decode together counts for each of them.",
    aliases=("llama.cpp",),
    recorded_by="GGML_VK_PERF_LOGGER=1 llama-completion -m model.gguf -p 'Hello' -n 128 -no-cnv --perf > run.log 2>&1",
)
