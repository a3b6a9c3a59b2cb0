"""Where a program's memory goes: what its buffers take on the device, by purpose, and what of that is rounding."""

from dataclasses import dataclass

from inferometer.engines.webgpu.program import Program, Purpose


@dataclass(frozen=True)
class PurposeMemory:
    """Buffers of one purpose: what they take, of which `needed_bytes` are used."""

    purpose: Purpose
    buffers: int
    size_bytes: int
    needed_bytes: int

    @property
    def overhead_bytes(self) -> int:
        """Rounding: taken, and not used."""
        return self.size_bytes - self.needed_bytes


def memory_of(program: Program) -> list[PurposeMemory]:
    """The program's memory by purpose, the most first."""
    found: dict[Purpose, PurposeMemory] = {}
    for buffer in program.buffers:
        sofar = found.get(buffer.purpose, PurposeMemory(buffer.purpose, 0, 0, 0))
        found[buffer.purpose] = PurposeMemory(
            buffer.purpose,
            sofar.buffers + 1,
            sofar.size_bytes + buffer.size_bytes,
            sofar.needed_bytes + buffer.needed_bytes,
        )
    return sorted(found.values(), key=lambda one: (-one.size_bytes, one.purpose))
