"""The tokenizer has another number of tokens than the model's table.

Fires when both are printed and differ. `info` where the tokenizer has fewer (tables are padded), or up to 1 in 1,000
more (special tokens that are never sampled); `low` where it has more than that: such ids lie outside the table.
"""

from collections.abc import Iterator

from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule

_SPECIAL = 0.001


def _find(evidence: Evidence) -> Iterator[Finding]:
    tokenizer, model = evidence.number("tokenizer_vocab"), evidence.number("model_vocab")
    if not tokenizer or not model or tokenizer == model:
        return
    more = tokenizer - model
    yield Finding(
        rule=RULE.name,
        severity="low" if more > _SPECIAL * model else "info",
        title=f"the tokenizer has {int(tokenizer):,} tokens, the model {int(model):,}",
        evidence=(f"{abs(int(more)):,} {'more' if more > 0 else 'fewer'} in the tokenizer, as printed.",),
        next="Make sure that no prompt can hold an id outside the model's table." if more > 0 else "Nothing.",
    )


RULE = Rule("vocabulary_mismatch", _find)
