"""Which of the user's functions an op runs in: a short walk up the Python stack, to the innermost open module.

A range stands for a function while consecutive ops run in it; it begins with the first and ends with the last. Two
calls in a row from one place (a loop) can't be distinguished when Python gives both the same memory: they are one
range. Frames are named as PyTorch's profiler names them, by the line at which the function begins, without the search
path.
"""

import os
import site
import sys
import time
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

from inferometer.analyses.launched_by.user_frames import UserCode
from inferometer.record.interception.lanes import ThreadRows

_OURS = f"inferometer{os.sep}record{os.sep}"
_UNKNOWN = "?"
_clock = time.perf_counter_ns

names: dict[int, str | None] = {}  # by a code object's address; None for what is not the user's
_kept: list[CodeType] = []  # so that no address is used again


def follow(lane: ThreadRows, frame: FrameType | None) -> None:
    """Open and close the ranges of the user's functions, as the stack below `frame` says.

    Keeps no frame: a frame would keep its tensors.
    """
    boundary, known, top = lane.boundary, names, frame
    chain: tuple[int, ...] = ()
    while frame is not None:
        address = id(frame)
        if address == boundary:
            break
        code = id(frame.f_code)
        name = known.get(code, _UNKNOWN)
        if name is not None and (name is not _UNKNOWN or learn(frame.f_code) is not None):
            chain += (address, code, frame.f_lasti if chain else 0)
        frame = frame.f_back
    else:
        if boundary:
            unwind(lane, top)
            follow(lane, top)
            return
    if chain == lane.chain:
        return
    if len(chain) == 3 and not lane.open:
        lane.open.append((*chain, names[chain[1]] or "", _clock()))
        lane.chain = chain
    else:
        _change(lane, chain)


def unwind(lane: ThreadRows, frame: FrameType | None) -> None:
    """End modules that are no longer on the stack: an interrupt left them without their hooks."""
    addresses = {0}
    while frame is not None:
        addresses.add(id(frame))
        frame = frame.f_back
    while lane.boundary not in addresses:
        lane.leave(lane.last_ns)


def learn(code: CodeType) -> str | None:
    """The name of a function of the user's; None for PyTorch's, the standard library's, ours."""
    name = f"{_without_search_path(code.co_filename)}({code.co_firstlineno}): {code.co_name}"
    is_own = _OURS not in code.co_filename and UserCode().is_own(name)
    _kept.append(code)
    names[id(code)] = name if is_own else None
    return names[id(code)]


def _change(lane: ThreadRows, chain: tuple[int, ...]) -> None:
    """Close what is left, open what is new; those opened together begin one ns apart, outermost first."""
    new = [chain[i : i + 3] for i in range(len(chain) - 3, -1, -3)]
    opened = lane.open
    same = 0
    for (old_frame, old_code, old_at, name, began_ns), (frame, code, at) in zip(opened, new, strict=False):
        if old_frame != frame or old_code != code:
            break
        opened[same] = (frame, code, at, name, began_ns)
        same += 1
        if old_at and at and old_at != at:
            break  # the function that it called from there is over
    lane.close_frames(keep=same)
    start_ns = _clock() - (len(new) - same)
    for i, (frame, code, at) in enumerate(new[same:], start=1):
        opened.append((frame, code, at, names[code] or "", start_ns + i))
    lane.chain = chain


def _without_search_path(file: str) -> str:
    for prefix in _search_path():
        if file.startswith(prefix):
            return file[len(prefix) :]
    return file


@lru_cache(maxsize=1)
def _search_path() -> tuple[str, ...]:
    """Folders that PyTorch's profiler takes off, longest first."""
    folders = (*site.getsitepackages(), site.getuserbase(), site.getusersitepackages(), *sys.path)
    whole = {f"{Path(folder).absolute()}{os.sep}" for folder in folders if folder}
    return tuple(sorted(whole, key=len, reverse=True))
