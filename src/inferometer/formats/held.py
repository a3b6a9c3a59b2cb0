"""A file that is held in memory as a whole while it is read, up to `limits.held_bytes`."""

import msgspec

from inferometer.errors import FormatError
from inferometer.formats.source import Source

_BLOCK_BYTES = 1 << 20
_HINT = "If there is memory for it, read it with --no-limits."


class Held(msgspec.Struct, frozen=True):
    """The bytes of a file, unpacked. `damage` says what was wrong with its compression: then they end there."""

    data: bytes
    damage: str | None


def hold(source: Source, *, hint: str = _HINT) -> Held:
    """The whole file; where its compression is damaged, up to there.

    Args:
        source: The file.
        hint: What to do about a file that is too large.

    Raises:
        InputError: It can't be opened.
        FormatError: It is larger than `limits.held_bytes`.
    """
    most = source.limits.held_bytes
    blocks, size = [], 0
    with source.open() as stream:
        while block := stream.read(_BLOCK_BYTES):
            blocks.append(block)
            size += len(block)
            if most is not None and size > most:
                expected = f"expected at most {most:,} bytes, since it is held in memory"
                raise FormatError(f"{source.name}: {expected}, found more (limit)", hint=hint)
        return Held(b"".join(blocks), stream.damage)


def read_held(source: Source, *, hint: str = _HINT) -> bytes:
    """As `hold`, of a format that makes nothing of a part.

    Raises:
        InputError: It can't be opened.
        FormatError: It is larger than `limits.held_bytes`, or its compression is damaged.
    """
    held = hold(source, hint=hint)
    if held.damage:
        raise FormatError(f"{source.name}: {held.damage}", hint="Copy or write the file again.")
    return held.data
