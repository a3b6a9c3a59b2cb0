"""With a dispatch mode: hooks around each call of a module, on any thread: its range, and where its functions begin.

A thread that ran already when the interception began gets a mode for the time of each outermost module call. Hooks do
nothing while torch.compile traces them.
"""

import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

from inferometer.record.interception.dynamo import leave_alone
from inferometer.record.interception.module_paths import ModulePaths
from inferometer.record.interception.stacks import follow

if TYPE_CHECKING:
    from inferometer.record.interception.recording import Recording


_WARNING = "Using `torch.compile\\(module\\)` when there are global hooks"  # they fire once more, which is wanted


class ModuleHooks:
    """The two global hooks of one interception; `remove` takes them away."""

    def __init__(self, before: Any, after: Any) -> None:
        self._before = before
        self._after = after
        self._handles: list[Any] = []
        self._filter: Any = None

    def install(self) -> None:
        """Register them with PyTorch."""
        from torch.nn.modules import module

        leave_alone((self._before, self._after, ModulePaths))
        warnings.filterwarnings("ignore", message=_WARNING)
        self._filter = warnings.filters[0]
        self._handles = [
            module.register_module_forward_pre_hook(self._before),
            module.register_module_forward_hook(self._after, always_call=True),
        ]

    def remove(self) -> None:
        """Take them away; more than once is fine."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._filter in warnings.filters:
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]
        self._filter = None


def hooks_of_mode(recording: "Recording") -> tuple[Any, Any]:
    """Hooks that keep what they see on the lanes of a recording."""
    from torch.compiler import is_compiling

    text_of, clock, getframe = ModulePaths().text, time.perf_counter_ns, sys._getframe
    lane_here, with_stacks, mode = recording.lane, recording.stacks, recording.mode

    def before(module: Any, args: Any) -> None:
        if is_compiling() or not recording.is_seeing:
            return
        lane = lane_here()
        frame = getframe(1)
        if with_stacks:
            follow(lane, frame.f_back)
        levels = lane.levels
        text = text_of(module, levels[0][0] if levels else module)
        has_mode = not levels and not lane.is_under_mode and mode.push_unless_there()
        start_ns = clock()
        levels.append((module, text, start_ns, lane.chain, lane.open, lane.boundary, has_mode))
        lane.chain, lane.open, lane.boundary = (), [], id(frame) if with_stacks else 0

    def after(module: Any, args: Any, output: Any) -> None:
        if is_compiling():
            return
        end_ns = clock()
        lane = lane_here()
        levels = lane.levels
        if not levels or (levels[-1][0] is not module and not any(level[0] is module for level in levels)):
            return  # its call began before the recording
        is_left = False
        while not is_left:
            level = lane.leave(end_ns)
            is_left = level[0] is module
            if level[-1]:
                mode.pop()
        if not levels and end_ns > lane.split_ns:
            recording.at_rest(lane, end_ns)

    return before, after
