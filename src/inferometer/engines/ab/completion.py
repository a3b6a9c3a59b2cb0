"""One completion: what every pass of an A/B runs, with the same tokens for every arm. B sequences, M new tokens."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from inferometer.engines.ab.marks import Mark, mark_of, read_marks
from inferometer.engines.engine import Engine
from inferometer.engines.generation import Sampler, forced, generate, take_first
from inferometer.engines.paths import aside_ns, scope, will_wait

ROOT = "completion"
PREFILL, DECODE = "prefill", "decode"
_clock = time.perf_counter_ns


@dataclass(frozen=True)
class Completed:
    """`wall_ns`: of each phase, waited for. `tokens`: the sampler's, int64 [B, M] on the host. `logits`: of each pass.

    On a CPU the clock stands still while the logits of a pass are marked. A GPU isn't waited for then: it reads them
    once more in its time, whatever the arm.
    """

    wall_ns: dict[str, int]
    tokens: Any
    logits: Sequence[Mark]


@dataclass(frozen=True)
class Work:
    """What every arm does: `prompt` [B, T], then `tokens` [B, M], whatever it would have chosen; both on the host."""

    engine: Engine
    prompt: Any
    tokens: Any

    def run(self) -> Completed:
        """Once, by the arm in use."""
        return complete(self.engine, self.prompt, self.tokens.shape[1], self.sampler())

    def prefill_ns(self) -> int:
        """How long the prompt alone takes the arm in use."""
        return complete(self.engine, self.prompt, 1, self.sampler()).wall_ns[PREFILL]

    def sampler(self) -> Sampler:
        """Takes the tokens of this work."""
        return forced(self.tokens.to(self.engine.device))


def choose_tokens(engine: Engine, prompt_BT: Any, new_tokens: int) -> Completed:
    """A completion with the most probable tokens by the arm in use."""
    return complete(engine, prompt_BT, new_tokens, take_first)


def complete(engine: Engine, prompt_BT: Any, new_tokens: int, sampler: Sampler) -> Completed:
    """The path `completion`: tokens to the device, `generate`, tokens back. Loading is outside of it.

    The device is waited for after the prefill and after the last decode (the path `wait`, on a GPU), with scopes or
    without, so that both are the same work. The prefill includes making the cache.
    """
    import torch

    with torch.no_grad(), on_device(engine.device), scope(ROOT):
        prompt = prompt_BT.to(engine.device)
        wall_ns: dict[str, int] = {}
        chosen, marks = [], []
        with scope("generate"):
            passes = generate(engine, prompt, new_tokens, sampler)
            for phase, count in ((PREFILL, 1), (DECODE, new_tokens - 1)):
                start_ns = _clock() - aside_ns()
                marking_ns = 0
                for _ in range(count):
                    logits_BV, tokens_B = next(passes)
                    chosen.append(tokens_B)
                    marked_ns = _clock()
                    marks.append(mark_of(logits_BV))
                    marking_ns += _clock() - marked_ns
                wait(engine.device)
                if count:
                    spent_ns = 0 if on_gpu(engine.device) else marking_ns
                    wall_ns[phase] = _clock() - aside_ns() - start_ns - spent_ns
        return Completed(wall_ns, torch.stack(chosen, 1).cpu(), read_marks(marks))


def wait(device: str) -> None:
    """Until a GPU has done all that was asked of it, as a call of the path `wait`; a CPU has already."""
    if on_gpu(device):
        import torch

        with scope("wait"):
            will_wait()
            torch.cuda.synchronize(device)


def on_gpu(device: str) -> bool:
    """Whether work there is queued, and runs later."""
    return device.startswith("cuda")


def on_device(device: str) -> AbstractContextManager[Any]:
    """Events and launches without a device of their own go to this one."""
    if not on_gpu(device):
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
