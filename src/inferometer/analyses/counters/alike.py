"""Which kernels of a trace and of a file of counters are one, by name, grid and block.

Tools write one name differently, and `canonical_name` doesn't reach all of it: Nsight Compute leaves out namespaces
(`at::<unnamed>::f` is `at::native::(anonymous namespace)::f`), and prints functions without their template's arguments
if asked to. So names are compared as they are first, then without namespaces, then by the function alone where one file
has no arguments. Grid and block must agree where both files have them.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import Final

import msgspec

from inferometer.names.canonical import canonical_parts
from inferometer.names.reading import last_word

_SPACES = re.compile(r"(?:[\w@]+::)+")


class Kind(msgspec.Struct, frozen=True):
    """What launches of one kernel share; `shape`: its grid and block, None where one of them isn't recorded."""

    kernel: str
    shape: Hashable | None


Key = Callable[[Kind], Hashable | None]


def _whole(kind: Kind) -> str:
    return canonical_parts(kind.kernel).text


def _without_spaces(kind: Kind) -> str:
    return _SPACES.sub("", _whole(kind))


def _function(kind: Kind) -> str:
    return last_word(canonical_parts(kind.kernel).path)


def _bare_function(kind: Kind) -> str | None:
    """None where the name has a template's arguments."""
    return None if canonical_parts(kind.kernel).arguments else _function(kind)


def _shape(kind: Kind) -> Hashable | None:
    return kind.shape


def _any_shape(_: Kind) -> Hashable | None:
    return ()


def _no_shape(kind: Kind) -> Hashable | None:
    return () if kind.shape is None else None


_NAMES: Final[tuple[tuple[Key, Key], ...]] = (
    (_whole, _whole),
    (_without_spaces, _without_spaces),
    (_function, _bare_function),
    (_bare_function, _function),
)  # of the trace and of the counters; None: not by this one
_SHAPES: Final[tuple[tuple[Key, Key], ...]] = ((_shape, _shape), (_no_shape, _any_shape), (_any_shape, _no_shape))


def number_alike(traced: Sequence[Kind], counted: Sequence[Kind]) -> tuple[list[int | None], list[int | None]]:
    """A number for each kind of both files: equal for one kernel, None for those that the other file lacks."""
    found: tuple[list[int | None], list[int | None]] = ([None] * len(traced), [None] * len(counted))
    number = 0
    for names, shapes in product(_NAMES, _SHAPES):
        here, there = (
            _by_key(kinds, numbers, name, shape)
            for kinds, numbers, name, shape in zip((traced, counted), found, names, shapes, strict=True)
        )
        for key in here.keys() & there.keys():
            for numbers, places in zip(found, (here[key], there[key]), strict=True):
                for place in places:
                    numbers[place] = number
            number += 1
    return found


def _by_key(
    kinds: Sequence[Kind], numbers: Sequence[int | None], name: Key, shape: Key
) -> dict[tuple[Hashable, Hashable], list[int]]:
    """The places of those without a number."""
    found: dict[tuple[Hashable, Hashable], list[int]] = {}
    for place, (kind, number) in enumerate(zip(kinds, numbers, strict=True)):
        if number is None and (text := name(kind)) is not None and (size := shape(kind)) is not None:
            found.setdefault((text, size), []).append(place)
    return found
