"""The parts that a recording is made of, and how each is made: nothing heavy is imported before it is wanted.

`OPS` and `PROFILE` exist once in a process, whatever records (see `sharing`).
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inferometer.record.clock import Clock
from inferometer.record.sharing import Recorder, Shared

if TYPE_CHECKING:
    from inferometer.record.sharing import Journalled
    from inferometer.record.sink import Sink

OLDEST_TORCH = (2, 6)  # what the extra `torch` asks for, and what the interception is tested with
OPS, PROFILE = Shared(), Shared()
OPS_BY = "INFEROMETER_OPS_BY"  # the environment's variable for `Options.ops_by`
OpsBy = Literal["observer", "mode"]


@dataclass(frozen=True)
class Options:
    """What to record. `profile`: None for where there is a GPU. `workers`: also of processes started meanwhile.

    `ops_by`: the observer in C++, or a dispatch mode of PyTorch's; None: what the environment says, else the observer
    where it can be built, which is said in the notes where it can't. `ops_every`: see ops in one of so many marked
    steps.
    """

    counters: bool = True
    ops: bool = True
    profile: bool | None = None
    stacks: bool = True
    hz: float = 10
    workers: bool = True
    ops_by: OpsBy | None = None
    ops_every: int = 1


def make_journal(
    path: Path, clock: Clock, *, force: bool, on_trouble: Callable[[str], object] | None = None
) -> "Journalled":
    """`on_trouble`: called once when rows can't be written; None: a warning."""
    from inferometer.record.journal.journal import Journal

    return Journal(path, clock=clock, force=force, on_trouble=on_trouble)


def make_counters(sink: "Sink", options: Options, processes: tuple[int, ...] | None = None) -> Recorder:
    """Of these processes and those below them; None: of this one."""
    from inferometer.record.counters.sampler import CounterSampler

    return CounterSampler(sink, hz=options.hz, processes=processes)


def _make_ops(sink: "Sink", options: Options) -> Recorder:
    from inferometer.record.interception import Interception
    from inferometer.record.interception.handover import with_note

    asked = options.ops_by or os.environ.get(OPS_BY)
    profiles = options.profile is not False and has_gpu(sys.modules["torch"])
    make = partial(Interception, sink, stacks=options.stacks, every=options.ops_every, has_kernels=profiles)
    if asked == "mode":
        return make()
    from inferometer.record.interception.observer.build import find_observer

    found = find_observer()
    made = make(observer=found.module)
    if found.why is not None:
        why = f"Ops are seen by a dispatch mode, at a higher cost: the observer can't be built: {found.why}"
        if asked is not None:
            made.remark = why
        else:
            sink.change_facts(with_note(why))
    return made


def _make_profile(sink: "Sink", options: Options) -> Recorder:
    from inferometer.record.interception.launch_ties import OpsSeen
    from inferometer.record.profiler.profiler import Profiling

    if OPS.recorder is None:
        return Profiling(sink, stacks=options.stacks)
    seen = OpsSeen(sink.clock, getattr(OPS.recorder, "flush", None))
    OPS.watch((seen,))
    return Profiling(sink, intercepted=True, open_ops=seen.open_ops)


@dataclass(frozen=True)
class Makers:
    """How the parts of a recording are made; the tests put others in."""

    journal: "Callable[..., Journalled]" = make_journal
    counters: "Callable[[Sink, Options], Recorder]" = make_counters
    ops: "Callable[[Sink, Options], Recorder]" = _make_ops
    profile: "Callable[[Sink, Options], Recorder]" = _make_profile
    times_ops: bool = True


def why_no_ops(torch: Any) -> str | None:
    """Why this PyTorch's ops can't be intercepted; None when they can."""
    version = str(getattr(torch, "__version__", "0"))
    found = tuple(int(part) for part in version.split("+", maxsplit=1)[0].split(".")[:2] if part.isdecimal())
    oldest = ".".join(map(str, OLDEST_TORCH))
    return None if found >= OLDEST_TORCH else f"torch {version} is older than {oldest}"


def has_gpu(torch: Any) -> bool:
    """Whether torch was built for GPUs and there is a driver's device file; nothing is started by looking."""
    has_build = bool(torch.version.cuda or getattr(torch.version, "hip", None))
    return has_build and any(Path(place).exists() for place in ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg"))
