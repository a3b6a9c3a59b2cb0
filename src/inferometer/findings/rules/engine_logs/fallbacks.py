"""Where the engine says that it took second choice: in the reason for a kernel, or in a warning. `info`.

Counted are choices whose variant or reason says "fallback", and warnings that say "fall back" or "falling back" in
any form. The size of a query set has a rule of its own.
"""

import re
from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding
from inferometer.findings.rule import WARNINGS, Evidence, Rule

_WORDS = re.compile(r"\bfall(?:s|ing)?[ _-]?back|fallback", re.IGNORECASE)
_OF_OTHERS = ("recorder", "selection", "profile")


def _find(evidence: Evidence) -> Iterator[Finding]:
    is_fallback = pl.concat_str("variant", "reason", separator=" ", ignore_nulls=True).str.contains("(?i)fallback")
    chosen = [
        f"{op} runs as {variant}, because: {reason}."
        for op, variant, reason in evidence.selections.filter(is_fallback).select("op", "variant", "reason").unique(
            maintain_order=True
        ).iter_rows()
    ]  # fmt: skip
    warned = [
        f"Line {row['line']:,}: {row['text'].strip()}"
        for row in evidence.lines(*WARNINGS)
        if row["kind"] not in _OF_OTHERS and _WORDS.search(row["text"])
    ]
    if chosen or warned:
        n = len(chosen) + len(warned)
        yield Finding(
            rule=RULE.name,
            severity="info",
            title="the engine fell back once" if n == 1 else f"the engine fell back {n:,} times",
            evidence=(*chosen, *warned),
            next="See whether the first choice can be had: a feature of the device, a shape, a file of the model.",
        )


RULE = Rule("fallbacks", _find)
