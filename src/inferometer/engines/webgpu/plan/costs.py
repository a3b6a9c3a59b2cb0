"""Least work and traffic of each dispatch, as formulas over the pass. All modelled, none measured.

Each operand counts once, at the size it lies in memory: weights with their scales, keys and values in the cache's
format, activations 4 bytes per number. What the host's words (`state`, `sampling`) cost isn't counted. FLOPs: a
multiply and an add are two; exponentials, roots and divisions aren't counted. N, K rows and columns of a matrix, D
hidden size, H heads.
"""

from dataclasses import dataclass

from inferometer.backends.wgsl.cache_formats import CacheFormat
from inferometer.engines.webgpu.model_spec import Experts, ModelSpec
from inferometer.engines.webgpu.plan.layout import F32_BYTES
from inferometer.engines.webgpu.program import Amount

_NORM_FLOPS = 4  # a number: a square and its sum, two multiplies
_ACTIVATION_FLOPS = {
    "silu": 3,  # an add and a multiply of the sigmoid, a multiply with up
    "gelu_tanh": 9,  # three multiplies and an add inside, a multiply by sqrt(2/pi), an add, two multiplies; with up
}


@dataclass(frozen=True)
class Cost:
    """Work of one dispatch."""

    flops: Amount
    bytes_read: Amount
    bytes_written: Amount


def _of_rows(number: int, *, one_row: bool) -> Amount:
    return Amount(fixed=number) if one_row else Amount(per_token=number)


def share(number: int, first: int, count: int, of_all: int) -> int:
    """What a part has of a number, `count` of `of_all` from `first` on: all parts' add up to it."""
    return (first + count) * number // of_all - first * number // of_all


def gather(spec: ModelSpec, first: int, rows: int, row_bytes: int) -> Cost:
    """Of a part of the table: the share of its rows in what all tokens read and write; ids are read in each part.

    `row_bytes`: of a row of the table.
    """
    scaled, read, written = (
        share(number, first, rows, spec.vocab)
        for number in (spec.hidden if spec.embed_scale != 1 else 0, row_bytes, (spec.hidden + 1) * F32_BYTES)
    )
    return Cost(Amount(per_token=scaled), Amount(per_token=read + F32_BYTES), Amount(per_token=written))


def norm(width: int, *, residual: bool, post: bool) -> Cost:
    """A norm of each row; `residual`: adds to the residual before; `post`: with a norm of what is added."""
    norms = 1 + post
    return Cost(
        Amount(per_token=width * (_NORM_FLOPS * norms + residual)),
        Amount(fixed=norms * width * F32_BYTES, per_token=(1 + residual) * width * F32_BYTES),
        Amount(per_token=(1 + residual) * width * F32_BYTES),
    )


def linear(n: int, k: int, row_bytes: int, *, bias: bool, one_row: bool, add: bool = False, norm: bool = False) -> Cost:
    """Rows times a matrix [n, k], whose rows have `row_bytes`; `one_row`: of however many, only the last.

    `add`: the products are added to what is there; `norm`: the row passes a norm before.
    """
    row = _of_rows(k * F32_BYTES, one_row=one_row)
    weights = n * row_bytes + (bias + add) * n * F32_BYTES + norm * k * F32_BYTES
    return Cost(
        _of_rows(2 * n * k + (bias + add) * n + norm * k * _NORM_FLOPS, one_row=one_row),
        Amount(fixed=weights + row.fixed, per_token=row.per_token),
        _of_rows(n * F32_BYTES, one_row=one_row),
    )


def split_linear(n: int, k: int, row_bytes: int, splits: int) -> Cost:
    """The same, its columns in parts that `sum_splits` adds."""
    whole = linear(n, k, row_bytes, bias=False, one_row=True)
    return Cost(whole.flops, whole.bytes_read, Amount(fixed=splits * n * F32_BYTES))


def sum_splits(n: int, splits: int, *, bias: bool, add: bool = False) -> Cost:
    """Parts of columns added; `add`: to what is there."""
    more = bias + add
    read = (splits + more) * n * F32_BYTES
    return Cost(Amount(fixed=(splits - 1 + more) * n), Amount(fixed=read), Amount(fixed=n * F32_BYTES))


def gate_up(spec: ModelSpec, n: int, k: int, row_bytes: int, *, norm: bool = False) -> Cost:
    """Two matrices [n, k] on the same rows, and the activation of the first's times the second's.

    `norm`: the rows pass a norm before.
    """
    return Cost(
        Amount(per_token=4 * n * k + n * _ACTIVATION_FLOPS[spec.activation] + norm * k * _NORM_FLOPS),
        Amount(fixed=2 * n * row_bytes + norm * k * F32_BYTES, per_token=k * F32_BYTES),
        Amount(per_token=n * F32_BYTES),
    )


def moe_route(experts: Experts, scores: int) -> Cost:
    """Each row's experts by its scores, and their weights: an add a score, a multiply a weight."""
    return Cost(
        Amount(per_token=experts.count + experts.each),
        Amount(per_token=scores * F32_BYTES),
        Amount(per_token=2 * experts.each * F32_BYTES),
    )


