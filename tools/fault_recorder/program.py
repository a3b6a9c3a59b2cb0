"""The recorded program: a small decoder, each step one forward pass of 64 tokens, and what its sampler does then."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

WARM_UP_S = 1.0
TOKENS, HEADS, VOCABULARY = 64, 8, 1000
PAGES_BYTES, READ_BYTES, READS = 256 << 20, 64 << 10, 64
REPLY_BYTES = 256 << 10


@dataclass(frozen=True)
class Program:
    """What is run.

    `times`: passes per step. `garbage`: how many objects it holds, and collects in each step; none are collected by
    hand where there are none. `core`: the only one it may run on. `log`: a line per step, synced, as durable logs are.
    `reads`: parts of a file that the page cache holds. `asks`: a service on loopback answers each step.
    """

    hidden: int = 512
    layers: int = 4
    attention: Literal["fused", "eager"] = "fused"
    dtype: str = "float32"
    times: int = 1
    threads: int = 1
    sleep_s: float = 0.0
    garbage: int = 0
    core: int | None = None
    log: bool = False
    reads: bool = False
    asks: bool = False


def run_program(program: Program, seconds: float, place: Path) -> None:
    """Steps for so long, after a warm-up. `place`: a folder for its files; its process's number is written there."""
    import torch

    import inferometer

    if program.core is not None:
        os.sched_setaffinity(0, {program.core})
    torch.set_num_threads(program.threads)
    torch.manual_seed(0)
    step = make_decoder(program)
    held = [[number] for number in range(program.garbage)]
    (place / "id").write_text(str(os.getpid()))
    with torch.inference_mode(), contextlib.ExitStack() as stack:
        pauses = _pauses(program, place, stack)
        end = time.perf_counter() + WARM_UP_S
        while time.perf_counter() < end:
            step()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            with inferometer.step(phase="decode", batch=1):
                for _ in range(program.times):
                    sample(step(), program, held)
                for pause in pauses:
                    pause()


def sample(logits: Any, program: Program, held: list[list[int]]) -> int:
    """The next token; what a sampler may do besides."""
    if program.sleep_s:
        time.sleep(program.sleep_s)
    if held:
        gc.collect()
    return int(logits.argmax())


def make_decoder(program: Program) -> Callable[[], Any]:
    """The model with random weights: a function that gives the last token's logits, shape (VOCABULARY,)."""
    import torch
    from torch.nn import functional as f

    dtype, hidden = getattr(torch, program.dtype), program.hidden
    sizes = {"qkv": (3, 1), "out": (1, 1), "gate": (4, 1), "up": (4, 1), "down": (1, 4)}
    layers = [
        {name: torch.randn(a * hidden, b * hidden, dtype=dtype) / hidden for name, (a, b) in sizes.items()}
        for _ in range(program.layers)
    ]
    scale, head = torch.ones(hidden, dtype=dtype), torch.randn(VOCABULARY, hidden, dtype=dtype)
    x = torch.randn(1, TOKENS, hidden, dtype=dtype)
    attend = f.scaled_dot_product_attention if program.attention == "fused" else attend_eagerly

    def decode() -> Any:
        y = x
        for layer in layers:
            qkv = f.linear(f.rms_norm(y, (hidden,), scale), layer["qkv"])
            q, k, v = qkv.view(1, TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mixed = attend(q, k, v).transpose(1, 2).reshape(1, TOKENS, hidden)
            y = y + f.linear(mixed, layer["out"])
            z = f.rms_norm(y, (hidden,), scale)
            y = y + f.linear(f.silu(f.linear(z, layer["gate"])) * f.linear(z, layer["up"]), layer["down"])
        return f.linear(f.rms_norm(y[0, -1], (hidden,), scale), head)

    return decode


def attend_eagerly(q: Any, k: Any, v: Any) -> Any:
    """Attention in three steps, which PyTorch also has as one function."""
    import torch

    scores = torch.matmul(q, k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def _pauses(program: Program, place: Path, stack: contextlib.ExitStack) -> list[Callable[[], object]]:
    """What the program waits for in each step, besides its own work."""
    found: list[Callable[[], object]] = []
    if program.log:
        file = stack.enter_context((place / "log").open("ab", buffering=0))
        found.append(lambda: (file.write(b"a token\n"), os.fsync(file.fileno())))
    if program.reads:
        pages = stack.enter_context((place / "pages").open("rb", buffering=0))
        draw = random.Random(0)
        found.append(lambda: [_read(pages.fileno(), draw) for _ in range(READS)])
    if program.asks:
        asked = stack.enter_context(socket.create_connection(("127.0.0.1", int((place / "port").read_text()))))
        found.append(lambda: _ask(asked))
    return found


def _read(file: int, draw: random.Random) -> bytes:
    return os.pread(file, READ_BYTES, draw.randrange(PAGES_BYTES // READ_BYTES) * READ_BYTES)


def _ask(service: socket.socket) -> None:
    service.sendall(b"?")
    left = REPLY_BYTES
    while left:
        left -= len(service.recv(left))
