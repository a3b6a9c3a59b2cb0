"""Wall time of the prefill beyond its GPU time.

Fires from 10 ms (less isn't felt) and a tenth of the time to the first token (of the prefill where that isn't
printed): `low`; from 30 % `medium`, from 70 % and 1 s `high`, as for the delay after the prefill.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.findings.finding import Finding
from inferometer.findings.rule import Evidence, Rule
from inferometer.findings.rules.steps.first_token_delay import severity_of_wait
from inferometer.units import format_duration, format_share


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.steps is None:
        return
    steps = evidence.steps.steps.filter(pl.col("phase") == "prefill").drop_nulls(["wall_ns", "gpu_busy_ns"])
    wall, busy = int(steps["wall_ns"].sum()), int(steps["gpu_busy_ns"].sum())
    severity = severity_of_wait(wall - busy, max(int(evidence.number("ttft_ns") or 0), wall))
    if severity is None:
        return
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{format_duration(wall - busy)} of the prefill pass without the GPU",
        evidence=(
            (
                f"Prefill takes {format_duration(wall)} of wall time and {format_duration(busy)} of GPU time: "
                f"{format_share((wall - busy) / wall)} of it are outside the GPU."
            ),
        ),
        size_ns=wall - busy,
        share=(wall - busy) / wall,
        next="Prefill a second prompt in the same session: what is gone then was building pipelines.",
    )


RULE = Rule("prefill_overhead", _find)
