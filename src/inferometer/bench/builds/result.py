"""What became of a candidate's kernels: each build, what failed, and the gate's findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.result import Result
from inferometer.bench.builds.gate import BuildFinding
from inferometer.bench.builds.record import ArchitectureBuild, KernelBuild
from inferometer.trace.losses import Losses

_SCHEMA = {
    **dict.fromkeys(("architecture", "kernel"), pl.String),
    **dict.fromkeys(("num_warps", "num_stages", "registers", "stack_bytes"), pl.Int64),
    **dict.fromkeys(("spilled_registers", "spill_store_bytes", "spill_load_bytes"), pl.Int64),
    **dict.fromkeys(("shared_bytes", "blocks"), pl.Int64),
    "occupancy": pl.Float64,
    "limited_by": pl.String,
    "instructions": pl.Int64,
    **dict.fromkeys(("arguments", "cases"), pl.String),
}


@dataclass(frozen=True)
class Builds(Result):
    """A candidate's kernels on every architecture that was asked for, with what the gate says of them."""

    view: ClassVar[str] = "builds"
    candidate: str
    operator: str
    cases: tuple[Mapping[str, Any], ...]
    architectures: tuple[ArchitectureBuild, ...]
    findings: tuple[BuildFinding, ...]
    losses: Losses

    @property
    def passed(self) -> bool:
        """Whether the gate found no error."""
        return all(finding.severity != "error" for finding in self.findings)

    @property
    def kernels(self) -> tuple[KernelBuild, ...]:
        """Kernels of all architectures."""
        return tuple(build for each in self.architectures for build in each.kernels)

    def to_polars(self) -> pl.DataFrame:
        """One row per kernel, in the order of `kernels`."""
        return pl.DataFrame([_row(build) for build in self.kernels], schema=_SCHEMA, orient="row")

    def as_json(self) -> dict[str, Any]:
        """Everything; `passed` is the gate's."""
        return {
            "candidate": self.candidate,
            "operator": self.operator,
            "cases": [dict(args) for args in self.cases],
            "passed": self.passed,
            "findings": [finding.as_json() for finding in self.findings],
            "architectures": [build.as_json() for build in self.architectures],
        }


def _row(build: KernelBuild) -> dict[str, Any]:
    occupancy = build.occupancy
    return {
        "architecture": build.architecture,
        "kernel": build.label,
        "num_warps": build.num_warps,
        "num_stages": build.num_stages,
        "registers": build.registers,
        "stack_bytes": build.stack_bytes,
        "spilled_registers": build.spilled_registers,
        "spill_store_bytes": build.spill_store_bytes,
        "spill_load_bytes": build.spill_load_bytes,
        "shared_bytes": build.shared_bytes,
        "blocks": occupancy.blocks if occupancy else None,
        "occupancy": occupancy.share if occupancy else None,
        "limited_by": occupancy.limited_by if occupancy else None,
        "instructions": build.instructions,
        "arguments": ", ".join(f"{name} {text}" for name, text in build.arguments.items() if not text.startswith("=")),
        "cases": ", ".join(map(str, build.cases)),
    }
