"""Whole numbers as protobuf writes them: seven bits a byte, the lowest first, the eighth says that more follow."""

LONGEST = 10
"""Bytes of 64 bits."""


def read_varint(data: bytes, at: int, *, longest: int = LONGEST) -> tuple[int | None, int]:
    """The number at `at` and where it ends; None and `at` where it doesn't end within `longest` bytes."""
    value = 0
    for i, byte in enumerate(data[at : at + longest]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    return None, at
