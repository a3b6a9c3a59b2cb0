"""What `llama-bench` of llama.cpp prints: a test of a model for each row, as JSON, JSON lines, CSV or Markdown.

Source: llama.cpp's `tools/llama-bench` (its printers of 2023 to 2026), and what it printed here. Fills `tests` (a row
per test: how long a repetition takes, and its rate), `steps` (a row per repetition, of JSON, which has them) and `log`
(lines before and between). What is the same in all tests is in `facts.settings`; what differs is part of a test's name.
Times hold neither tokenisation nor sampling. Leaves out: the folder of the model's file. SQL is refused.

`texts` takes the four forms apart, `fields` reads values that may be text, `names` says what a test is called,
`reader` fills the tables.
"""

import re
from typing import TYPE_CHECKING, Final

from inferometer.formats.base import Format

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder
    from inferometer.trace.facts import Facts

_SIGNS: Final = (
    re.compile(rb'\{\s*"build_commit"\s*:.*"(?:n_gen|n_prompt)"\s*:', re.DOTALL),
    re.compile(rb"^(?:\xef\xbb\xbf)?build_commit,[a-z_,]*avg_ns,", re.MULTILINE),
    re.compile(rb"^(?:\xef\xbb\xbf)?\|\s*model\s*\|[^\n]*\|\s*test\s*\|\s*t/s\s*\|", re.MULTILINE),
    re.compile(rb"^CREATE TABLE IF NOT EXISTS (?:llama_bench|test) \(\s*build_commit ", re.MULTILINE),
)


_WORDS: Final = (b"build_commit", b"t/s")  # each sign has one


def is_result(head: bytes) -> bool:
    """The first fields of a test, or the titles of a table of them."""
    return any(word in head for word in _WORDS) and any(sign.search(head) for sign in _SIGNS)


def _read(source: "Source", out: "TraceBuilder", tables: frozenset[str]) -> "Facts":
    from inferometer.formats.llama_bench.reader import read

    return read(source, out)


FORMAT = Format(
    name="llama-bench",
    title="llama-bench of llama.cpp: -o json, jsonl, csv or md",
    suffixes=(".json", ".jsonl", ".csv", ".md"),
    sniff=is_result,
    read=_read,
    tables=frozenset({"tests", "steps", "log"}),
    limits="Holds times of whole tests, no kernels. Only JSON has each repetition; CSV and Markdown don't say how many "
    "there were, so two of them can't be told apart from noise.",
    recorded_by="llama-bench -m model.gguf -p 512 -n 128 -r 10 -o json > bench.json",
)
