"""Damage that any file can suffer: bytes are cut off, flipped, moved, spliced in from another file."""

import gzip
from collections.abc import Callable
from random import Random

from tests.fuzz import hostile

Damage = Callable[[Random, bytes, bytes], bytes]
"""Random numbers, the file, another file of the same format: what is left of the first."""

_LONGEST_BLOCK = 4096


def truncate(rng: Random, data: bytes, _: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def cut_front(rng: Random, data: bytes, _: bytes) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def flip_bits(rng: Random, data: bytes, _: bytes) -> bytes:
    spoiled = bytearray(data)
    for _each in range(rng.choice((1, 1, 2, 8, 64))):
        if spoiled:
            spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
    return bytes(spoiled)


def set_bytes(rng: Random, data: bytes, _: bytes) -> bytes:
    spoiled = bytearray(data)
    for _each in range(rng.choice((1, 2, 8))):
        if spoiled:
            spoiled[rng.randrange(len(spoiled))] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(spoiled)


def insert(rng: Random, data: bytes, _: bytes) -> bytes:
    at, token = rng.randrange(len(data) + 1), rng.choice(hostile.BYTES)
    over = at + rng.choice((0, 0, len(token)))
    return data[:at] + token + data[over:]


def insert_text(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + hostile.text(rng).encode("utf-8", "surrogatepass") + data[at:]


def splice(rng: Random, data: bytes, other: bytes) -> bytes:
    at, start, end = rng.randrange(len(data) + 1), *_block(rng, other)
    return data[:at] + other[start:end] + data[at + rng.choice((0, end - start)) :]


def join_halves(rng: Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def append_other(_: Random, data: bytes, other: bytes) -> bytes:
    return data + other


def double_block(rng: Random, data: bytes, _: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 30)) + data[end:]


def delete_block(rng: Random, data: bytes, _: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + data[end:]


def swap_blocks(rng: Random, data: bytes, _: bytes) -> bytes:
    a, b, c, d = sorted(rng.randrange(len(data) + 1) for _each in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def zero_block(rng: Random, data: bytes, _: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + bytes(end - start) + data[end:]


def only_noise(rng: Random, data: bytes, _: bytes) -> bytes:
    keep = rng.choice((0, 4, 16, 100))
    return data[:keep] + rng.randbytes(rng.randrange(2000))


def repeat_all(rng: Random, data: bytes, _: bytes) -> bytes:
    return data * rng.choice((2, 3, 10))


DAMAGES: tuple[Damage, ...] = (
    *(truncate, truncate, cut_front, flip_bits, flip_bits, set_bytes, insert, insert, insert_text, splice, splice),
    *(join_halves, append_other, double_block, delete_block, swap_blocks, zero_block, only_noise, repeat_all),
)


def pack(rng: Random, data: bytes, other: bytes) -> bytes:
    """The file compressed: in one member or several, whole, or with header, data or trailer damaged."""
    at = rng.randrange(len(data) + 1)
    one, two = gzip.compress(data, 1, mtime=0), _members(data[:at], data[at:])
    kind = rng.randrange(10)
    if kind < 3:
        return (one, two, b"\0".join([one, b""]))[kind]
    if kind == 3:
        return one[:-8] + rng.randbytes(8)
    if kind == 4:
        return one[: -rng.randrange(1, 9)]
    if kind == 5:
        cut = _members(other)[:9]
        return two + rng.choice((bytes(5), b"garbage", b"\x1f\x8b", b"\x1f\x8b\x08", cut))
    if kind == 6:
        return _members(one)  # packed twice
    if kind == 7:
        flags = bytes([rng.randrange(256)])
        return one[:3] + flags + rng.randbytes(rng.choice((0, 2, 6))) + one[4:]
    if kind == 8:
        return _members(data, b"", bytes(rng.choice((1, 100_000)))) + gzip.compress(other, 1, mtime=0)
    return flip_bits(rng, one, b"")


def _members(*parts: bytes) -> bytes:
    return b"".join(gzip.compress(part, 1, mtime=0) for part in parts)


def _block(rng: Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randrange(_LONGEST_BLOCK))
