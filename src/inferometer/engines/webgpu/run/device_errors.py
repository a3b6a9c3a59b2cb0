"""What wgpu says when something goes wrong, as errors of ours.

Most of it wgpu raises in the call that caused it. What it learns outside of a call (a lost device, errors found while
polling) goes to its logger only; it is gathered there and raised at the end of the block in which it came.

A call on a lost device fails in a way that can be caught, except for two, which end the process inside the library: a
submit, and reading mapped memory. So a command buffer is finished before either: that fails first. What no one can
catch from Python is a device that the driver gives up during these calls.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from inferometer.engines.webgpu.run.adapters import import_wgpu
from inferometer.engines.webgpu.run.executor import DeviceLost
from inferometer.errors import InferometerError, Unavailable


class DeviceErrors:
    """Those of one device. Several may be open; each tells by the device itself whether it is the one that is lost."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._wgpu = import_wgpu()
        self._logged = _Gathered()
        logging.getLogger("wgpu").addHandler(self._logged)

    @contextmanager
    def raising(self, what: str) -> Iterator[None]:
        """Raise what wgpu raises or logs in this block, as an error that begins with `what`.

        Raises:
            DeviceLost: The device is gone.
            Unavailable: It has too little memory.
            InferometerError: wgpu refused what we asked for.
        """
        first = len(self._logged.messages)
        try:
            yield
        except (self._wgpu.GPUError, RuntimeError) as error:
            self._raise(what, str(error), error)
        except AttributeError as error:  # a destroyed device has no polling thread any more, which wgpu trips over
            if not self.is_lost():
                raise
            self._raise(what, "it was destroyed meanwhile", error)
        reason = self._logged.messages[first:]
        del self._logged.messages[first:]
        # The log doesn't name the device: a loss may be another one's.
        if reason and (self.is_lost() or not all("lost" in message.lower() for message in reason)):
            self._raise(what, "; ".join(reason), None)

    def _raise(self, what: str, reason: str, error: BaseException | None) -> NoReturn:
        reason = " ".join(reason.split())
        if self.is_lost():
            raise DeviceLost(
                f"{what}: the device is lost: {reason}", hint="Results so far are valid. Restart with a new device."
            ) from error
        if isinstance(error, self._wgpu.GPUOutOfMemoryError):
            raise Unavailable(
                f"{what}: out of memory: {reason}", hint="Take a smaller model, or less context."
            ) from error
        raise InferometerError(f"{what}: {reason}") from error

    def is_lost(self) -> bool:
        """Asked by a command buffer without commands: finishing it fails on a lost device only."""
        try:
            self._device.create_command_encoder().finish()
        except self._wgpu.GPUError:
            return True
        return False

    def check_there(self) -> None:
        """Raise, in a block of `raising`, where the device is lost. About 20 µs."""
        if self.is_lost():
            raise RuntimeError("it went away while it worked")

    def close(self) -> None:
        """Let the device go, and gather no more."""
        logging.getLogger("wgpu").removeHandler(self._logged)
        self._device = None


class _Gathered(logging.Handler):
    """What is logged as errors. Also keeps it from stderr where nobody configured logging."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
