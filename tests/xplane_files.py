"""Real profiles of JAX, and a reader of the wire format that shares nothing with ours."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

H200 = Path(__file__).parents[1] / "samples" / "h200" / "jax.xplane.pb"
MI300 = Path(__file__).parents[2] / "shared" / "data" / "traces" / "xplane" / "mi300_jax_conv.xplane.pb"
PLANE, LINES, EVENTS, EVENT_NAMES, STAT_NAMES, STATS = 1, 3, 4, 4, 5, 6

real_files = pytest.mark.parametrize(
    "path",
    [
        pytest.param(H200, id="h200"),
        pytest.param(MI300, id="mi300", marks=pytest.mark.skipif(not MI300.is_file(), reason="needs ../shared")),
    ],
)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a message; of a float its bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = _varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        yield key >> 3, data[at : at + size]
        at += size


def blocks(data: bytes, number: int) -> list[bytes]:
    """The values of the fields with this number that have bytes."""
    return [value for each, value in fields(data) if each == number and isinstance(value, bytes)]


def numbers(data: bytes) -> dict[int, int]:
    """The fields that are numbers."""
    return {each: value for each, value in fields(data) if isinstance(value, int)}


def name_of(data: bytes) -> str:
    """The name of a plane, a line, or what names an event."""
    return next(iter(blocks(data, 2)), b"").decode()


def planes(path: Path) -> list[bytes]:
    """All planes."""
    return blocks(path.read_bytes(), PLANE)


def names_of(plane: bytes, number: int) -> dict[int, str]:
    """Names of events or stats by their numbers."""
    return {numbers(entry)[1]: name_of(blocks(entry, 2)[0]) for entry in blocks(plane, number)}


def kernel_ps(path: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Launches, and the ps that they took, by plane and kernel: events of streams."""
    count: Counter[tuple[str, str]] = Counter()
    took_ps: Counter[tuple[str, str]] = Counter()
    for plane in planes(path):
        names = names_of(plane, EVENT_NAMES)
        for line in blocks(plane, LINES):
            if name_of(line).startswith("Stream #"):
                for event in map(numbers, blocks(line, EVENTS)):
                    key = (name_of(plane), names[event[1]])
                    count[key] += 1
                    took_ps[key] += event.get(3, 0)
    return count, took_ps


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
