"""Kineto by PyTorch's own doors: one profile after another, of all threads of the process.

`torch.profiler` records the threads that descend from the one that starts it. `profile_all_threads` (PyTorch 2.7 and
later) records all, so a thread of ours can own the profile: it must begin and end there. Ending one profile and
beginning the next is one call for Python: no other thread gets the interpreter's lock in between, unless PyTorch itself
gives it up.

Times of device work are made when a profile is written, by what PyTorch measured when it ended: once the next one has
begun, they all are 0 (seen with PyTorch 2.11 and CUDA 13). A profile of a device must be written before that.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from inferometer.errors import Unavailable

if TYPE_CHECKING:
    from torch._C._profiler import ProfilerActivity


class Result(Protocol):
    """What a profile recorded."""

    def save(self, path: str) -> None:
        """Write it as Kineto's JSON."""


class Session:
    """Profiles by PyTorch, on one thread of ours.

    Args:
        stacks: Record Python frames, too: costly.
        activities: Of `torch.profiler.ProfilerActivity`. None: the processor, and each device that is there.
        devices_only: With `activities` None, leave out the processor where there is a device: its ops are what costs.

    Raises:
        Unavailable: There is no torch or no Kineto in it, or it can't record all threads.
    """

    def __init__(
        self,
        *,
        stacks: bool = False,
        activities: "Iterable[ProfilerActivity] | None" = None,
        devices_only: bool = False,
    ) -> None:
        try:
            import torch
        except ImportError as error:
            raise Unavailable("torch isn't installed", hint="Install it: pip install torch") from error
        self._torch: Any = torch
        self._doors: Any = torch._C._autograd
        if not self._doors.kineto_available():
            raise Unavailable("this torch was built without Kineto, its profiler", hint="Install a released torch.")
        self._activities = set(_activities(torch) if activities is None else activities)
        self._options = _options(stacks=stacks)
        self._stacks = stacks
        self._stream: Any = None
        devices = {each for each in self._activities if each.name != "CPU"}
        self.has_device = bool(devices)
        if devices and devices_only and activities is None:
            self._activities = devices

    def is_taken(self) -> bool:
        """Whether the program itself profiles now: two profiles at once crash PyTorch."""
        return bool(self._torch.autograd.profiler._is_profiler_enabled or self._doors._profiler_enabled())

    def begin(self) -> None:
        """Begin the first profile."""
        _together(self._begin_calls())

    def turn(self) -> Result:
        """End the profile and begin the next; returns what the ended one recorded."""
        result: Result = _together([self._doors._disable_profiler, *self._begin_calls()])[0]
        return result

    def end(self) -> Result:
        """End the last profile."""
        result: Result = self._doors._disable_profiler()
        return result

    def settle(self) -> None:
        """Wait until all devices in use have done what was queued: the profile that ends shall hold it."""
        for device in self._devices_in_use():
            self._torch.cuda.synchronize(device)

    def mark(self, name: str, now: Callable[[], int]) -> tuple[int, int, int, int]:
        """Have a range recorded; our clock before and after its begin, and before and after its end.

        Within it, where a device is in use, a harmless call of the driver is recorded: without the processor's ops
        there is no range, and the call shows the device's clock.
        """
        range_ = self._torch.autograd.profiler.record_function(name)
        stream = self._find_stream()
        unseen = self._torch._C._DisableTorchDispatch()  # ranges are ops: an interception would see them
        before = now()
        range_.__enter__()
        entered = now()
        if stream is not None:
            stream.query()
        leaving = now()
        range_.__exit__(None, None, None)
        after = now()
        del unseen
        return before, entered, leaving, after

    def _devices_in_use(self) -> list[int]:
        """Those that have a context already: to ask others would make one."""
        cuda = self._torch.cuda
        if not self.has_device or not cuda.is_initialized():
            return []
        return [each for each in range(cuda.device_count()) if self._torch._C._cuda_hasPrimaryContext(each)]

    def _find_stream(self) -> Any:
        """A stream to ask whether it is done; None while no device is in use."""
        if self._stream is None:
            in_use = self._devices_in_use()
            self._stream = self._torch.cuda.Stream(in_use[0]) if in_use else None
        return self._stream

    def _begin_calls(self) -> "list[Callable[[], object]]":
        kind = self._torch._C._profiler
        config = kind.ProfilerConfig(
            kind.ProfilerState.KINETO, False, False, self._stacks, False, False, self._options, f"{uuid4().int:032X}"
        )
        return [
            partial(self._doors._prepare_profiler, config, self._activities),
            partial(self._doors._enable_profiler, config, self._activities),
        ]


def _together(calls: "list[Callable[[], object]]") -> list[Any]:
    """Call them in C, one after the other: between lines of Python another thread could take its turn."""
    return list(map(partial.__call__, map(partial, calls)))


def _activities(torch: Any) -> "list[ProfilerActivity]":
    """What this torch and this machine can record. Without a GPU in reach, CUDA's would only warn."""
    can: set[ProfilerActivity] = torch._C._autograd._supported_activities()
    there = {"CPU": True, "CUDA": torch.cuda.is_available(), "XPU": hasattr(torch, "xpu") and torch.xpu.is_available()}
    return [each for each in can if there.get(each.name, False)]


def _options(*, stacks: bool) -> Any:
    """`trace_only` (PyTorch 2.12) makes no Python-side copy of the events; stacks need it."""
    from torch._C._profiler import _ExperimentalConfig

    if not stacks:
        try:
            return _ExperimentalConfig(profile_all_threads=True, trace_only=True)
        except TypeError:
            pass
    try:
        return _ExperimentalConfig(profile_all_threads=True)
    except TypeError as error:
        raise Unavailable(
            "this torch's profiler records only the thread that starts it", hint="Install torch 2.7 or later."
        ) from error


def save(result: Result, path: Path) -> None:
    """Write what a profile recorded. PyTorch keeps Python's lock meanwhile: about 1.3 us an event."""
    result.save(str(path))
