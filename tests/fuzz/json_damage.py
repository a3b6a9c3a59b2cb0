"""Damage of JSON that stays JSON, or nearly: other types and values in place, keys lost, doubled or renamed."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.fuzz import hostile
from tests.fuzz.byte_damage import Damage

_RAW = "\ue000raw"  # stands before what is written without quotes
_DEPTHS = (50, 600, 5_000, 100_000)


def change_values(rng: Random, data: bytes, other: bytes) -> bytes:
    """Other values in the place of some."""
    document = _read(data)
    places = list(_places(document))
    for holder, key in rng.sample(places, min(len(places), rng.choice((1, 1, 3, 10)))):
        holder[key] = _value(rng, other)
    return _write(rng, document)


def change_one_key_everywhere(rng: Random, data: bytes, other: bytes) -> bytes:
    """One field of all objects is of another type."""
    document = _read(data)
    named = [(holder, key) for holder, key in _places(document) if isinstance(key, str)]
    if named:
        _, wanted = rng.choice(named)
        value = _value(rng, other)
        for holder, key in named:
            if key == wanted:
                holder[key] = value if rng.random() < 0.8 else _value(rng, other)
    return _write(rng, document)


def lose_keys(rng: Random, data: bytes, _: bytes) -> bytes:
    document = _read(data)
    for _each in range(rng.choice((1, 3, 20))):
        places = list(_places(document))
        if places:
            holder, key = rng.choice(places)
            del holder[key]
    return _write(rng, document)


def rename_keys(rng: Random, data: bytes, _: bytes) -> bytes:
    document = _read(data)
    named = [(holder, key) for holder, key in _places(document) if isinstance(key, str)]
    for holder, key in rng.sample(named, min(len(named), rng.choice((1, 3)))):
        if key in holder:
            new = rng.choice((hostile.text(rng), rng.choice(named)[1], key.upper(), key + " ", key[:-1]))
            holder[new] = holder.pop(key)
    return _write(rng, document)


def swap_values(rng: Random, data: bytes, _: bytes) -> bytes:
    document = _read(data)
    places = list(_places(document))
    for _each in range(rng.choice((1, 4)) if len(places) > 1 else 0):
        (a, i), (b, j) = rng.sample(places, 2)
        left, right = json.dumps(a[i]), json.dumps(b[j])
        a[i], b[j] = json.loads(right), json.loads(left)  # copies: one may hold the other
    return _write(rng, document)


def double_items(rng: Random, data: bytes, _: bytes) -> bytes:
    document = _read(data)
    lists = [holder[key] for holder, key in _places(document) if isinstance(holder[key], list)]
    if isinstance(document, list):
        lists.append(document)
    if lists:
        items = rng.choice(lists)
        items += json.loads(json.dumps(items)) * rng.choice((1, 2))
        rng.shuffle(items)
    return _write(rng, document)


def double_keys(rng: Random, data: bytes, _: bytes) -> bytes:
    """The same key twice in one object."""
    text, found = data.decode("utf-8", "replace"), [i for i, c in enumerate(data[:50_000]) if c == ord("{")]
    at = rng.choice(found) + 1 if found else 0
    key = rng.choice(("ph", "ts", "dur", "args", "name", "traceEvents", "schema", "tables", "model_type", "value"))
    return (text[:at] + f'"{key}": {rng.choice(hostile.NUMBERS)}, ' + text[at:]).encode("utf-8", "surrogatepass")


def wrap(rng: Random, data: bytes, _: bytes) -> bytes:
    """The document inside another, or several in one."""
    twice = ((b"", b"\n" + data), (b"[", b"," + data + b"]"))
    before, after = rng.choice(((b"[", b"]"), (b'{"data": ', b"}"), (b"[[", b"]]"), *twice))
    return before + data + after


def nest(rng: Random, data: bytes, _: bytes) -> bytes:
    """A field, known or not, that is nested deeply."""
    document, depth = _read(data), rng.choice(_DEPTHS)
    left, right = rng.choice((("[", "]"), ('{"a":', "}"), ('{"args":', "}"), ('[{"a":[', "]}]")))
    value = f"{_RAW}{left * depth}{rng.choice(('', '1', '0'))}{right * rng.choice((depth, depth, depth - 1, 0))}"
    places = list(_places(document))
    holder, key = rng.choice(places) if places else ({}, "a")
    if isinstance(holder, dict) and rng.random() < 0.5:
        holder["unknown"] = value
    else:
        holder[key] = value
    return _write(rng, document)


DAMAGES: tuple[Damage, ...] = (
    *(change_values, change_values, change_values, change_one_key_everywhere, change_one_key_everywhere, lose_keys),
    *(rename_keys, swap_values, double_items, double_keys, wrap, nest),
)


def is_json(data: bytes) -> bool:
    """Whether the JSON damage can be done to it."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        return isinstance(_read(data), dict | list)
    except (ValueError, RecursionError):
        return False


def _read(data: bytes) -> Any:
    return json.loads(data.decode(), strict=False)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place that holds a value, as a container and a key or index."""
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            yield holder, key
            if key in holder if isinstance(holder, dict) else key < len(holder):
                waiting.append(holder[key])


def _value(rng: Random, other: bytes) -> Any:
    kind = rng.randrange(8)
    if kind < 2:
        return _RAW + rng.choice([number for number in hostile.NUMBERS if _is_number(number)])
    if kind < 4:
        return hostile.text(rng)
    if kind == 4:
        return hostile.number(rng)
    if kind == 5:
        return rng.choice((None, True, False, [], {}, [[]], [{}], {"": None}, [None] * 50, [1, "a", None, {}]))
    if kind == 6:
        return _RAW + rng.choice(('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\x"', "'a'", "nul", "tru", "", '"'))
    return rng.choice((rng.randrange(-3, 300), rng.random() * 1e6, -(2**63), 2**63, 2**64, len(other)))


def _is_number(text: str) -> bool:
    return text.isascii()


def _write(rng: Random, document: Any) -> bytes:
    layout = rng.choice(({}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}))
    text = json.dumps(document, **layout)
    raw, escaped = f'"{_RAW}', '"' + json.dumps(_RAW)[1:-1]
    for mark in (raw, escaped):
        while (at := text.find(mark)) != -1:
            end = _end_of_string(text, at + 1)
            text = text[:at] + json.loads(text[at : end + 1])[len(_RAW) :] + text[end + 1 :]
    return text.encode("utf-8", "surrogatepass")


def _end_of_string(text: str, at: int) -> int:
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at
