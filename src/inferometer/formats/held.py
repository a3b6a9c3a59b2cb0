"""A file that is held in memory as a whole while it is read."""

from inferometer.errors import FormatError
from inferometer.formats.source import Source

_BLOCK_BYTES = 1 << 20


def read_held(source: Source, *, hint: str) -> bytes:
    """All of it, unpacked; `hint` says how to make it smaller.

    Raises:
        InputError: It can't be opened.
        FormatError: It is larger than `limits.held_bytes`, or its compression is damaged.
    """
    most = source.limits.held_bytes
    with source.open() as stream:
        pieces, size = [], 0
        while piece := stream.read(_BLOCK_BYTES):
            pieces.append(piece)
            size += len(piece)
            if most is not None and size > most:
                raise FormatError(f"{source.name}: expected at most {most:,} bytes, found more", hint=hint)
        if stream.damage:
            raise FormatError(f"{source.name}: {stream.damage}", hint="Copy or write the file again.")
    return b"".join(pieces)
