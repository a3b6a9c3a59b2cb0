"""What a process of `workers` does: open one trace, and give its digest."""

import os
from collections.abc import Callable, Mapping
from typing import Final


def _make(path: bytes, limited: bool) -> bytes:
    """The digest of the trace at `path`, packed.

    Raises:
        InputError: It can't be read.
    """
    from inferometer.fleet.digest import encode_digest, make_digest
    from inferometer.formats.opening import open_trace
    from inferometer.formats.source import Limits

    limits = Limits() if limited else Limits.none()
    with open_trace(os.fsdecode(path), limits=limits) as trace:
        return encode_digest(make_digest(trace))


SERVED: Final[Mapping[str, Callable[..., bytes]]] = {"make": _make}
