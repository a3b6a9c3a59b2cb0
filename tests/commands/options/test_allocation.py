"""Threads of a command that reads a trace share what the C library keeps, and NumPy starts none of its own."""

import os
import platform
import subprocess
import sys

import pytest

from inferometer.processes import own_cores

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


@pytest.mark.skipif(sys.platform != "linux", reason="memory is shared out by jemalloc there")
def test_polars_shares_its_memory_too_unless_the_user_says_how() -> None:
    assert "narenas" not in told()
    for cores, count in ((1, 1), (4, 1), (5, 2), (64, 2)):
        assert f"narenas:{count}," in told(str(cores))
        assert "narenas:3" in told(str(cores), _RJEM_MALLOC_CONF="narenas:3")


def told(*arguments: str, **variables: str) -> str:
    """What the allocator of polars says of how it was set up, once polars is there, which sets the variable itself."""
    program = """
import os, sys
from inferometer.commands.options import allocation

if sys.argv[1:]:
    allocation.own_cores = lambda: frozenset(range(int(sys.argv[1])))
    allocation.share_memory()
name = "_RJEM_MALLOC_CONF"
os.environ[name] = ",".join(["confirm_conf:true", *filter(None, [os.environ.get(name)])])
import polars
polars.Series(range(1000))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={name: value for name, value in os.environ.items() if name != "_RJEM_MALLOC_CONF"} | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "confirm_conf:true" in done.stderr
    return done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="counts a process's threads there")
@pytest.mark.skipif(len(own_cores()) < 2, reason="NumPy starts a thread a core")
def test_numpy_starts_no_threads_unless_the_user_says_how_many() -> None:
    program = """
import os, sys
if sys.argv[1:]:
    from inferometer.commands.options.allocation import share_out
    share_out()
import numpy
print(len(os.listdir("/proc/self/task")))
"""

    def threads(*arguments: str, **variables: str) -> int:
        environment = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name}
        command = [sys.executable, "-c", program, *arguments]
        return int(subprocess.run(command, env=environment | variables, check=True, capture_output=True).stdout)

    assert threads() > 1
    assert threads("share") == 1
    assert threads("share", OPENBLAS_NUM_THREADS="2") == 2
