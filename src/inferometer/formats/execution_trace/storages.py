"""Which storages a node's tensors lie in: those that it is given, and those that it gives or changes.

A tensor is `[tensor, storage, offset, elements, bytes of an element, device]`. A storage has one number while it lives;
after that another may get it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from inferometer.formats.execution_trace.nodes import Arguments

STORAGES: Final = ("input_storages", "written_storages")
_LENGTH: Final = 6
_STORAGE, _ELEMENTS, _ELEMENT_BYTES = 1, 3, 4
_CHANGED: Final = re.compile(r"Tensor\??(?:\(\w+!|!)")  # `Tensor(a!) out`, and `Tensor! out` as libraries write it
_MOST: Final = 2**63 - 1


def storages(given: Arguments, gave: Arguments, schema: str | None) -> dict[str, str | None]:
    """`STORAGES`: JSON lists of a storage's number and the bytes of the tensor in it.

    Args:
        given: What the op was called with.
        gave: What it returned.
        schema: The op's signature, which says what it changes; None: only what it returned was written.
    """
    changed = [value for value, is_changed in zip(given.values, _changes(schema), strict=False) if is_changed]
    read, written = _pairs(given.values), _pairs([*gave.values, *changed])
    return {name: json.dumps(pairs) for name, pairs in zip(STORAGES, (read, written), strict=True)}


def _changes(schema: str | None) -> list[bool]:
    """Whether the op changes each of its arguments, by its signature: `aten::add_(Tensor(a!) self, …) -> …`."""
    if schema is None:
        return []
    inside = schema.partition("(")[2].rpartition(" -> ")[0]
    parts = [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", inside)]
    return [_CHANGED.match(part) is not None for part in parts if part != "*"]


def _pairs(values: list[Any]) -> list[tuple[int, int]]:
    """A storage and the most bytes that one of these tensors has in it, in the order of the first ones."""
    found: dict[int, int] = {}
    for storage, size in _tensors(values):
        found[storage] = max(size, found.get(storage, 0))
    return list(found.items())


def _tensors(values: list[Any]) -> Iterator[tuple[int, int]]:
    for value in values:
        if not isinstance(value, list):
            continue
        if len(value) == _LENGTH and isinstance(value[-1], str) and all(_is_count(each) for each in value[:-1]):
            size = value[_ELEMENTS] * value[_ELEMENT_BYTES]
            if value[_STORAGE] and 0 < size <= _MOST:
                yield value[_STORAGE], size
        else:
            yield from _tensors([each for each in value if isinstance(each, list)])


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST
