"""The attribute names of a module's children, from their classes and the order of their calls: `module_names.json`.

A rule is for parents whose class fits a pattern; the first rule that fits counts. Each of its orders is one way in
which such modules call their children: `KIND=NAME` in the order of the calls, where `kinds` has the pattern of class
names. An order fits if the children keep to it and those of a kind are all there or none is, but for `KIND?`, which
may be missing: a child then has a name if it can be only one. The order that names most children answers, the first of
equals. An order has a place for every child whose class is of the pattern `must`, else it is another model's. Where
none fits, kinds that are `plain` still have their name, if there is one such child and one such name; so has each of
several kinds that are there once, whatever their order.

`layers.*` takes any number of children and numbers them, `*` those of a Sequential, `experts.?` those of which some
may never be called. Next to such a container children have no fixed place, since a trace may begin in its midst.

Every rule has its source. What no rule shows has no name: nothing is guessed from a class alone.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import msgspec

_LONGEST_NAME = 200


class Segment(msgspec.Struct, frozen=True, eq=False):
    """A part of a path: an attribute's name, with the index after it in a container (`layers.17`, `layers.*`)."""

    text: str
    pooled: str
    is_index_known: bool = True


@lru_cache(maxsize=8_192)
def child_segments(parent: str, children: tuple[str, ...]) -> tuple[Segment | None, ...]:
    """What stands for each child of a module, all different; null where no convention says.

    Args:
        parent: The parent's class.
        children: The children's classes, in the order in which a pass first calls them.
    """
    orders = _orders(parent)
    fits = [segments for order in orders if (segments := _fit(order, children))]
    if not fits:
        fits = [_by_kind(order, children) for order in orders]
    return max(fits, key=_count, default=(None,) * len(children))


def root_segment(root: str) -> Segment | None:
    """What a part of a model is called in the whole, if it was called by itself."""
    return child_segments("", (root,))[0]


@lru_cache(maxsize=8_192)
def is_model(name: str) -> bool:
    """Whether this class is a whole model, which has no segment as a root."""
    return _is(_conventions().models, name)


@lru_cache(maxsize=8_192)
def is_wrapper(name: str) -> bool:
    """Whether this class stands for the one module inside it."""
    return _is(_conventions().wrappers, name)


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parent: str
    source: str
    orders: tuple[str, ...]


class _Conventions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    models: str
    wrappers: str
    kinds: dict[str, str]
    plain: frozenset[str]
    must: str
    rules: tuple[_Rule, ...]


class _Entry(msgspec.Struct, frozen=True):
    kind: str
    name: str
    is_repeated: bool
    is_optional: bool


_Order = tuple[_Entry, ...]
_Segments = tuple[Segment | None, ...]


@cache
def _conventions() -> _Conventions:
    from importlib.resources import files

    return msgspec.json.decode((files("inferometer.names") / "module_names.json").read_bytes(), type=_Conventions)


def _is(pattern: str, name: str) -> bool:
    """Whether a class fits; one with an endless name, over which a pattern could take as long, fits none."""
    return len(name) <= _LONGEST_NAME and re.fullmatch(pattern, name) is not None


@lru_cache(maxsize=8_192)
def _orders(parent: str) -> tuple[_Order, ...]:
    rule = next((rule for rule in _conventions().rules if _is(rule.parent, parent)), None)
    return tuple(tuple(_entries(order)) for order in rule.orders) if rule else ()


def _entries(order: str) -> Iterator[_Entry]:
    for entry in order.split():
        kind, _, name = entry.partition("=")
        yield _Entry(kind.removesuffix("?"), name, name[-1] in "*?", kind.endswith("?"))


@lru_cache(maxsize=65_536)
def _kind(kinds: tuple[str, ...], name: str) -> str | None:
    """The first of these kinds that a class is of."""
    patterns = _conventions().kinds
    return next((kind for kind in kinds if _is(patterns[kind], name)), None)


@lru_cache(maxsize=8_192)
def _must_fit(name: str) -> bool:
    """Whether an order needs a place for this class to fit."""
    return _is(_conventions().must, name)


def _count(segments: _Segments) -> int:
    return sum(segment is not None for segment in segments)


def _known_kinds(order: _Order, children: Sequence[str]) -> list[str | None]:
    kinds = tuple(dict.fromkeys(entry.kind for entry in order))
    return [_kind(kinds, name) for name in children]


def _fit(order: _Order, children: Sequence[str]) -> _Segments | None:
    """The children by an order; null where they don't keep to it."""
    kinds = _known_kinds(order, children)
    is_container = any(entry.is_repeated for entry in order)
    if not is_container and _has_stranger(kinds, children):
        return None
    entries = _by_count(order, kinds) if is_container else _by_place(order, kinds)
    if entries is None:
        return None
    segments = [Segment(entry.name, entry.name) if entry else None for entry in entries]
    for place, segment in _indexed(order, children, entries) if is_container else ():
        segments[place] = segment
    return _without_doubles(segments)


def _by_kind(order: _Order, children: Sequence[str]) -> _Segments:
    """The children whose kind shows their name, whatever the order; of any kind, if each is there once."""
    kinds = _known_kinds(order, children)
    entries = Counter(entry.kind for entry in order)
    counts = Counter(kind for kind in kinds if kind)
    is_whole = not _has_stranger(kinds, children) and all(entries[kind] == count == 1 for kind, count in counts.items())
    names = {entry.kind: entry.name for entry in order if is_whole or entry.kind in _conventions().plain}
    alone = {kind for kind in names if counts[kind] == entries[kind] == 1}
    return _without_doubles([Segment(names[kind], names[kind]) if kind in alone else None for kind in kinds])


def _has_stranger(kinds: Sequence[str | None], children: Sequence[str]) -> bool:
    """Whether there is a child that any order of such a parent would have a place for."""
    return any(kind is None and _must_fit(name) for kind, name in zip(kinds, children, strict=True))


def _by_count(order: _Order, kinds: Sequence[str | None]) -> list[_Entry | None]:
    """Entries of the kinds of which there are as many children as names."""
    entries: list[_Entry | None] = [None] * len(kinds)
    for kind in {kind for kind in kinds if kind}:
        named = [entry for entry in order if entry.kind == kind]
        places = [place for place, other in enumerate(kinds) if other == kind]
        if len(named) == 1 and named[0].is_repeated:
            named *= len(places)
        if len(named) == len(places):
            for place, entry in zip(places, named, strict=True):
                entries[place] = entry
    return entries


def _by_place(order: _Order, kinds: Sequence[str | None]) -> list[_Entry | None] | None:
    """Entries of the children that can be only one; null where the children aren't in this order, or not complete."""
    for kind in {kind for kind in kinds if kind}:
        named = [entry for entry in order if entry.kind == kind]
        if not sum(not entry.is_optional for entry in named) <= kinds.count(kind) <= len(named):
            return None
    first, last = _align(order, kinds), _align(order[::-1], kinds[::-1])
    if first is None or last is None:
        return None
    ends = len(order) - 1
    return [
        order[place] if place is not None and other is not None and place + other == ends else None
        for place, other in zip(first, reversed(last), strict=True)
    ]


def _align(order: _Order, kinds: Sequence[str | None]) -> list[int | None] | None:
    """The earliest entry for each child, one after the other."""
    places: list[int | None] = []
    place = 0
    for kind in kinds:
        if kind is None:
            places.append(None)
            continue
        while place < len(order) and order[place].kind != kind:
            place += 1
        if place == len(order):
            return None
        places.append(place)
        place += 1
    return places


def _indexed(order: _Order, children: Sequence[str], entries: Sequence[_Entry | None]) -> Iterator[tuple[int, Segment]]:
    """The children of a container with their numbers; first those called after the end or start of a pass."""
    places = [place for place, entry in enumerate(entries) if entry and entry.is_repeated]
    if not places:
        return
    middle = next(place for place, entry in enumerate(order) if entry.is_repeated)
    before, after = order[:middle], order[middle + 1 : middle + 2]
    turn = next((place for place in places if _is_turn(entries, place, places[0], before[:1], after)), places[0])
    is_sure = turn != places[0] or any(entry in before for entry in entries[: places[0]] if entry)
    name = order[middle].name[:-1]
    is_sure = is_sure and order[middle].name[-1] == "*"
    same = len({children[place] for place in places}) == 1 < len(places)
    for index, place in enumerate(sorted(places, key=lambda place: (place < turn, place))):
        pooled = f"{name}*" if name or same else str(index)
        yield place, Segment(f"{name}{index}", pooled, is_sure or not name)


def _is_turn(
    entries: Sequence[_Entry | None], place: int, first: int, starts: Sequence[_Entry], ends: Sequence[_Entry]
) -> bool:
    """Whether a new pass began between this child of a container and the one before it."""
    between = []
    for other in range(place - 1, first, -1):
        entry = entries[other]
        if entry and entry.is_repeated:
            break
        between.append(entry)
    return any(entry in starts or entry in ends for entry in between if entry)


def _without_doubles(segments: Sequence[Segment | None]) -> _Segments:
    """The first child of a name keeps it: two kinds may have the same name, but not under one parent."""
    seen: set[str] = set()
    kept: list[Segment | None] = []
    for segment in segments:
        kept.append(segment if segment and segment.text not in seen else None)
        if segment:
            seen.add(segment.text)
    return tuple(kept)
