"""What a program calls: `inferometer.record` starts a recording of this process, `inferometer.step` marks its steps."""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from inferometer.record.parts import OpsBy, Options
from inferometer.record.recorder import Recording, mark_step
from inferometer.record.running import RUNNING


def record(
    path: str | Path = "run.ifm",
    *,
    counters: bool = True,
    ops: bool = True,
    profile: bool | None = None,
    stacks: bool = True,
    hz: float = 10,
    workers: bool = True,
    force: bool = False,
    ops_by: OpsBy | None = None,
    ops_every: int = 1,
) -> Recording:
    """A recording of this process into the store `path`: `with` it, or call its `start` and `stop`.

    Args:
        path: The store to make.
        counters: Sample the device's and the host's metrics.
        ops: Intercept PyTorch's ops, with their shapes, modules and lines.
        profile: Kernels by torch.profiler. None: where there is a GPU; True: on a CPU, too.
        stacks: Python frames of the user's code around ops.
        hz: Samples of the counters a second, 0.1 to 100.
        workers: Also record processes that are started meanwhile. It sets environment variables until the end.
        force: Replace a store at `path`.
        ops_by: What sees ops: a dispatch `mode`, or the `observer` in C++, built once (some 40 s, said on stderr) and
            cheaper. None: `INFEROMETER_OPS_BY`, else the observer, where it can be built.
        ops_every: See ops in one of so many marked steps, from the first on; of the others there are the times alone.

    Raises:
        InputError: Something is at `path`, or `hz` or `ops_every` makes no sense.
    """
    from inferometer.errors import InputError

    if not 0.1 <= hz <= 100:
        raise InputError(f"hz: expected 0.1 to 100 samples per second, found {hz}")
    if ops_every < 1:
        raise InputError(f"ops_every: expected at least 1 step, found {ops_every}")
    options = Options(counters, ops, profile, stacks, hz, workers, ops_by, ops_every)
    return Recording(Path(path), options, force=force)


def step(phase: str | None = None, **facts: Any) -> AbstractContextManager[Any]:
    """Mark a step: of a `with` block, or, as a plain call, from here to the next call.

    Does nothing when nothing is recorded, so it may stay in a program.

    Args:
        phase: `prefill`, `decode` or `mixed`.
        facts: What else is known of it: `batch`, `tokens`, …
    """
    if not RUNNING:
        _begin_if_planned()
    return mark_step(phase, **facts)


def _begin_if_planned() -> None:
    """A program under `inferometer record` that never imports torch begins its part with its first step."""
    from inferometer.record.plan import VARIABLE

    if VARIABLE in os.environ:
        from inferometer.record.workers.child import begin

        begin(ops=False)
