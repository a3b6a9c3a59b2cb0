"""Record a live run: framework ops with shapes, modules and lines, kernels, counters of device and host, steps.

The package is also the function that starts a recording: `inferometer.record("run.ifm")` and `from
inferometer.record.clock import Clock` both work, whichever comes first, since the module is callable.

Parts of a recording write batches of columns to a `Sink` (`record/sink.py`), with times on one clock (`clock.py`).
The sink is a `Journal`: a store whose `facts.json` is replaced every second, after the Parquet parts that it names
are on disk, so that it can be read whenever, and a kill loses a second. Small parts are merged as they pile up; the
end sorts each table and says `finished`.

`record/interception` sees ops by a dispatch mode of torch, or by an observer in C++ (`interception/observer`) where
that is asked for, and modules by global hooks; it keeps rows in buffers of each thread until they are handed over.
Steps are rows of `steps` and ranges. `profiler/profiler.py` runs torch.profiler in windows whose files the Kineto
reader reads in another process; `profiler/clock_marks.py` ties their times to the recording's by marks,
`profiler/window_tables.py` gives each launch the intercepted op that was open when it was called for.
`record/counters` has one file per source; a thread reads them, holding the GIL for as long as a read takes.

`recorder.py` starts and ends these. `program.py` starts a program with an environment that makes every Python below
record itself (`hook/sitecustomize.py`, `workers/child.py`), samples counters of its processes from outside, and joins
the parts (`workers/parts.py`). `server` asks an engine to profile itself, and joins what it wrote with counters.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferometer.record.recorder import Recording


class _CallableModule(ModuleType):
    """A module that can be called: calling it is `inferometer.record.start.record`."""

    def __call__(self, *args: Any, **options: Any) -> "Recording":
        from inferometer.record.start import record

        return record(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
