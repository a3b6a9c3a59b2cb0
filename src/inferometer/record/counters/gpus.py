"""Which of NVML's GPUs the recorded process uses, and how PyTorch numbers them.

NVML numbers by PCI address and knows nothing of CUDA_VISIBLE_DEVICES; what both share is the UUID. Once torch has
initialised CUDA in this process, torch says the order. Before that (asking it would initialise CUDA, after which a
fork fails) the variable does; where neither says, NVML's order is taken, which is CUDA's where all cards are alike or
CUDA_DEVICE_ORDER=PCI_BUS_ID. Source: CUDA C++ Programming Guide, environment variables.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferometer.hardware.measure.nvml import Nvml


def _loaded_torch() -> Any:
    return sys.modules.get("torch")


class Numbering:
    """`device_of(uuid)` is `gpu:0`, or None where the recorded process doesn't see that GPU.

    Args:
        uuids: Of all GPUs, in NVML's order.
        environ: Environment variables of the recorded process.
        torch: Gives torch where it is loaded.
    """

    def __init__(
        self, uuids: Sequence[str], environ: Mapping[str, str], torch: Callable[[], Any] = _loaded_torch
    ) -> None:
        self._torch = torch
        self._order: Sequence[str] = visible(uuids, environ.get("CUDA_VISIBLE_DEVICES"))
        self._is_final = False

    def device_of(self, uuid: str) -> str | None:
        """As torch calls it, from the moment when it can say so."""
        if not self._is_final:
            self._ask_torch()
        return f"gpu:{self._order.index(uuid)}" if uuid in self._order else None

    def _ask_torch(self) -> None:
        cuda = getattr(self._torch(), "cuda", None)
        try:
            if cuda is None or not cuda.is_initialized():
                return
            found = [getattr(cuda.get_device_properties(i), "uuid", None) for i in range(cuda.device_count())]
        except (AttributeError, RuntimeError):  # torch is just being imported, or CUDA failed
            return
        self._is_final = True
        if all(found):
            self._order = [f"GPU-{str(uuid).removeprefix('GPU-')}" for uuid in found]


def visible(uuids: Sequence[str], variable: str | None) -> list[str]:
    """UUIDs in the order that CUDA_VISIBLE_DEVICES gives: numbers or beginnings of UUIDs, up to the first unknown."""
    if variable is None:
        return list(uuids)
    found: list[str] = []
    for entry in (each.strip() for each in variable.split(",")):
        if entry.isdigit():
            matches = list(uuids[int(entry) : int(entry) + 1])
        else:
            matches = [uuid for uuid in uuids if entry.startswith("GPU-") and uuid.startswith(entry)]
        if len(matches) != 1 or matches[0] in found:
            return found
        found += matches
    return found


@dataclass
class NumberedGpu:
    """A GPU that a probe asks, with its number for torch."""

    nvml: Nvml
    uuid: str
    numbering: Numbering

    @property
    def device(self) -> str | None:
        """As torch numbers it; None where the recorded process doesn't see it."""
        return self.numbering.device_of(self.uuid)
