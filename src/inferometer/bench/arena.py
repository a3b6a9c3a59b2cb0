"""Memory that we share with a candidate's process: inputs that we write there, outputs that it copies there.

We never map it: what the other side does to the file, as cutting it short, ends in an error of `pread` here, not in a
signal. `process/views.py` is the other end.
"""

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inferometer.bench.failures import CandidateFailed

if TYPE_CHECKING:
    from torch import Tensor

ALIGNED = 256
"""Where tensors begin: as torch's own allocators align them."""

MOST_SPREAD = 64
"""Times its bytes that an output may lie apart: what claims more is taken as dense."""

HALVES = 2
"""Calls take turns with so many places for their inputs: none gets the memory of the call before it."""

Layout = list[tuple[str, str, list[int], list[int], int]]
"""Of each tensor its name, dtype, shape, strides, and where it begins."""


@dataclass(frozen=True)
class Image:
    """Tensors as they lie in memory, to be written in one go."""

    layout: Layout
    data: Any  # uint8 of numpy

    @property
    def size(self) -> int:
        """Bytes, aligned."""
        return int(self.data.nbytes)


class Arena:
    """A file without a name, whose descriptor the other process gets."""

    def __init__(self, name: str) -> None:
        self.size = 0
        self.fd = _create(name)

    def hold(self, size: int) -> bool:
        """Make it this large at least; whether it grew, so that the other side must map it anew."""
        if size <= self.size:
            return False
        os.ftruncate(self.fd, size)
        self.size = size
        return True

    def write(self, image: Image, at: int) -> None:
        """All of an image, from a place on."""
        data = memoryview(image.data)
        while data:
            written = os.pwrite(self.fd, data, at)
            data, at = data[written:], at + written

    def read(self, size: int, at: int) -> bytearray:
        """Bytes from a place on; fewer where the file ends."""
        found = bytearray(size)
        done = os.preadv(self.fd, [found], at)
        while 0 < done < size:
            more = os.preadv(self.fd, [memoryview(found)[done:]], at + done)
            if not more:
                break
            done += more
        return found if done >= size else found[:done]

    def close(self) -> None:
        """Once."""
        os.close(self.fd)


def image_of(tensors: "Mapping[str, Tensor]") -> Image:
    """Tensors of the CPU with the strides that `clone` gives them."""
    import numpy as np
    import torch

    layout: Layout = []
    parts: list[tuple[int, Any]] = []
    at = 0
    for name, tensor in tensors.items():
        dense = tensor.detach().clone()
        data = torch.empty(0, dtype=torch.uint8).set_(dense.untyped_storage()).numpy()
        layout.append((name, str(dense.dtype).removeprefix("torch."), list(dense.shape), list(dense.stride()), at))
        parts.append((at, data))
        at += -(-data.nbytes // ALIGNED) * ALIGNED
    whole = np.zeros(at, dtype=np.uint8)
    for start, data in parts:
        whole[start : start + data.nbytes] = data
    return Image(layout, whole)


Described = Sequence[tuple[str, list[int], list[int]]]
"""Of each output its dtype, shape and strides, as the other side has them: anything may be there."""

Kept = tuple[bytearray, Described]
"""A copy of what lay in shared memory when a call ended, and what tensors the other side says that it is."""


def size_of(described: Described) -> int:
    """Bytes of outputs that lie one after another.

    Raises:
        CandidateFailed: No tensors are like that.
    """
    return sum(-(-_bytes_of(*each) // ALIGNED) * ALIGNED for each in described)


def restore(data: bytearray, described: Described) -> "tuple[Tensor, ...]":
    """The outputs.

    Raises:
        CandidateFailed: They aren't all there.
    """
    found, at = [], 0
    for dtype, shape, stride in described:
        size = _bytes_of(dtype, shape, stride)
        if at + size > len(data):
            raise CandidateFailed("its outputs aren't in the memory that it shares")
        found.append(_restore_one(data, at, size, dtype, shape, stride))
        at += -(-size // ALIGNED) * ALIGNED
    return tuple(found)


def _bytes_of(dtype: str, shape: list[int], stride: list[int]) -> int:
    import torch

    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype) or len(shape) != len(stride) or min((*shape, *stride), default=0) < 0:
        raise CandidateFailed("its outputs aren't tensors: expected a dtype, a shape and strides")
    return int(math.prod(shape) * kind.itemsize)


def _restore_one(data: bytearray, at: int, size: int, dtype: str, shape: list[int], stride: list[int]) -> "Tensor":
    import torch

    kind = getattr(torch, dtype)
    if not size:
        return torch.empty(shape, dtype=kind)
    dense: Tensor = torch.frombuffer(data, dtype=torch.uint8, offset=at, count=size).view(kind).view(shape)
    steps = sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
    if list(dense.stride()) == stride or dense.numel() == 1 or steps * kind.itemsize > MOST_SPREAD * size:
        return dense
    return torch.empty_strided(shape, stride, dtype=kind).copy_(dense)


def _create(name: str) -> int:
    """A file in memory that can't be cut short; elsewhere than on Linux one on disk, without a name."""
    if hasattr(os, "memfd_create"):
        import fcntl

        fd = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        return fd
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
