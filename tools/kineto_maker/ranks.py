"""Ranks in lockstep: when the other ranks' streams are free while one rank is played, so that collectives end together.

All ranks run the same program with the same draws, so that another rank's times follow from this one's: it began later
or earlier, and its kernels may take longer. A collective ends everywhere when the last rank has brought its part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from .options import Options

SKEW_NS: Final = 17_250  # between the starts of two ranks
_SLOW_FACTOR: Final = 1.3


def compute_factor(options: Options, rank: int) -> float:
    """So many times as long a rank takes for its own kernels."""
    return _SLOW_FACTOR if options.fault == "slow-rank" and rank == options.world - 1 else 1.0


@dataclass(slots=True)
class Peer:
    """Another rank: how far its host is behind this one's, and until when its streams are busy."""

    factor: float
    behind_ns: int
    free: dict[int, int] = field(default_factory=dict)

    def begin(self, stream: int, gap_ns: int, earliest_ns: int) -> int:
        """When its stream can begin what the host has queued; `earliest_ns` is this rank's."""
        return max(self.free.get(stream, 0) + gap_ns, earliest_ns + self.behind_ns)

    def wait(self, now: int, least_ns: int, wake_ns: int, returned: int) -> None:
        """Its host waits for its streams too; `returned` is when this rank's does."""
        own = now + self.behind_ns
        self.behind_ns = max(own + least_ns, max(self.free.values(), default=0) + wake_ns) - returned


def peers_of(options: Options) -> list[Peer]:
    """The other ranks, where the ranks wait for each other."""
    if not options.in_lockstep:
        return []
    others = (rank for rank in range(options.world) if rank != options.rank)
    return [Peer(compute_factor(options, rank), (rank - options.rank) * SKEW_NS) for rank in others]
