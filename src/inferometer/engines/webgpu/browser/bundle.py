"""What the page is given: the program as JSON, and its weights as one file that isn't there.

The file is all contents one after the other, each as long as its buffer, in the order of their parts. A content
is read (decoded, converted) when a range of the file asks for it, and only one of them is in memory at a time.
"""

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from inferometer.engines.webgpu.program import Buffer, Program
from inferometer.engines.webgpu.run.executor import Content
from inferometer.engines.webgpu.run.limits import Sources
from inferometer.errors import InferometerError

PARTS = ("embedding", "layers", "head", "tables")
"""In this order parts are loaded; others come after them."""
_SMALL_BYTES = 1 << 18
_MOST_SMALL = 64
_LARGE_BYTES = 1 << 26
_MOST_LARGE = 8
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FilePlace:
    """Where a buffer's content is in the file of weights."""

    buffer: str
    part: str
    offset: int
    size_bytes: int


class WeightFile:
    """Contents as one file that can be read in ranges.

    Args:
        buffers: Of the program; a content that is shorter than its buffer is filled up with zeros.
        contents: By buffer name.

    Raises:
        KeyError: A content has no buffer.
    """

    def __init__(self, buffers: tuple[Buffer, ...], contents: Mapping[str, Content]) -> None:
        sizes = {buffer.name: buffer.size_bytes for buffer in buffers}
        order = {part: number for number, part in enumerate(PARTS)}
        self._contents = dict(contents)
        self._lock = threading.Lock()
        self._held: tuple[str, memoryview] | None = None
        self.places: list[FilePlace] = []
        offset = 0
        for name in sorted(contents, key=lambda each: order.get(contents[each].part, len(order))):
            self.places.append(FilePlace(name, contents[name].part, offset, sizes[name]))
            offset += sizes[name]
        self.size_bytes = offset

    @contextmanager
    def _opened(self, place: FilePlace) -> Iterator[memoryview]:
        """The bytes of a content. Others wait: two of them would take twice the memory."""
        with self._lock:
            if self._held is None or self._held[0] != place.buffer:
                self._held = None
                self._held = (place.buffer, _bytes_of(self._contents[place.buffer], place))
            yield self._held[1]

    def read(self, first: int, last: int) -> Iterator[memoryview]:
        """The bytes from `first` to `last`, exclusive, in pieces; none of them outlives the next."""
        for place in self.places:
            begin, end = max(first, place.offset), min(last, place.offset + place.size_bytes)
            if begin >= end:
                continue
            with self._opened(place) as data:
                for at in range(begin - place.offset, end - place.offset, _PIECE_BYTES):
                    stop = min(at + _PIECE_BYTES, end - place.offset)
                    yield data[at:stop]

    def release(self) -> None:
        """Forget the content that was read last."""
        with self._lock:
            self._held = None

    def fingerprint(self, program: Program, source: str) -> str:
        """A name for these weights in the page's cache.

        It is a hash of the model's and kernel path's names, of `source`, of every content's buffer, part and sizes,
        and of the bytes of some: the small ones (norms, biases), and a few matrices spread over the file. Not of all
        bytes, or finding them in the cache would take as long as reading them. Two checkpoints of one form that differ
        in other matrices alone have different names only where `source` tells them apart.
        """
        digest = hashlib.sha256()
        table = [(p.buffer, p.part, p.size_bytes, self._contents[p.buffer].source_bytes) for p in self.places]
        digest.update(msgspec.json.encode(["inferometer-1", program.name, program.kernel_path, source, table]))
        for place in _samples(self.places):
            for piece in self.read(place.offset, place.offset + place.size_bytes):
                digest.update(piece)
        return digest.hexdigest()[:32]


def _samples(places: list[FilePlace]) -> list[FilePlace]:
    small = [place for place in places if place.size_bytes <= _SMALL_BYTES]
    large = [place for place in places if _SMALL_BYTES < place.size_bytes <= _LARGE_BYTES]
    return _spread(small, _MOST_SMALL) + _spread(large, _MOST_LARGE)


def _spread(places: list[FilePlace], most: int) -> list[FilePlace]:
    """At most so many of them, evenly over the list, the first and last among them."""
    if len(places) <= most:
        return places
    return [places[number * (len(places) - 1) // (most - 1)] for number in range(most)]


def _bytes_of(content: Content, place: FilePlace) -> memoryview:
    data = np.ascontiguousarray(content.read()).reshape(-1).view(np.uint8)
    if data.size > place.size_bytes:
        raise InferometerError(f"{place.buffer}: content of {data.size} bytes, its buffer has {place.size_bytes}")
    if data.size < place.size_bytes:
        data = np.concatenate([data, np.zeros(place.size_bytes - data.size, np.uint8)])
    return data.data


def describe_program(
    program: Program, weights: WeightFile, sources: Sources, *, fingerprint: str, cached: bool
) -> bytes:
    """All that the page needs but the weights, as JSON.

    Args:
        program: What runs.
        weights: Where contents are.
        sources: Finds a kernel's file.
        fingerprint: The folder of these weights in the page's cache.
        cached: Whether the page shall keep and look for weights there.

    Raises:
        UnknownName: A pipeline names no kernel.
    """
    kernels = {name: sources(name) for name in {pipeline.kernel for pipeline in program.pipelines}}
    return msgspec.json.encode(
        {
            "name": program.name,
            "kernel_path": program.kernel_path,
            "capacity": program.capacity,
            "most_rows": program.most_rows,
            "vocabulary": program.vocabulary,
            "buffers": [{"name": each.name, "size": each.size_bytes} for each in program.buffers],
            "kernels": {
                name: {
                    "text": source.text_for("tint"),
                    "access": [binding.access for binding in source.bindings],
                    "stretches": source.stretches,
                }
                for name, source in kernels.items()
            },
            "pipelines": program.pipelines,
            "phases": {phase: [_dispatch(each) for each in steps] for phase, steps in program.phases.items()},
            "weights": [
                {"buffer": each.buffer, "part": each.part, "offset": each.offset, "size": each.size_bytes}
                for each in weights.places
            ],
            "fingerprint": fingerprint,
            "cached": cached,
        }
    )


def _dispatch(dispatch: Any) -> dict[str, Any]:
    return {
        "label": f"{dispatch.op}:{dispatch.role}" if dispatch.role else dispatch.op,
        "pipeline": dispatch.pipeline,
        "bindings": [[each.buffer, each.offset, each.size_bytes] for each in dispatch.bindings],
        "grid": dispatch.grid,
    }
