"""Find literal text in a window: by the C library's `memmem`, which is quicker than `bytearray.find`.

Where the library has none (Windows), `bytearray.find` does it.
"""

import ctypes
from collections.abc import Callable
from functools import cache


class Search:
    """Finds in one buffer, which must not be empty, and not be resized meanwhile."""

    def __init__(self, buf: bytearray) -> None:
        self._buf = buf
        self._memmem = _memmem()
        self._address = 0 if self._memmem is None else ctypes.addressof(ctypes.c_char.from_buffer(buf))

    def find(self, needle: bytes, start: int, end: int) -> int:
        """As `bytearray.find`, for 0 <= start <= end <= the length: where `needle` first stands in between, or -1."""
        if self._memmem is None:
            return self._buf.find(needle, start, end)
        found = self._memmem(self._address + start, end - start, needle, len(needle))
        return -1 if found is None else found - self._address


@cache
def _memmem() -> Callable[[int, int, bytes, int], int | None] | None:
    try:
        function = ctypes.CDLL(None).memmem
    except (AttributeError, OSError, TypeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return function
