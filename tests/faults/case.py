"""One synthetic pair of runs: what was done to the candidate, how much was recorded, and what an honest answer is.

A name fixes everything of a case: its seed is the CRC-32 of the name, and bit 16 of it decides the split
(`development` where it is 0, else `held_out`), so neither can follow from a result.
"""

import zlib
from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["low", "medium", "high"]
Recorded = Literal["all", "counters", "functions", "no_counters"]

HARDWARE_FAULTS = (
    "cpu_clock",
    "cpu_contention",
    "gpu_clock",
    "gpu_contention",
    "gpu_memory",
    "nvlink_traffic",
    "pcie_traffic",
    "network",
    "disk",
    "memory_pressure",
    "thermal",
)
SOFTWARE_FAULTS = ("slower_kernel", "replaced_kernel", "fused_kernel")
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")
FEW = 5  # with so few ticks or cycles "too few samples" is as good an answer as the right cause


@dataclass(frozen=True)
class Case:
    """What is recorded and what is done to the candidate run.

    Attributes:
        name: Unique; gives the seed and the split.
        faults: Of `HARDWARE_FAULTS` and `SOFTWARE_FAULTS`; none in a null, two or more at once are one case.
        severity: Its physical meaning is in effects.py.
        workload: Of workloads.py: `launch_bound`, `gpu_bound` or `offload`.
        cycles: Steps recorded in the base and in the candidate.
        ticks: Counter samples (about 1 Hz) in the base and in the candidate.
        processes: Tensor-parallel ranks, a process and a GPU each.
        tenants: Other users' load on other GPUs and on the host changes between and within the runs.
        extended: Temperatures, power, disk rates and PCIe receive are recorded, which published recordings lack.
        layer_anchor: The candidate's cycles are decoder layers (64 per step), the base's are steps.
        recorded: `counters` has no functions at all, `functions` no metrics at all, `no_counters` no raw samples.
        cause_recorded: False drops every metric that could name the fault.
        one_gpu: A fault of GPUs hits the first own GPU only.
        pooled: GPU counters don't say their device, as in published recordings.
        swapped: Base and candidate change places: the pair is an improvement.
    """

    name: str
    faults: tuple[str, ...] = ()
    severity: Severity = "medium"
    workload: str = "launch_bound"
    cycles: tuple[int, int] = (14, 14)
    ticks: tuple[int, int] = (9, 9)
    processes: int = 1
    tenants: bool = False
    extended: bool = False
    layer_anchor: bool = False
    recorded: Recorded = "all"
    cause_recorded: bool = True
    one_gpu: bool = False
    pooled: bool = True
    swapped: bool = False

    @property
    def seed(self) -> int:
        """The case's own seed, for `make_pair`."""
        return zlib.crc32(self.name.encode())

    @property
    def split(self) -> Literal["development", "held_out"]:
        """`development` may be looked at while the method is made, `held_out` only to report."""
        return "held_out" if self.seed >> 16 & 1 else "development"

    @property
    def classes(self) -> frozenset[str]:
        """Cause classes that are right in the first place; empty where no hardware cause may be named."""
        nameable = self.cause_recorded and self.recorded != "functions" and not self.swapped
        hidden = {"gpu_memory"} if self.severity != "high" else set()  # nothing waits for memory that isn't full
        if self.recorded == "counters":
            hidden |= {"network"}  # nothing says that the program communicates
        return frozenset(self.faults).intersection(HARDWARE_FAULTS) - hidden if nameable else frozenset()

    @property
    def verdicts(self) -> frozenset[str]:
        """Verdicts that are right. A fault whose cause is out of sight may also leave no trace in the times."""
        software = not self.classes and bool(set(self.faults).intersection(SOFTWARE_FAULTS))
        if self.swapped:
            return frozenset({"improvement", "no difference", "too few samples", "software change"})
        if software:
            return frozenset({"software change"} | _also_right(self.faults, self.severity))
        if self.recorded == "counters" and not self.classes:
            found = {"cause not measured"}
        elif not self.faults:
            found = {"no difference"}
        else:
            found = {"cause named"} if self.classes else {"cause not measured", "no difference"}
        few = min(self.ticks + self.cycles) <= FEW
        return frozenset(found | ({"too few samples"} if few else set()))

    def but(self, **changes: object) -> "Case":
        """The same case with other fields."""
        return replace(self, **changes)  # type: ignore[arg-type]


def _also_right(faults: tuple[str, ...], severity: str) -> set[str]:
    """At low severity new kernels are faster, and a small one that is 1.3 x slower hardly shows in the step."""
    if severity != "low":
        return set()
    return {"no difference"} if "slower_kernel" in faults else {"improvement"}
