"""One operator call of a step: its shape, the work that it needs and the bytes that it must move; plain integers.

Work is counted as the formula of the operator has it, not as a kernel may do it. A multiply and an add are two FLOPs; a
divide, a root, an exp or a tanh is one. Bytes are the least: each operand read once, the result written once, nothing
kept in a cache from one call to the next. A kernel that fuses calls saves what one writes and the next reads.

Matrices have `weight_bytes` an element; vectors (norm weights, biases) are kept in the type of the activations, even
where matrices are quantized. Sizes that are no whole number of bytes round up.

Letters: M rows, one per token of a sequence of the batch; N outputs and K inputs of a matrix.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Literal

import msgspec

from inferometer.architectures.model import Mixture

Op = Literal[
    "matmul", "attention", "rms_norm", "layer_norm", "rope", "activation", "gather", "add", "scale",
    "moe_routing", "grouped_matmul", "kv_write", "sampling",
]  # fmt: skip
Logits = Literal["last", "all"]
_ID_BYTES = 4  # a token's or an expert's number
_GELU_FLOPS = 9  # 0.5 x (1 + tanh(s (x + c x x x))): six multiplies, two adds, a tanh
_SILU_FLOPS = 4  # x / (1 + exp(-x)): a sign, an exp, an add, a divide


class OperatorCall(msgspec.Struct, frozen=True):
    """One call of an operator in a step of a model.

    Attributes:
        op: What is calculated.
        role: Its place in the model: `q_proj`, `ffn_down`, `input_norm`.
        layer: Its layer from 0; None outside the layers.
        shape: What decides the numbers below, by name: M, N, K of a matmul; of attention heads, kv_heads, head_dim,
            tokens and kv, the positions read for a sequence, and pairs, those that each new token sees, summed.
        flops: Floating-point operations.
        weight_bytes: Parameters that it must read. Of experts: those expected to be touched, see `expected_experts`.
        read_bytes: Activations and cached keys and values that it must read.
        written_bytes: What it must write.
    """

    op: Op
    role: str
    layer: int | None
    shape: dict[str, int]
    flops: int
    weight_bytes: int
    read_bytes: int
    written_bytes: int


class ModelStep(msgspec.Struct, frozen=True):
    """A pass over a batch: the same number of new tokens in each sequence, after the same context."""

    tokens: int
    context: int
    batch: int
    weight_size: int | Fraction
    activation_size: int | Fraction
    kv_size: int | Fraction
    logits: Logits

    @property
    def rows(self) -> int:
        """New tokens of all sequences together: the M of most calls."""
        return self.tokens * self.batch

    @property
    def logit_rows(self) -> int:
        """Rows that go through the output projection."""
        return self.rows if self.logits == "all" else self.batch

    def weights(self, elements: int) -> int:
        """Bytes of matrix elements."""
        return math.ceil(elements * self.weight_size)

    def activations(self, elements: int) -> int:
        """Bytes of activations, and of parameters that are vectors."""
        return math.ceil(elements * self.activation_size)

    def cached(self, elements: int) -> int:
        """Bytes of keys and values."""
        return math.ceil(elements * self.kv_size)


def matmul(
    step: ModelStep, role: str, layer: int | None, N: int, K: int, *, rows: int | None = None, bias: bool = False
) -> OperatorCall:
    """A matrix of parameters by the activations: 2 M N K, and M N more for a bias."""
    M = step.rows if rows is None else rows
    return OperatorCall(
        "matmul",
        role,
        layer,
        {"M": M, "N": N, "K": K},
        flops=2 * M * N * K + (M * N if bias else 0),
        weight_bytes=step.weights(N * K) + (step.activations(N) if bias else 0),
        read_bytes=step.activations(M * K),
        written_bytes=step.activations(M * N),
    )


def head_matmul(step: ModelStep, role: str, layer: int, N: int, K: int, *, heads: int) -> OperatorCall:
    """A matrix of its own for every head: 2 M N K a head."""
    M = step.rows
    return OperatorCall(
        "matmul",
        role,
        layer,
        {"M": M, "N": N, "K": K, "heads": heads},
        flops=2 * M * N * K * heads,
        weight_bytes=step.weights(N * K * heads),
        read_bytes=step.activations(M * K * heads),
        written_bytes=step.activations(M * N * heads),
    )


def grouped_matmul(
    step: ModelStep, role: str, layer: int, N: int, K: int, mixture: Mixture, *, shared_input: bool
) -> OperatorCall:
    """Matrices of experts, each row by one: 2 M N K, M counting a token once for each of its experts.

    Where all experts of a token read the same row (`shared_input`), it is read once.
    """
    M = step.rows * mixture.each
    touched = expected_experts(step.rows, mixture.experts, mixture.each)
    return OperatorCall(
        "grouped_matmul",
        role,
        layer,
        {"M": M, "N": N, "K": K, "experts": mixture.experts, "touched": touched},
        flops=2 * M * N * K,
        weight_bytes=step.weights(touched * N * K),
        read_bytes=step.activations((step.rows if shared_input else M) * K),
        written_bytes=step.activations(M * N),
    )


@cache
def expected_experts(rows: int, experts: int, each: int) -> int:
    """Different experts that the tokens of a step are expected to touch: E (1 - (1 - k/E)^M), rounded.

    It takes each token to choose its k of E experts evenly and independently. Real routing is skewed and touches
    fewer; it never touches fewer than k, nor more than M k or E. Exactly k for a single token.
    """
    if rows * each > 64 * experts:  # less than E e^-64 of an expert is left over
        return experts
    ways: int = experts**rows
    missed: int = (experts - each) ** rows
    rounded = (2 * experts * (ways - missed) + ways) // (2 * ways)
    return max(each, rounded)


def attention(
    step: ModelStep,
    layer: int,
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    window: int | None = None,
    softcap: bool = False,
) -> OperatorCall:
    """Causal attention over the cache and the new tokens: 4 FLOPs per head, pair of positions and element of a head.

    That is a multiply and an add for the score, and the same for the sum of values. The softmax isn't counted, a
    softcap is (a divide, a tanh, a multiply a score). Keys and values are read once for all heads that share them.
    """
    pairs, kv = visible_pairs(step.tokens, step.context, window), visible_positions(step.tokens, step.context, window)
    queries = step.activations(step.rows * heads * head_dim)
    shape = {"batch": step.batch, "tokens": step.tokens, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    return OperatorCall(
        "attention",
        "attention",
        layer,
        {**shape, "kv": kv, "pairs": pairs} | ({} if window is None else {"window": window}),
        flops=step.batch * pairs * heads * (4 * head_dim + (3 if softcap else 0)),
        weight_bytes=0,
        read_bytes=queries + step.cached(step.batch * kv * 2 * kv_heads * head_dim),
        written_bytes=queries,
    )


def visible_pairs(tokens: int, context: int, window: int | None) -> int:
    """Positions that each new token of a sequence sees, itself included, summed over the new tokens."""
    growing = tokens if window is None else min(max(window - context, 0), tokens)  # those that see all before them
    full = growing * context + growing * (growing + 1) // 2
    return full if window is None else full + (tokens - growing) * window


def visible_positions(tokens: int, context: int, window: int | None) -> int:
    """Positions that any of the new tokens of a sequence sees: what must be read of its keys and values."""
    return context + tokens if window is None else min(context, window - 1) + tokens


def rms_norm(step: ModelStep, role: str, layer: int | None, width: int, *, heads: int = 1) -> OperatorCall:
    """A square, an add and two multiplies an element; a divide, an add and a root a row.

    A weight that is stored less one (Gemma) costs another add, which isn't counted: it can be added once for all.
    """
    rows = step.rows * heads
    return OperatorCall(
        "rms_norm",
        role,
        layer,
        {"rows": rows, "width": width},
        flops=4 * rows * width + 3 * rows,
        weight_bytes=step.activations(width),
        read_bytes=step.activations(rows * width),
        written_bytes=step.activations(rows * width),
    )


def rope(step: ModelStep, role: str, layer: int, *, heads: int, width: int) -> OperatorCall:
    """Pairs of elements turned by an angle: four multiplies and two adds a pair; a cosine and a sine read for each."""
    elements = step.rows * heads * width
    return OperatorCall(
        "rope",
        role,
        layer,
        {"rows": step.rows, "heads": heads, "width": width},
        flops=3 * elements,
        weight_bytes=0,
        read_bytes=step.activations(elements + step.tokens * width),
        written_bytes=step.activations(elements),
    )


def kv_write(step: ModelStep, layer: int, width: int) -> OperatorCall:
    """New keys and values, `width` numbers per token, go into the cache; no arithmetic."""
    elements = step.rows * width
    return OperatorCall(
        "kv_write",
        "kv_write",
        layer,
        {"rows": step.rows, "width": width},
        flops=0,
        weight_bytes=0,
        read_bytes=step.activations(elements),
        written_bytes=step.cached(elements),
    )


def activation(step: ModelStep, role: str, layer: int, width: int, function: str, *, each: int = 1) -> OperatorCall:
    """The function of one half times the other half: both read, one written; `each` rows per token.

    Any function but the forms of GELU is counted as SiLU.
    """
    elements = step.rows * each * width
    return OperatorCall(
        "activation",
        role,
        layer,
        {"rows": step.rows * each, "width": width},
        flops=elements * (1 + (_GELU_FLOPS if "gelu" in function else _SILU_FLOPS)),
        weight_bytes=0,
        read_bytes=step.activations(2 * elements),
        written_bytes=step.activations(elements),
    )


def elementwise(
    step: ModelStep,
    op: Literal["add", "scale"],
    role: str,
    layer: int | None,
    width: int,
    *,
    inputs: int,
    flops: int,
    rows: int | None = None,
) -> OperatorCall:
    """So many FLOPs an element of the result, from so many inputs of its size."""
    rows = step.rows if rows is None else rows
    return OperatorCall(
        op,
        role,
        layer,
        {"rows": rows, "width": width},
        flops=flops * rows * width,
        weight_bytes=0,
        read_bytes=step.activations(inputs * rows * width),
        written_bytes=step.activations(rows * width),
    )


def gather(step: ModelStep, role: str, *, table_rows: int, width: int) -> OperatorCall:
    """A row of the table for each token: at most as many different ones as there are; no arithmetic."""
    return OperatorCall(
        "gather",
        role,
        None,
        {"rows": step.rows, "width": width},
        flops=0,
        weight_bytes=step.weights(min(step.rows, table_rows) * width),
        read_bytes=step.rows * _ID_BYTES,
        written_bytes=step.activations(step.rows * width),
    )


def moe_routing(step: ModelStep, layer: int, mixture: Mixture) -> OperatorCall:
    """From the router's scores to each token's experts and their weights.

    A maximum, a subtraction, an exp, an add and a divide a score, an add for a correction; the search isn't counted.
    """
    scores, chosen = step.rows * mixture.experts, step.rows * mixture.each
    return OperatorCall(
        "moe_routing",
        "expert_routing",
        layer,
        {"rows": step.rows, "experts": mixture.experts, "each": mixture.each},
        flops=scores * (6 if mixture.router_bias else 5),
        weight_bytes=step.activations(mixture.experts) if mixture.router_bias else 0,
        read_bytes=step.activations(scores),
        written_bytes=step.activations(chosen) + chosen * _ID_BYTES,
    )


def combine_experts(step: ModelStep, layer: int, width: int, *, each: int) -> OperatorCall:
    """What a token's experts give, weighted and summed: a multiply and an add for each of their numbers."""
    return OperatorCall(
        "add",
        "expert_combine",
        layer,
        {"rows": step.rows, "width": width, "each": each},
        flops=2 * step.rows * each * width,
        weight_bytes=0,
        read_bytes=step.activations(step.rows * each * (width + 1)),
        written_bytes=step.activations(step.rows * width),
    )


def sampling(step: ModelStep, vocab: int) -> OperatorCall:
    """The next token of each sequence from its last logits, read once: a comparison each, as a greedy choice needs."""
    return OperatorCall(
        "sampling",
        "sampling",
        None,
        {"rows": step.batch, "width": vocab},
        flops=step.batch * vocab,
        weight_bytes=0,
        read_bytes=step.activations(step.batch * vocab),
        written_bytes=step.batch * _ID_BYTES,
    )
