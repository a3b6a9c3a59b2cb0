"""Record a live run: framework ops with shapes, modules and lines, kernels, counters of device and host, steps.

The package is also the function that starts a recording: `inferometer.record("run.ifm")` and `from
inferometer.record.clock import Clock` both work, whichever comes first, since the module is callable.
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
