"""The faults: what is done, to the program or next to it, and what `compare` should say of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PERIOD_US, QUOTA_US = 100_000, 40_000
STOPPED_S = 0.010
LOOPS_A_CORE = 2
WRITTEN_MIB = 64
COPIED_MIB = 128
EVICTED_EACH_S = 0.02

SPIN = "while True: pass"
WRITE = f"""
import os, sys
block = os.urandom(1 << 20)
while True:
    with open(sys.argv[1], "wb", buffering=0) as file:
        for _ in range({WRITTEN_MIB}):
            file.write(block)
        os.fsync(file.fileno())
"""
COPY = f"""
import numpy as np
source = np.ones({COPIED_MIB} << 17)
target = np.empty_like(source)
while True:
    np.copyto(target, source)
"""
EVICT = f"""
import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    time.sleep({EVICTED_EACH_S})
"""
FLOOD = """
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
block = bytes(1 << 20)
if os.fork():
    while True:
        sender.sendall(block)
while receiver.recv(1 << 20):
    pass
"""


@dataclass(frozen=True)
class Fault:
    """`done`: in words. `program`: fields of `Program` in both runs. `change`: of the second run alone.

    `parallel`: Python code that runs during the second run, in `copies`; on the program's core where it has one.
    `verdicts`: of which any is right; "cause named" with one of `causes`, classes of `compare`'s metric roles. The
    verdict's sentence must match `names`. Where the fault may do nothing, "no difference" is among the verdicts; where
    processor time is taken from a busy machine, cpu_contention among the causes.
    """

    done: str
    verdicts: tuple[str, ...]
    causes: tuple[str, ...] = ()
    names: str = ""
    program: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] = field(default_factory=dict)
    parallel: str = ""
    copies: Literal["one", "other cores", "each core"] = "one"
    nice: int = 0


CAUSE, SOFTWARE, HOST, SAME, UNKNOWN = (
    "cause named", "software change", "host time", "no difference", "cause not measured"
)  # fmt: skip
_LOOPS = f"{LOOPS_A_CORE} Python loops for each core ran in parallel with the program"

FAULTS = {
    "core_hog": Fault(
        "the program may run on one core only, and a Python loop ran on the same one",
        (CAUSE,), ("cpu_contention",), program={"core": 0}, parallel=SPIN,
    ),
    "cpu_contention": Fault(_LOOPS, (CAUSE,), ("cpu_contention",), parallel=SPIN, copies="each core"),
    "cpu_quota": Fault(
        f"the control group of the program and its recorder had a quota of {QUOTA_US // 1000} ms of processor time in "
        f"every {PERIOD_US // 1000} ms",
        (CAUSE,), ("cpu_quota",),
    ),
    "cpu_stop": Fault(
        f"the program was stopped by SIGSTOP for {STOPPED_S * 1e3:.0f} ms and then ran as long, again and again",
        (CAUSE,), ("cpu_quota",),
    ),
    "disk": Fault(
        f"another program wrote files of {WRITTEN_MIB} MiB to the same disk, one after the other, each with fsync; the "
        "program appends a line to a log in each step and waits for the disk",
        (CAUSE,), ("disk",), program={"log": True}, parallel=WRITE,
    ),
    "memory_hog": Fault(
        f"a program for each core but one copied {COPIED_MIB} MiB of memory, again and again",
        (UNKNOWN, SAME, CAUSE), ("cpu_contention",), parallel=COPY, copies="other cores",
    ),
    "nice_load": Fault(
        f"{_LOOPS}, at the lowest priority", (SAME, UNKNOWN, CAUSE), ("cpu_contention",), parallel=SPIN,
        copies="each core", nice=19,
    ),
    "sleep": Fault("the sampler slept for 8 ms in each step", (HOST,), names="sample", change={"sleep_s": 0.008}),
    "garbage": Fault(
        "the program held 300,000 objects and collected garbage in each step",
        (HOST,), names="sample", change={"garbage": 300_000},
    ),
    "eager": Fault(
        "attention in three steps in place of one function", (SOFTWARE,), names="softmax",
        change={"attention": "eager"},
    ),
    "bfloat16": Fault("weights in bfloat16", (SOFTWARE,), names="bfloat16", change={"dtype": "bfloat16"}),
    "more_layers": Fault("six layers in place of four", (SOFTWARE,), names="layers", change={"layers": 6}),
    "wider": Fault("layers 768 wide in place of 512", (SOFTWARE,), names="sizes", change={"hidden": 768}),
    "fewer_threads": Fault(
        "PyTorch ran on one thread in place of two", (SOFTWARE,), names="thread", program={"threads": 2},
        change={"threads": 1},
    ),
    "page_cache": Fault(
        f"the program reads 4 MiB of a file in each step, which another program threw out of the page cache every "
        f"{EVICTED_EACH_S * 1e3:.0f} ms",
        (CAUSE, HOST), ("disk",), program={"reads": True}, parallel=EVICT,
    ),
    "network": Fault(
        "the program asks a service on loopback in each step, over which two other processes sent all they could",
        (CAUSE, HOST, UNKNOWN), ("network", "cpu_contention"), program={"asks": True}, parallel=FLOOD,
    ),
    "second_recorder": Fault(
        "another recorder recorded another such program", (CAUSE, SAME, UNKNOWN), ("cpu_contention",)
    ),
    "twice": Fault("each step's work was done twice", (SOFTWARE,), names=r"2\.00 times", change={"times": 2}),
    "none": Fault("nothing: both runs are normal", (SAME,)),
}  # fmt: skip
