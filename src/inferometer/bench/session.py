"""What the process of a candidate is for, and what it may take."""

import os
from dataclasses import dataclass, field
from typing import Any

from inferometer.bench.candidates import Candidate
from inferometer.bench.contracts import contract_of
from inferometer.operators.operator import Operator

_FREE_SHARE = 0.8


@dataclass(frozen=True)
class ProcessLimits:
    """What a candidate may take: seconds per call, bytes of memory (None: 80 % of the host's), threads of torch.

    On a GPU the bytes are of its memory, and None is all of it. Where calls are timed on a CPU there is one thread.
    """

    seconds: float = 60.0
    memory_bytes: int | None = None
    threads: int = 2

    def memory_on(self, device: str) -> int | None:
        """What holds on a device."""
        if self.memory_bytes is not None or device != "cpu":
            return self.memory_bytes
        return int(_FREE_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


@dataclass(frozen=True)
class Session:
    """What a process is for: `timed` ones are asked for rounds of calls, others for answers.

    `sandbox`: it runs in bubblewrap.
    """

    operator: Operator
    candidate: Candidate
    device: str = "cpu"
    timed: bool = False
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    sandbox: bool = False

    @property
    def interprets(self) -> bool:
        """Whether Triton's kernels are interpreted: on a CPU, those of a candidate and of backends made of them."""
        return self.device == "cpu" and self.candidate.interpreted

    @property
    def shares_memory(self) -> bool:
        """Whether inputs and outputs of timed calls lie in memory of both sides: on a CPU."""
        return self.timed and self.device == "cpu"

    def as_request(self) -> dict[str, Any]:
        """The first line that the process reads."""
        return {
            "operator": self.operator.name,
            "job": None if self.operator.job is None else str(self.operator.job),
            "contract": contract_of(self.operator),
            "lane": self.candidate.as_request(),
            "device": self.device,
            "timed": self.timed,
            "threads": 1 if self.shares_memory else self.limits.threads,  # others would wait for each
            "memory_bytes": self.limits.memory_on(self.device),
        }
