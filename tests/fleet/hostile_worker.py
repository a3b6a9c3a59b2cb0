"""A stand-in for `fleet.worker` whose files do what hostile ones may."""

import os
import signal

from inferometer.errors import InputError

_CALLS: list[bytes] = []


def _make(path: bytes, limited: bool) -> bytes:
    _CALLS.append(path)
    if path == b"hungry":
        return bytes(len(bytearray(os.urandom(1)) * (600 << 20)))
    if path == b"dies":
        os.kill(os.getpid(), signal.SIGKILL)
    while path == b"loops":
        pass
    if path == b"only as the first":
        if len(_CALLS) > 1:
            os.abort()
        return b"first"
    if path == b"no trace":
        raise InputError("no trace")
    return path


SERVED = {"make": _make}
