"""In the candidate's process: tensors that lie in memory which is shared with us, and outputs copied into it."""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ALIGNED = 256  # as bench/arena.py has it


class TooLarge(Exception):
    """Outputs that don't fit: they aren't those that were asked for."""


@dataclass
class Views:
    """Of two files, by descriptor: inputs of calls that take turns with places in the first, outputs in the second."""

    torch: Any
    inputs: int
    outputs: int
    _places: list[dict[str, Any]] = field(default_factory=list)
    _out: Any = None

    def lay(self, request: Mapping[str, Any]) -> None:
        """Map both as they are now, with tensors of this layout at these places."""
        whole = mmap.mmap(self.inputs, request["size"]) if request["size"] else b""
        self._places = [
            {name: self._view(whole, at + start, *about) for name, *about, start in request["layout"]}
            for at in request["places"]
        ]
        self._out = self.torch.frombuffer(mmap.mmap(self.outputs, request["out"]), dtype=self.torch.uint8)

    def take(self, place: int) -> dict[str, Any]:
        """The tensors of a call: objects of its own."""
        return {name: tensor.detach() for name, tensor in self._places[place].items()}

    def put(self, tensors: Sequence[Any]) -> list[list[Any]]:
        """Copy outputs; what they are.

        Raises:
            TooLarge: They don't fit.
        """
        at, described = 0, []
        for tensor in tensors:
            size = tensor.numel() * tensor.element_size()
            if at + size > self._out.numel():
                raise TooLarge(f"expected outputs of at most {self._out.numel():,} bytes, found more")
            if size:
                self._out[at : at + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)
            described.append([str(tensor.dtype).removeprefix("torch."), list(tensor.shape), list(tensor.stride())])
            at += -(-size // ALIGNED) * ALIGNED
        return described

    def _view(self, whole: Any, at: int, dtype: str, shape: list[int], stride: list[int]) -> Any:
        """With a storage of its own, which is how a view of an input is told from others."""
        kind = getattr(self.torch, dtype)
        count = 1
        for size in shape:
            count *= size
        if not count:
            return self.torch.empty(shape, dtype=kind)
        bytes_ = self.torch.frombuffer(whole, dtype=self.torch.uint8, offset=at, count=count * kind.itemsize)
        return bytes_.view(kind).as_strided(shape, stride)
