"""Which known models have the matrices that a trace multiplies by, and over how many devices each is split.

It is an inference from shapes, never a fact: tunings and distillations have the dimensions of their origin, and a model
that isn't known may have those of one that is. So a model is named only where

- products of both attention and the feed-forward part have its sizes: three of its four or more roles or better;
- every product that touches its width, and takes 5 % or more of the time of these, is one of its own;
- no product is of another vocabulary;
- of a model with experts, the router or their weights are seen: one expert alone is like any dense layer.

Of several that fit, those on which the most roles agree are named, all of them where they agree on as many. Where a
trace shows the output projection alone (a graph's replay has no ops), all models of that width and vocabulary are
named, and the basis says so. A split over N devices (tensor parallelism) divides heads, feed-forward widths and
vocabulary by N; width and experts stay whole.

Only ops that are products by their name count (`mm`, `linear`, `matmul`, `gemm`), and experts' weights (`moe`,
`expert`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import msgspec
import polars as pl

from inferometer.architectures.dimensions import Dimensions, known_dimensions

SPLITS: Final = (1, 2, 4, 8, 16)
_PRODUCT: Final = re.compile(r"mm(?![a-z])|linear|matmul|gemm", re.IGNORECASE)
_EXPERTS: Final = re.compile(r"moe|expert|grouped", re.IGNORECASE)
_ENOUGH: Final = 3  # roles
_MATTERS: Final = 0.05  # of the time of products that touch the width
_VOCABULARY: Final = 30_000  # columns: no other matrix that reads the width is left to be as wide
_PADDED: Final = 64  # engines pad vocabularies to a multiple
_ATTENTION: Final = ("attention in", "attention out")
_OUTPUT: Final = "vocabulary"
_ALSO: Final = "keys"  # explained, but no sign of a model

Sizes = tuple[int, int]
"""Sizes of a matrix: what it reads, what it gives."""


@dataclass(frozen=True)
class Recognised:
    """Models that fit equally well: by name, each with the devices that it is split over. `agree`: the roles seen."""

    models: tuple[tuple[str, int], ...]
    hidden: int
    agree: tuple[str, ...]

    @property
    def is_by_vocabulary(self) -> bool:
        """Whether the output projection is all that was seen of it."""
        return self.agree == (_OUTPUT,)

    @property
    def split(self) -> int | None:
        """Over how many devices; None where that hangs on which of the models it is."""
        splits = {split for _, split in self.models}
        return splits.pop() if len(splits) == 1 else None

    def say_models(self) -> str:
        """`Llama-3.1-8B or Mistral-7B-v0.1`."""
        names = [name if self.split else f"{name} over {split}" for name, split in self.models]
        return " or ".join(names)


@dataclass(frozen=True)
class Matrices:
    """What a trace multiplies by: products with their time, and experts' weights, (experts, rows, columns)."""

    products: Mapping[Sizes, int]
    experts: frozenset[tuple[int, int, int]]


def recognise(matrices: Matrices) -> list[Recognised]:
    """The models that fit, at most one answer for each width of a model; usually one, or none."""
    widths = {size for sizes in matrices.products for size in sizes}
    known = [each for each in known_dimensions() if each.hidden in widths]
    found = [_of_width(hidden, known, matrices) for hidden in sorted({each.hidden for each in known})]
    return [each for each in found if each is not None]


def find_matrices(ops: pl.DataFrame) -> Matrices:
    """The matrices of ops: a frame with `op`, `input_dims` as recorded, and `total_ns`."""
    products: dict[Sizes, int] = {}
    experts: set[tuple[int, int, int]] = set()
    for op, text, time_ns in ops.select("op", "input_dims", "total_ns").drop_nulls().iter_rows():
        sizes, own = _of_op(op, text)
        experts |= own
        if sizes is not None:
            products[sizes] = products.get(sizes, 0) + time_ns
    return Matrices(products, frozenset(experts))


@lru_cache(maxsize=50_000)  # traces of one model have the same ops
def _of_op(op: str, text: str) -> tuple[Sizes | None, frozenset[tuple[int, int, int]]]:
    """The matrix of a product, and experts' weights."""
    if _EXPERTS.search(op):
        stacks = (each for each in _tensors(text) if len(each) == len(("E", "N", "K")))
        return None, frozenset((each[0], each[1], each[2]) for each in stacks)
    return (_product([*_tensors(text)]) if _PRODUCT.search(op) else None), frozenset()


def _of_width(hidden: int, known: Iterable[Dimensions], matrices: Matrices) -> Recognised | None:
    own = {sizes: time for sizes, time in matrices.products.items() if hidden in sizes}
    fits = [
        (agree, each.name, split)
        for each in known
        for split in SPLITS
        if each.hidden == hidden and (agree := _agreeing(each, split, own, matrices))
    ]
    whole = [fit for fit in fits if _is_enough(fit[0])]
    by_output = [fit for fit in fits if fit[0] == (_OUTPUT,) and fit[2] == 1]
    chosen = whole or by_output
    if not chosen:
        return None
    most = max(len(agree) for agree, *_ in chosen)
    best = [fit for fit in chosen if len(fit[0]) == most]
    common = tuple(role for role in best[0][0] if all(role in agree for agree, *_ in best))
    return Recognised(tuple((name, split) for _, name, split in best), hidden, common)


