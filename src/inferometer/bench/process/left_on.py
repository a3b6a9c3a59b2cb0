"""What a candidate left on in its process, by name: modes and hooks under which later work would be its own.

Python's own library and installed ones may leave some: PyTorch has a mode for a default device, and handles signals
where it starts workers. What may be either's is refused where its
code is in no library.
"""

import gc
import signal
import sys
import sysconfig
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DEFAULT_DEVICE = "DeviceContext"
_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")


@dataclass(frozen=True)
class LeftOn:
    """Of one process; made before the candidate is loaded."""

    profile: Any
    trace: Any

    @classmethod
    def of(cls) -> "LeftOn":
        """With what stands there now."""
        return cls(sys.getprofile(), sys.gettrace())

    def found(self) -> list[str]:
        """All of it, in words."""
        return [*self._modes(), *self._hooks(), *_timers(), *_finalisers()]

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
        if any(map(_is_nobodys, gc.callbacks)):
            yield "a hook of the garbage collector (gc.callbacks)"


def _timers() -> Iterator[str]:
    for name in _TIMERS:
        if signal.getitimer(getattr(signal, name))[0]:
            yield f"a timer (signal.{name})"
    for number in signal.valid_signals():
        if _is_nobodys(signal.getsignal(number)):
            yield f"a handler of {signal.Signals(number).name}"


def _finalisers() -> Iterator[str]:
    registry = getattr(weakref.finalize, "_registry", {})
    if any(_is_nobodys(info.func) for info in list(registry.values())):
        yield "a finaliser (weakref.finalize)"


def _is_nobodys(function: Any) -> bool:
    """Whether it is a Python function whose file is in no library: the candidate's."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return False
    paths = sysconfig.get_paths()
    return not code.co_filename.startswith((paths["stdlib"], paths["platstdlib"], paths["purelib"], "<frozen "))
