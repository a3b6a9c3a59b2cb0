"""Threads as CUPTI numbers them, next to the system's numbers, which all else in a recording has.

CUPTI knows a thread by the lower 32 bits of `pthread_self`, which is Python's `ident` of it. PyTorch writes them as the
size of a signed number; where it records ops on the thread, and only there, it puts the system's number in their place
(seen with PyTorch 2.11 on an H200).
"""

import threading

_BITS = 32
_known: dict[int, int] = {}  # by ident; C++ threads that ran Python are here only


def remember_thread() -> int:
    """The system's number of this thread, which `system_threads` knows from now on."""
    native = _known[threading.get_ident()] = threading.get_native_id()
    return native


def system_threads() -> dict[int, int]:
    """The system's number by CUPTI's, of all threads of this process that run now, or that were remembered.

    CUPTI's number is there as it is, as a signed one, and as the size of that.
    """
    now = [(each.ident, each.native_id) for each in threading.enumerate()]
    found: dict[int, int] = {}
    for ident, native in [*_known.items(), *now]:
        if ident is not None and native is not None:
            low = ident % (1 << _BITS)
            signed = low - (1 << _BITS) if low >> (_BITS - 1) else low
            found[low] = found[signed] = found[abs(signed)] = native
    return found
