"""What an A/B of one model with several kernel backends measured, before any statistics: plain tables.

Whoever runs the model fills it (`engines/ab`); `comparison.py` compares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

CALLS = {
    "arm": pl.String,
    "repetition": pl.Int64,
    "path": pl.String,  # names from the root, joined by dots; a layer is one name: layers.3
    "name": pl.String,
    "parent": pl.String,  # null: the root
    "order": pl.Int64,  # of the path in its arm, parents before children, as first called
    "depth": pl.Int64,
    "operator": pl.String,  # null: no call of an operator
    "backend": pl.String,  # what ran: triton, torch (triton: head size 80); null where no operator
    "dur_ns": pl.Int64,  # on the host
    "span_ns": pl.Int64,  # between events on the device's stream; null on a CPU
    "sum": pl.Float64,  # of the answer's values; NaN or infinite where one of them is; null where no operator
    "abs_sum": pl.Float64,  # of their sizes; null where they are integers
}
"""One call of a path, in the pass with scopes (and events on a GPU). In the order in which calls ended."""

CONTROL = {
    "candidate": pl.String,  # whose completion it was
    "arm": pl.String,  # whose kernel ran: the candidate's or the base's
    "repetition": pl.Int64,  # of the pair of completions, in which each call ran once by either
    "path": pl.String,
    "dur_ns": pl.Int64,
    "span_ns": pl.Int64,
}
"""One call of an operator in a completion whose calls were run by either arm, as drawn. In the order of the calls."""

LOGITS = {
    "arm": pl.String,
    "repetition": pl.Int64,
    "scoped": pl.Boolean,  # of which of its two passes
    "step": pl.Int64,  # 0: the prefill
    "sum": pl.Float64,
    "abs_sum": pl.Float64,
}
"""What the logits of each step come to, in both passes of a repetition."""

BUSY = {
    "arm": pl.String,
    "path": pl.String,
    "calls": pl.Int64,
    "device_busy_ns": pl.Int64,  # the union of device work whose launches lie in the path
    "gap_ns": pl.Int64,  # from the first start to the last end of what each call launched, less that union
    "kernels": pl.Int64,
    "allocated_bytes": pl.Int64,  # handed out by PyTorch's allocator meanwhile, freed ones too; null: not counted
}
"""From the recorded pass, on a GPU. Empty on a CPU."""

PASSES = {"arm": pl.String, "repetition": pl.Int64, "phase": pl.String, "wall_ns": pl.Int64, "scoped_ns": pl.Int64}
"""A phase (prefill, decode) of one repetition without scopes, waited for, and with them: what the instrument costs."""

ERRORS = {
    "arm": pl.String,
    "path": pl.String,
    "calls": pl.Int64,
    "max_error": pl.Float64,  # largest difference to the first arm's answer on the same inputs
    "normalised_error": pl.Float64,  # norm of the difference over that of the answer, the worst call
    "tolerance": pl.Float64,  # for normalised_error, by dtype; null for integers, which must be equal
    "call": pl.Int64,  # the first of the path whose answer is wrong, from 1; null where all are right, or in a sample
    "failure": pl.String,  # in words where the answer is wrong, of the first such call; null where right
}
"""Operators of each arm but the first: all calls of one completion on the inputs that the first arm's run gave them,
and a sample of the timed ones on the arm's own. Of the first arm itself the paths where it contradicts itself."""

AGREEMENT = {
    "arm": pl.String,
    "tokens": pl.Int64,  # positions compared, over all sequences
    "equal": pl.Int64,  # whose most probable token is the first arm's
    "not_finite": pl.Int64,  # of whose logits some are NaN or infinite where the first arm's aren't
    "mean_kl": pl.Float64,  # of the first arm's next-token distribution to this arm's, nats
    "max_kl": pl.Float64,
    "max_logit_error": pl.Float64,
}


@dataclass(frozen=True)
class PathMeasurement:
    """One A/B. `arms` are in the order of the user, the base first.

    Attributes:
        logits: Of both passes of each repetition, as `LOGITS`.
        searched: Calls of completions after the repetitions, where only logits were seen to be wrong; numbered anew.
        control: Of arms several of whose operators run other code, where one of these took another time.
        facts: Of the run: model, device, dtype, batch, prompt_tokens, new_tokens, seed, versions, parameters, order.
        ended: Why it ended early; None where it is whole. Only whole repetitions of all arms are in it.
        refused: By arm, what its backend lacks, each once.
        stores: By arm, the store of its recorded pass.
        notes: What else a reader must know (interpreted kernels, a CPU).
    """

    arms: Sequence[str]
    calls: pl.DataFrame
    passes: pl.DataFrame
    busy: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BUSY))
    errors: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=ERRORS))
    agreement: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=AGREEMENT))
    logits: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=LOGITS))
    searched: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CALLS))
    control: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=CONTROL))
    facts: Mapping[str, Any] = field(default_factory=dict)
    ended: str | None = None
    refused: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
