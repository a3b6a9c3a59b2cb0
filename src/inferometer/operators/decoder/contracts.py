"""What each operator of a decoder takes and returns: every backend answers as `torch` does.

An operator of a model isn't always one of the catalogue's: it is what a decoder's forward pass and its sampling call.
B sequences, T new tokens, S tokens of keys, H hidden size, Hq query heads, Hk key heads, D head size, V vocabulary,
E experts.
"""

from collections.abc import Mapping

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
