"""One completion: what every pass of an A/B runs, with the same tokens for every arm. B sequences, M new tokens."""

import gc
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from inferometer.engines.engine import Engine
from inferometer.engines.generation import Sampler, forced, generate, take_first
from inferometer.engines.paths import scope

ROOT = "completion"
PREFILL, DECODE = "prefill", "decode"
_clock = time.perf_counter_ns


@dataclass(frozen=True)
class Completed:
    """`wall_ns`: of each phase, waited for. `tokens`: the sampler's, int64 [B, M] on the host."""

    wall_ns: dict[str, int]
    tokens: Any


@dataclass(frozen=True)
class Work:
    """What every arm does: `prompt` [B, T], then `tokens` [B, M], whatever it would have chosen; both on the host."""

    engine: Engine
    prompt: Any
    tokens: Any

    def run(self) -> Completed:
        """Once, by the arm in use."""
        return complete(self.engine, self.prompt, self.tokens.shape[1], self.sampler())

    def sampler(self) -> Sampler:
        """Takes the tokens of this work."""
        return forced(self.tokens.to(self.engine.device))


def choose_tokens(engine: Engine, prompt_BT: Any, new_tokens: int) -> Any:
    """The most probable tokens by the arm in use, int64 [B, M] on the host."""
    return complete(engine, prompt_BT, new_tokens, take_first).tokens


def complete(engine: Engine, prompt_BT: Any, new_tokens: int, sampler: Sampler) -> Completed:
    """The path `completion`: tokens to the device, `generate`, tokens back. Loading is outside of it.

    The device is waited for after the prefill and after the last decode (the path `wait`, on a GPU), with scopes or
    without, so that both are the same work. The prefill includes making the cache.
    """
    import torch

    with torch.no_grad(), on_device(engine.device), scope(ROOT):
        prompt = prompt_BT.to(engine.device)
        wall_ns: dict[str, int] = {}
        chosen = []
        with scope("generate"):
            passes = generate(engine, prompt, new_tokens, sampler)
            for phase, count in ((PREFILL, 1), (DECODE, new_tokens - 1)):
                start_ns = _clock()
                chosen += [next(passes)[1] for _ in range(count)]
                wait(engine.device)
                if count:
                    wall_ns[phase] = _clock() - start_ns
        return Completed(wall_ns, torch.stack(chosen, 1).cpu())


def wait(device: str) -> None:
    """Until a GPU has done all that was asked of it, as a call of the path `wait`; a CPU has already."""
    if device.startswith("cuda"):
        import torch

        with scope("wait"):
            torch.cuda.synchronize(device)


def on_device(device: str) -> AbstractContextManager[Any]:
    """Events and launches without a device of their own go to this one."""
    if not device.startswith("cuda"):
        return nullcontext()
    import torch

    return torch.cuda.device(device)  # type: ignore[no-any-return]


@contextmanager
def collector_set_aside() -> Iterator[None]:
    """What lives now isn't looked at by the garbage collector, so that a collection between runs is quick."""
    freezes = gc.get_freeze_count() == 0  # else the program does so itself, and unfreezing would undo that
    gc.collect()
    if freezes:
        gc.freeze()
    try:
        yield
    finally:
        if freezes:
            gc.unfreeze()


@contextmanager
def without_collector() -> Iterator[None]:
    """Garbage is collected before the block and not in it."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
