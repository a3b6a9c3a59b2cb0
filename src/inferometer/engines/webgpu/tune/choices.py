"""Who chooses among kernels when a model is loaded: what was measured on the adapter before, or a measurement now."""

from collections.abc import Callable

from inferometer.engines.webgpu.model_spec import Checkpoint
from inferometer.engines.webgpu.plan.kernel_path import KernelPath
from inferometer.engines.webgpu.plan.selection import Tuned
from inferometer.engines.webgpu.run.executor import OnText, Runner
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.engines.webgpu.runners import open_like
from inferometer.errors import InputError

Tuner = Callable[[KernelPath, Checkpoint, Runner, OnText], Tuned | None]
"""Knows which of a path's candidates are the fastest on a runner's device: `known_choices`, `measured_choices`."""


def known_choices(path: KernelPath, checkpoint: Checkpoint, runner: Runner, on_text: OnText) -> Tuned | None:
    """A `Tuner`: what was measured on this adapter before.

    Raises:
        InputError: The file of measurements isn't ours.
    """
    from inferometer.engines.webgpu.tune.tuned_file import tuned_choices

    return tuned_choices(runner.adapter)


def measured_choices(path: KernelPath, checkpoint: Checkpoint, runner: Runner, on_text: OnText) -> Tuned | None:
    """A `Tuner`: measures now, on a second device of the same adapter, and keeps what it finds.

    Raises:
        InputError: The runner is a browser; the file of measurements isn't ours.
        Unavailable: The adapter has no timestamps.
    """
    from inferometer.engines.webgpu.tune.tuner import tune

    if not isinstance(runner, LocalRunner):
        raise InputError("tuning: expected wgpu or NumPy, found a browser", hint="Leave --tune out there.")
    tune(checkpoint, open_like(runner), path=path, on_text=on_text)
    return known_choices(path, checkpoint, runner, on_text)
