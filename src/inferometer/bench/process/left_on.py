"""What a candidate left on in its process, by name: modes and hooks under which later work would be its own.

Libraries may leave some: PyTorch has a mode for a default device, and handles signals where it starts workers. What may
be a library's is refused where its code is in none.
"""

import gc
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from inferometer.bench.process.libraries import Libraries

_DEFAULT_DEVICE = "DeviceContext"
_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")


@dataclass(frozen=True)
class LeftOn:
    """Of one process; made before the candidate is loaded."""

    profile: Any
    trace: Any
    libraries: Libraries

    @classmethod
    def of(cls) -> "LeftOn":
        """What is on now."""
        return cls(sys.getprofile(), sys.gettrace(), Libraries())

    def found(self) -> list[str]:
        """All of it."""
        return [*self._modes(), *self._hooks(), *self._signals(), *self._finalisers()]

    def _modes(self) -> Iterator[str]:
        """Of torch: under them every operation is theirs, our copies too."""
        from torch.overrides import _get_current_function_mode_stack as functions
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as dispatch

        for mode in dispatch():
            yield f"a dispatch mode ({type(mode).__name__})"
        for name in (type(mode).__name__ for mode in functions()):
            if name != _DEFAULT_DEVICE:
                yield f"a function mode ({name})"

    def _hooks(self) -> Iterator[str]:
        if sys.getprofile() is not self.profile or getattr(threading, "_profile_hook", None):
            yield "a profile hook (sys.setprofile)"
        if sys.gettrace() is not self.trace or getattr(threading, "_trace_hook", None):
            yield "a trace hook (sys.settrace)"
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None and any(monitoring.get_events(i) for i in range(6) if monitoring.get_tool(i)):
            yield "a tool of sys.monitoring"
        if any(map(self._is_candidates, gc.callbacks)):
            yield "a hook of the garbage collector (gc.callbacks)"

    def _signals(self) -> Iterator[str]:
        for name in _TIMERS:
            if signal.getitimer(getattr(signal, name))[0]:
                yield f"a timer (signal.{name})"
        for number in signal.valid_signals():
            if self._is_candidates(signal.getsignal(number)):
                yield f"a handler of {signal.Signals(number).name}"

    def _finalisers(self) -> Iterator[str]:
        registry = getattr(weakref.finalize, "_registry", {})
        if any(self._is_candidates(info.func) for info in list(registry.values())):
            yield "a finaliser (weakref.finalize)"

    def _is_candidates(self, function: Any) -> bool:
        """Whether it is a Python function whose file is in no library."""
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is None:
            return False
        return not (self.libraries.is_standard(code.co_filename) or self.libraries.is_installed(code.co_filename))
