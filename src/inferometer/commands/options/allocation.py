"""How a command's process shares out memory and threads: it is the process's own, so no imported library does this."""

import os
import sys
from contextlib import suppress
from typing import Final

from inferometer.processes import own_cores

_MOST_ARENAS: Final = 2
_ARENA_MAX: Final = -8  # `M_ARENA_MAX` of glibc's malloc.h
_OF_GLIBC: Final = "MALLOC_ARENA_MAX"  # glibc's own: who sets it knows better
_OF_POLARS: Final = "_RJEM_MALLOC_CONF"  # of jemalloc as polars brings it, read when that is loaded
_OF_OPENBLAS: Final = "OPENBLAS_NUM_THREADS"  # of the library that multiplies for NumPy, read when that is loaded
_FEW_CORES: Final = 4  # up to so many, threads of polars seldom wait for one another's arena


def share_out() -> None:
    """What a command that reads traces does first, before there are threads, polars or NumPy."""
    share_memory()
    multiply_alone()


def share_memory() -> None:
    """Have threads share what is kept for further use.

    glibc and jemalloc give each thread memory of its own, and rules are asked by several: without this, `findings` of
    504 MB takes 120 MiB more. With one arena for few cores, `report` of ten million launches takes 0.2 GB less than
    with two. What was freed is kept for 0.3 s: kept for a second, it takes 0.3 GB more and no less time.
    """
    if not sys.platform.startswith("linux"):
        return
    arenas = 1 if len(own_cores()) <= _FEW_CORES else _MOST_ARENAS
    os.environ.setdefault(_OF_POLARS, f"narenas:{arenas},dirty_decay_ms:300,muzzy_decay_ms:0")
    if _OF_GLIBC in os.environ:
        return
    import ctypes

    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _MOST_ARENAS)


def multiply_alone() -> None:
    """Have products of matrices made by the thread that asks for them.

    Analyses multiply small ones only. A thread a core, which then waits busily for more, takes the time of others from
    its start on: 3 % of `summary` of a small file, 8 % of `compare` of two of 504 MB.
    """
    os.environ.setdefault(_OF_OPENBLAS, "1")