@cache
def _roles(of: Dimensions, split: int) -> Mapping[str, frozenset[Sizes]] | None:
    """The products by their roles, on one of so many devices; None where it can't be split so."""
    widths = [width for width in (of.intermediate, of.expert_width, of.shared_width) if width is not None]
    if of.heads % split or any(width % split for width in widths):
        return None
    hidden, parts = of.hidden, [width // split for width in widths]
    roles = {
        **_attention(of, of.heads // split, max(1, of.kv_heads // split)),
        "feed-forward in": frozenset((hidden, times * width) for width in parts for times in (1, 2)),
        "feed-forward out": frozenset((width, hidden) for width in parts),
        _OUTPUT: frozenset((hidden, width) for width in _vocabularies(of.vocab, split)),
    }
    return roles if of.experts is None else {**roles, "router": frozenset({(hidden, of.experts)})}


def _attention(of: Dimensions, heads: int, kv_heads: int) -> dict[str, frozenset[Sizes]]:
    hidden, latent = of.hidden, of.latent
    if latent is None:
        queries, keys = heads * of.head_dim, kv_heads * of.head_dim
        own = frozenset({(hidden, queries), (hidden, queries + 2 * keys)})
        also = frozenset({(hidden, keys), (hidden, 2 * keys)})
        return {_ATTENTION[0]: own, _ALSO: also - own, _ATTENTION[1]: frozenset({(queries, hidden)})}
    queries, cached, rank = heads * (latent.nope + latent.rope), latent.rank + latent.rope, latent.query_rank
    first = {(hidden, queries)} if rank is None else {(rank, queries), (hidden, rank + cached)}
    others = {(hidden, cached), (latent.rank, heads * (latent.nope + latent.value))}
    others |= set() if rank is None else {(hidden, rank)}
    return {
        _ATTENTION[0]: frozenset(first),
        _ALSO: frozenset(others),
        _ATTENTION[1]: frozenset({(heads * latent.value, hidden)}),
    }


def _vocabularies(vocab: int, split: int) -> set[int]:
    padded = -(-vocab // _PADDED) * _PADDED
    return {vocab, padded, -(-vocab // split), padded // split}


def _has_experts(of: Dimensions, split: int, seen: Iterable[tuple[int, int, int]]) -> bool:
    if of.experts is None or of.expert_width is None:
        return False
    width = of.expert_width // split
    return any(count == of.experts and of.hidden in sizes and {width, 2 * width} & set(sizes) for count, *sizes in seen)


def _explains(roles: Mapping[str, frozenset[Sizes]], own: Mapping[Sizes, int], hidden: int) -> bool:
    """Whether each product that matters, of those which touch the width, is the model's."""
    explained = frozenset().union(*roles.values())
    least = _MATTERS * sum(own.values())
    return all(
        sizes in explained or (time < least and not (sizes[0] == hidden and sizes[1] >= _VOCABULARY))
        for sizes, time in own.items()
    )


def _agreeing(of: Dimensions, split: int, own: Mapping[Sizes, int], matrices: Matrices) -> tuple[str, ...]:
    """The roles that are seen of the model on one of so many devices; none where it doesn't fit."""
    roles = _roles(of, split)
    if roles is None or not _explains(roles, own, of.hidden):
        return ()
    agree = [role for role, sizes in roles.items() if role != _ALSO and not sizes.isdisjoint(matrices.products)]
    agree += ["experts"] if _has_experts(of, split, matrices.experts) else []
    is_dense = of.experts is None or {"router", "experts"} & {*agree}
    return tuple(agree) if is_dense or agree == [_OUTPUT] else ()


def _is_enough(agree: tuple[str, ...]) -> bool:
    """Three roles or more, of attention and of what follows it; the vocabulary is none of these."""
    attention = [role for role in agree if role in _ATTENTION]
    others = [role for role in agree if role not in (*_ATTENTION, _OUTPUT)]
    return bool(attention and others) and len(attention) + len(others) >= _ENOUGH


def _tensors(text: str) -> Iterator[list[int]]:
    """The sizes of each tensor of recorded arguments; of a list of tensors, of each in it."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return  # cut, as very long ones are
    for each in decoded if isinstance(decoded, list) else ():
        yield from _within(each)


def _within(value: Any) -> Iterator[list[int]]:
    if not isinstance(value, list) or not value:
        return
    if all(type(size) is int for size in value):
        yield value
    elif all(isinstance(inner, list) for inner in value):
        for inner in value:
            if inner and all(type(size) is int for size in inner):
                yield inner


def _product(tensors: list[list[int]]) -> Sizes | None:
    """The matrix of a product: the second of two tensors that follow each other, and have one inner size in common."""
    for left, right in pairwise(tensors):
        if len(left) < len(("M", "K")) or len(right) != len(("K", "N")):
            continue
        inner = left[-1]
        if inner == right[0]:
            return inner, right[1]
        if inner == right[1]:
            return inner, right[0]
    return None
