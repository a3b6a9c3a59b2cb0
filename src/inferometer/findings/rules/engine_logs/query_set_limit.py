"""How near a step's timestamps come to what the engine's query set holds.

A profiled pass writes two timestamps, and a set holds so many; passes beyond it are silently untimed. Passes are
counted from the labels: a label with a layer is a pass a token, one without a layer is as many as the model's
dimensions say it is called, or at least one. `info` while all passes fit, with the number of tokens from which they
don't; `medium` where they don't fit, since then the sums lack time. Fires only where the limit is printed.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_counted

_QUERIES = 2  # a pass: when it began, when it ended


def _find(evidence: Evidence) -> Iterator[Finding]:
    limit = evidence.number("query_set_limit", "value")
    passes, is_exact = _passes(evidence)
    tokens = evidence.decode_steps["tokens"].max() if evidence.decode_steps.height else None
    if not limit or not passes or not isinstance(tokens, int) or not tokens:
        return
    used = _QUERIES * passes * tokens
    least = "" if is_exact else "at least "
    most = int(limit) // (_QUERIES * passes)
    fewer = f"Keep steps at {format_counted(most, 'token')} at most while profiling, or u" if most else "U"
    is_fallback = bool(evidence.metrics["query_set_limit"].get("is_fallback"))
    yield Finding(
        rule=RULE.name,
        severity="info" if used <= limit else "medium",
        title=f"a step uses {least}{used:,} of {int(limit):,} timestamps"
        if used <= limit
        else f"a step needs {least}{used:,} timestamps and has {int(limit):,}: reports lack passes",
        evidence=(
            (
                f"{least.capitalize()}{passes:,} passes per token, each of {_QUERIES} timestamps; steps of up to "
                f"{format_counted(tokens, 'token')}: {used:,}. From {format_counted(most + 1, 'token')} a step on they "
                "don't fit."
            ),
            *(["The limit is a value to fall back on: the device was not asked."] if is_fallback else []),
        ),
        next=f"{fewer}se several sets and count untimed passes.",
    )


def _passes(evidence: Evidence) -> tuple[int, bool]:
    """Passes of one decoded token, and whether all are known to be counted."""
    classes = evidence.class_times.filter(pl.col("phase") == "decode")
    counted = {row["class"]: row["layers"] for row in classes.iter_rows(named=True) if row["layers"]}
    calls = _calls(evidence)
    unlayered = [name for name in classes["class"] if name not in counted]
    passes = sum(counted.values()) + sum(max(calls.get(name) or 1, 1) for name in unlayered)
    return passes, bool(calls) and all(calls.get(name) for name in unlayered if not _is_sampling(evidence, name))


def _is_sampling(evidence: Evidence, name: str) -> bool:
    return evidence.kinds[name].family == "sampling"


def _calls(evidence: Evidence) -> dict[str, int]:
    """Calls a token of each class, from the model."""
    if evidence.bounds is None or evidence.model is None:
        return {}
    from inferometer.architectures import step_calls

    layers_of_role: dict[str, list[int | None]] = {}
    for call in step_calls(evidence.model, tokens=1, context=1):
        layers_of_role.setdefault(call.role, []).append(call.layer)
    found = {}
    for name, roles in evidence.bounds.rows.filter(pl.col("phase") == "decode").select("kernel", "roles").iter_rows():
        layers = [layer for role in roles for layer in layers_of_role.get(role, ())]
        found[name] = len(set(layers)) if evidence.is_fused(name) else len(layers)
    return found


RULE = Rule("query_set_limit", _find)
