"""Threads of a command that reads a trace share what the C library keeps."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, re, sys, threading
from inferometer.commands.options.allocation import share_memory

if sys.argv[1:]:
    share_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)

def take():
    together.wait()
    held = [libc.malloc(1000) for _ in range(1000)]
    together.wait()

threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.malloc_stats()
"""


def arenas(*arguments: str, **variables: str) -> int:
    """Stretches of memory that eight threads take theirs from."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stderr.count("Arena ")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc, which tells its arenas")
def test_threads_share_two_unless_the_user_says_how_many() -> None:
    assert arenas() > 2
    assert arenas("share") == 2
    assert arenas("share", MALLOC_ARENA_MAX="3") == 3
