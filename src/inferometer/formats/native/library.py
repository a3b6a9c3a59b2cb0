"""The library's functions, and whether there is one."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Final

from inferometer.formats.native.build import LIBRARY, is_current
from inferometer.processes import asked_processes, own_cores

VARIABLE: Final = "INFEROMETER_NATIVE"
"""The environment's variable that says `0` where the library is not to be used."""
_MOST_THREADS: Final = 8

_FUNCTIONS: Final = {
    "library_trim": (None, []),
    "kineto_decode": (c_void_p, [c_void_p, c_size_t, c_size_t, c_size_t, c_int, c_uint32, c_int64]),
    "kineto_free": (None, [c_void_p]),
    "kineto_places": (None, [c_void_p, POINTER(c_int64)]),
    "kineto_groups": (c_int64, [c_void_p, POINTER(c_void_p)]),
    "kineto_foreign": (c_int64, [c_void_p, POINTER(c_void_p)]),
    "kineto_rows": (c_int64, [c_void_p, c_int]),
    "kineto_columns": (c_int64, [c_void_p, c_int]),
    "kineto_name": (c_char_p, [c_void_p, c_int, c_int]),
    "kineto_export": (c_int, [c_void_p, c_int, c_int, c_void_p, c_void_p]),
    "kineto_is_text": (c_int, [c_void_p, c_int, c_int]),
    "kineto_export_texts": (c_int, [c_void_p, c_int, c_int, c_void_p, c_void_p]),
    "kineto_scan": (c_void_p, [c_char_p, POINTER(c_size_t * 4), c_char_p, c_size_t, c_uint]),
    "kineto_scan_wait": (c_int64, [c_void_p, POINTER(c_size_t)]),
    "kineto_scan_part": (c_void_p, [c_void_p, c_size_t]),
    "kineto_scan_free": (None, [c_void_p]),
    "kineto_launches": (c_void_p, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "sqlite_table": (c_void_p, [c_char_p, c_uint32]),
    "sqlite_pages": (c_size_t, [c_void_p]),
    "sqlite_page_bytes": (c_size_t, [c_void_p]),
    "sqlite_last": (c_int64, [c_void_p, c_size_t]),
    "sqlite_table_free": (None, [c_void_p]),
    "sqlite_block": (c_void_p, [c_void_p, c_size_t, c_size_t]),
    "sqlite_rows": (c_size_t, [c_void_p]),
    "sqlite_read": (c_int, [c_void_p, c_void_p, c_size_t]),
    "sqlite_block_free": (None, [c_void_p]),
}


def find_library() -> ctypes.CDLL | None:
    """The library; None where it wasn't built from these sources, doesn't load, or isn't wanted."""
    return None if os.environ.get(VARIABLE) == "0" else _installed()


def reading_threads(at_once: int = 1) -> int:
    """With how many threads the library reads a file, where so many files are read at once."""
    return max(1, min(asked_processes() or len(own_cores()), _MOST_THREADS) // at_once)


def tell_reader() -> str:
    """What decodes PyTorch's profiles here; where it is Python alone, why."""
    if find_library():
        return f"the library in C++ ({VARIABLE}=0 turns it off)"
    if os.environ.get(VARIABLE) == "0":
        return f"Python alone, since {VARIABLE}=0"
    if LIBRARY.exists():
        return "Python alone, since the library in C++ doesn't load here or is of another version: install again"
    return "Python alone, since the library in C++ wasn't built: install from source where a C++ compiler is"


def load(path: Path) -> ctypes.CDLL | None:
    """A library with these functions; None where it doesn't load."""
    try:
        found = ctypes.CDLL(str(path))
        for name, (returns, takes) in _FUNCTIONS.items():
            function = getattr(found, name)
            function.restype, function.argtypes = returns, takes
    except (OSError, AttributeError):
        return None
    return found


@cache
def _installed() -> ctypes.CDLL | None:
    return load(LIBRARY) if is_current(LIBRARY) else None
