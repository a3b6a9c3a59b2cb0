"""Expressions of `axes.json`: integer arithmetic of an operator's arguments, and functions that make index tensors.

`+ - * // or [] ()`, an element, and the functions below. Index tensors are numpy arrays from a fixed seed: scattered
pages, different experts, positions that aren't zero, as the operators draw them, but not the same numbers.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

_SEED = 0
_FURTHEST = 32_768  # a position, as far as long prompts go
_MOST = 1 << 24  # entries of a list made by repetition
_ROWS = 1 << 12  # rows of experts drawn at once

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression.

    Raises:
        LookupError: It has a name that isn't in `names`.
        TypeError, ValueError, ArithmeticError: A value isn't one that the expression can use.
    """
    return _value(_parsed(expression), names)


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.List(elts=elements):
            return [_value(each, names) for each in elements]
        case ast.BoolOp(op=ast.Or(), values=values):
            found = [_value(each, names) for each in values[:1]]
            return found[0] if found[0] is not None else _value(values[1], names)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left, names), _value(right, names))
        case ast.Subscript(value=value, slice=place):
            return _value(value, names)[_value(place, names)]
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_value(each, names) for each in args))
    raise ValueError(f"no such expression: {ast.unparse(node)}")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(left, list) and right > _MOST:
        raise ValueError(f"expected at most {_MOST:,} entries, found {right:,}")
    return _BINARY[type(op)](left, right)


def _ceil(number: int, step: int) -> int:
    return -(-number // step)


def _blocks(lengths: Sequence[int], size: int) -> int:
    return sum(_ceil(length, size) for length in lengths)


def _offsets(lengths: Sequence[int]) -> Any:
    return np.cumsum([0, *lengths], dtype=np.int64).astype(np.int32)


def _table(lengths: Sequence[int], size: int, pool: int) -> Any:
    """Pages of each sequence, scattered over the pool; 0 behind them."""
    blocks = [_ceil(length, size) for length in lengths]
    table = np.zeros((len(blocks), max(blocks, default=0)), np.int32)
    pages, at = np.random.default_rng(_SEED).permutation(pool), 0
    for row, count in enumerate(blocks):
        table[row, :count] = pages[at : at + count]
        at += count
    return table


def _experts(tokens: int, experts: int, top_k: int) -> Any:
    """Different ones for each token, all equally popular."""
    draw = np.random.default_rng(_SEED)
    parts = [
        draw.random((min(_ROWS, tokens - start), experts), np.float32).argsort(1)[:, :top_k]
        for start in range(0, tokens, _ROWS)
    ]
    return np.concatenate([np.zeros((0, top_k)), *parts]).astype(np.int32)


def _rows(sequences: int, states: int) -> Any:
    if sequences > states:
        raise ValueError(f"{sequences} sequences expected a row each of {states}")
    return np.random.default_rng(_SEED).permutation(states)[:sequences].astype(np.int32)


def _positions(tokens: int) -> Any:
    return np.random.default_rng(_SEED).integers(1, _FURTHEST, tokens, dtype=np.int32)


def _slots(tokens: int, blocks: int, size: int, padded: int) -> Any:
    """Different places in the cache; -1 for padded tokens."""
    draw = np.random.default_rng(_SEED)
    slots = draw.permutation(blocks * size)[:tokens].astype(np.int64)
    slots[draw.permutation(tokens)[:padded]] = -1
    return slots


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "len": len,
    "sum": sum,
    "ceil": _ceil,
    "blocks": _blocks,
    "largest": lambda lengths: max(lengths, default=0),
    "last": lambda shape: shape[-1],
    "lengths": lambda lengths: np.array(lengths, np.int32),
    "offsets": _offsets,
    "table": _table,
    "experts": _experts,
    "rows": _rows,
    "positions": _positions,
    "slots": _slots,
}
