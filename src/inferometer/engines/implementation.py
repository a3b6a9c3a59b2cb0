"""What a backend declares of the operators of a model: one file a backend in `implementations/`, found by itself.

An operator of a model isn't always one of the catalogue's: it is what a decoder's forward pass and its sampling call.
`CONTRACTS` says what each takes and returns; every backend answers as `torch` does. B sequences, T new tokens, S tokens
of keys, H hidden size, Hq query heads, Hk key heads, D head size, V vocabulary, E experts.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

CONTRACTS: Mapping[str, str] = {
    "rms_norm": "(x[..., H], weight[H], *, eps, offset=0.0, late_cast=False) -> [..., H]: x over its root mean square "
    "in float32, times (offset + weight). late_cast=False rounds to x's dtype before the weight (Llama), True after "
    "(Gemma, whose offset is 1).",
    "add_rms_norm": "(x, residual, weight, *, eps, offset=0.0, late_cast=False) -> (normed, x + residual).",
    "rope": "(q[B, Hq, T, D], k[B, Hk, T, D], cos[B, T, D], sin[B, T, D]) -> (q, k): halves rotated, both new.",
    "attention_prefill": "(q[B, Hq, T, D], k[B, Hk, S, D], v[B, Hk, S, D], *, scale, window=None, softcap=None) -> "
    "[B, T, Hq, D]: causal; the T queries are the last T of the S positions; a query sees the last `window` positions "
    "up to its own; scores are capped as softcap * tanh(score / softcap).",
    "attention_decode": "the same, for T = 1.",
    "linear": "(x[..., K], weight[N, K], bias[N] | None) -> [..., N].",
    "silu_mul": "(gate[..., I], up[..., I]) -> silu(gate) * up.",
    "gelu_mul": "(gate[..., I], up[..., I]) -> gelu(gate) * up, the tanh form.",
    "softmax": "(logits[B, V], *, temperature=1.0) -> [B, V] float32.",
    "argmax": "(logits[B, V]) -> [B] int64: the first of equals.",
    "top_k_top_p": "(probabilities[B, V] float32, uniform[B] float32, *, k=0, p=1.0) -> [B] int64: keeps the k most "
    "probable (0: all; of equals, the first), of these, renormalised, the fewest whose sum reaches p, and takes, in "
    "the order of the vocabulary, the first at which the running sum of what is kept passes uniform times its total.",
    "moe_route": "(logits[T, E], *, k, renormalize) -> (weights[T, k] float32, experts[T, k] int64): softmax in "
    "float32, the k largest, the largest first; renormalised where asked.",
}

Operator = Callable[..., Any]


@dataclass(frozen=True)
class Implementation:
    """One operator of one backend.

    Attributes:
        call: Called as `CONTRACTS` says.
        refuses: `refuses(*args, **settings)`: why this call isn't for it, in a few words (`head size 80`); None where
            it takes the call. Cheap: it is asked at every call.
    """

    call: Operator
    refuses: Callable[..., str | None] = field(default=lambda *args, **settings: None)


@dataclass(frozen=True, eq=False)  # found by identity at every call: comparing fields would cost it time
class Implementations:
    """The operators of a model that one backend has.

    Attributes:
        name: What a user types: `triton`.
        summary: Whose kernels these are, in a sentence.
        operators: Names of `CONTRACTS`. Nothing heavy is imported to tell them.
        unavailable: `unavailable(device)`: why it can't run on `cpu` or `cuda:1` here; None where it can.
        load: `load(operator)`: imports what that needs.
        prepare: `prepare(device)`: what must be so in the process before a model's libraries are loaded; called when
            a user chose the backend for that device.
    """

    name: str
    summary: str
    operators: Collection[str]
    unavailable: Callable[[str], str | None]
    load: Callable[[str], Implementation]
    prepare: Callable[[str], None] = field(default=lambda device: None)