def expert_gate_up(spec: ModelSpec, experts: Experts, part: range, row_bytes: int) -> Cost:
    """Gate, up and activation of each row's experts, as far as they are in a part of all.

    Every row reads its experts' weights: those of one expert are read once per row, in a pass of many too. Of a part,
    its share of what all parts do, since which experts a row has isn't known before.
    """
    n, k, each = experts.size, spec.hidden, experts.each
    flops, read, written = (
        share(each * number, part.start, len(part), experts.count)
        for number in (4 * n * k + n * _ACTIVATION_FLOPS[spec.activation], 2 * n * row_bytes, n * F32_BYTES)
    )
    return Cost(Amount(per_token=flops), Amount(per_token=read + (k + each) * F32_BYTES), Amount(per_token=written))


def expert_down(spec: ModelSpec, experts: Experts, part: range, row_bytes: int) -> Cost:
    """Down of each row's experts, times their weights, summed: as `expert_gate_up`. Every part but the first adds."""
    n, k, each, adds = spec.hidden, experts.size, experts.each, part.start > 0
    flops, weights, x = (
        share(each * number, part.start, len(part), experts.count)
        for number in (2 * n * k + 2 * n, n * row_bytes, k * F32_BYTES)
    )
    return Cost(
        Amount(per_token=flops),
        Amount(per_token=weights + x + (2 * each + adds * n) * F32_BYTES),
        Amount(per_token=n * F32_BYTES),
    )


def shared_expert_add(n: int) -> Cost:
    """A multiply and an add a number."""
    return Cost(Amount(per_token=2 * n), Amount(per_token=(2 * n + 1) * F32_BYTES), Amount(per_token=n * F32_BYTES))


def gated_activation(spec: ModelSpec, n: int) -> Cost:
    """The activation of n numbers of each row times n others."""
    return Cost(
        Amount(per_token=n * _ACTIVATION_FLOPS[spec.activation]),
        Amount(per_token=2 * n * F32_BYTES),
        Amount(per_token=n * F32_BYTES),
    )


def rope(spec: ModelSpec, cache: CacheFormat) -> Cost:
    """Queries and keys turned, keys and values put into the cache."""
    queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    turned = queries + keys
    width = turned + keys
    norms = 2 * spec.head_dim * F32_BYTES if spec.head_norms else 0
    return Cost(
        Amount(per_token=turned * (3 + (_NORM_FLOPS if spec.head_norms else 0))),
        Amount(fixed=norms, per_token=(width + spec.head_dim) * F32_BYTES),
        Amount(per_token=queries * F32_BYTES + 2 * keys * cache.number_bytes),
    )


def attention(spec: ModelSpec, cache: CacheFormat, window: int | None, *, chunk: int | None = None) -> Cost:
    """Scores and their weighted sum. Of the cache, what the last row sees is read.

    With a window, rows before the last one see a little more. With `chunk`, parts of so many positions are written for
    `merge`: as many as chunks are full.
    """
    width = spec.heads * spec.head_dim
    position = 2 * spec.kv_heads * spec.head_dim * cache.number_bytes
    written = Amount(per_token=width * F32_BYTES)
    if chunk is not None:
        written = Amount(per_kv=_parts_bytes(spec) // chunk, window=window)
    return Cost(
        Amount(per_pair=4 * width + (spec.attention_softcap is not None) * spec.heads, window=window),
        Amount(per_token=width * F32_BYTES, per_kv=position, window=window),
        written,
    )


def merge(spec: ModelSpec, window: int | None, chunk: int) -> Cost:
    """Parts of the positions become the sum over all: a multiply and an add a number of each part."""
    width = spec.heads * spec.head_dim
    return Cost(
        Amount(per_kv=2 * width // chunk, window=window),
        Amount(per_kv=_parts_bytes(spec) // chunk, window=window),
        Amount(fixed=width * F32_BYTES),
    )


def _parts_bytes(spec: ModelSpec) -> int:
    """A part's numbers: a head's sum, its largest score, the sum of weights."""
    return spec.heads * (spec.head_dim + 2) * F32_BYTES


def soft_cap(n: int) -> Cost:
    """Numbers squeezed in place: a multiply each."""
    return Cost(Amount(fixed=n), Amount(fixed=n * F32_BYTES), Amount(fixed=n * F32_BYTES))


def argmax(spec: ModelSpec, groups: int) -> Cost:
    """The best of all logits, with the penalty where a token was seen."""
    return Cost(Amount(fixed=spec.vocab), Amount(fixed=2 * spec.vocab * F32_BYTES), Amount(fixed=groups * 8))


def sample(groups: int) -> Cost:
    """The best of the groups' bests. With a temperature the logits are read too: not in here, as greedy doesn't."""
    return Cost(Amount(), Amount(fixed=groups * 8), Amount(fixed=2 * F32_BYTES))
