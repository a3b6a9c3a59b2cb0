"""What became of a candidate's kernels, as a result: a table of kernels, what failed, and the gate's findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from inferometer.analyses.result import Field, Result, Section
from inferometer.bench.builds.gate import SEVERITIES, BuildFinding
from inferometer.bench.builds.record import ArchitectureBuild, KernelBuild, gist
from inferometer.trace.losses import Losses

_KERNELS = (
    Field("architecture", "Arch", "text"),
    Field("num_warps", "Warps", "count", spare=2),
    Field("registers", "Registers", "count"),
    Field("stack_bytes", "Stack", "bytes", spare=6),
    Field("spills", "Spills", "text"),
    Field("shared_bytes", "Shared", "bytes"),
    Field("blocks", "Blocks/SM", "count"),
    Field("occupancy", "Occupancy", "share"),
    Field("limited_by", "Limited by", "text", spare=3),
    Field("matrix", "Matrix instructions", "text"),
    Field("loads", "Loads", "text", spare=4),
    Field("kernel", "Kernel", "name"),
    Field("arguments", "Arguments", "name", spare=7),
    Field("cases", "Cases", "text", spare=8),
)
_SCHEMA = {
    "architecture": pl.String, "kernel": pl.String, "num_warps": pl.Int64, "num_stages": pl.Int64,
    "registers": pl.Int64, "stack_bytes": pl.Int64, "spills": pl.String, "shared_bytes": pl.Int64,
    "blocks": pl.Int64, "occupancy": pl.Float64, "limited_by": pl.String, "matrix": pl.String, "loads": pl.String,
    "instructions": pl.Int64, "arguments": pl.String, "cases": pl.String,
}  # fmt: skip
_NOTES = (
    "Compiled, not run. Registers, stack and spills are of a lane, shared memory of a block.",
    "Occupancy: of the warps that a multiprocessor holds, those that have room at once.",
    "Instructions are counted once in the code, however often they run.",
)
_FAILED = (
    Field("architecture", "Arch", "text"),
    Field("kernel", "Kernel", "text"),
    Field("configuration", "Configuration", "name", spare=1),
    Field("case", "Case", "number"),
    Field("message", "Message", "name"),
)
_FINDINGS = (
    Field("severity", "Severity", "text"),
    Field("rule", "Rule", "text"),
    Field("found", "Found", "text"),
    Field("wanted", "Wanted", "text", spare=1),
    Field("where", "Where", "name"),
)


@dataclass(frozen=True)
class Builds(Result):
    """A candidate's kernels on every architecture that was asked for, with what the gate says of them."""

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
        """Of all architectures."""
        return tuple(build for each in self.architectures for build in each.kernels)

    def facts(self) -> Sequence[tuple[str, str]]:
        """Candidate, operator, compilers, verdict."""
        versions = sorted(
            {f"{each.triton or 'unknown'} with torch {each.torch or 'unknown'}" for each in self.architectures}
        )
        counts = [(severity, sum(each.severity == severity for each in self.findings)) for severity in SEVERITIES]
        found = ", ".join(f"{count} {_PLURAL[severity][count != 1]}" for severity, count in counts if count)
        return [
            ("Candidate", self.candidate),
            ("Operator", f"{self.operator}, {len(self.cases)} {'case' if len(self.cases) == 1 else 'cases'}"),
            ("Triton", ", ".join(versions)),
            ("Gate", f"{'passed' if self.passed else 'not passed'}{f': {found}' if found else ''}"),
        ]

    def sections(self) -> Sequence[Section]:
        """Kernels first; failures and findings where there are any."""
        rows = [_row(build) for build in self.kernels]
        sections = [Section("Kernels", _KERNELS, pl.DataFrame(rows, schema=_SCHEMA), _NOTES)]
        if failed := [row for each in self.architectures for row in _failures(each)]:
            schema = {field.column: pl.Int64 if field.column == "case" else pl.String for field in _FAILED}
            sections.append(Section("Failed", _FAILED, pl.DataFrame(failed, schema=schema)))
        if self.findings:
            schema = {field.column: pl.String for field in _FINDINGS}
            frame = pl.DataFrame([finding.as_json() for finding in self.findings], schema=schema)
            sections.append(Section("Gate", _FINDINGS, frame))
        return sections

    def remarks(self) -> Sequence[str]:
        """The errors, as sentences."""
        return [
            f"{each.where}: {each.found}; expected {each.wanted}." for each in self.findings if each.severity == "error"
        ]

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


_PLURAL = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("remark", "remarks")}


def _row(build: KernelBuild) -> dict[str, Any]:
    occupancy = build.occupancy
    return {
        "architecture": build.architecture,
        "kernel": build.label,
        "num_warps": build.num_warps,
        "num_stages": build.num_stages,
        "registers": build.registers,
        "stack_bytes": build.stack_bytes,
        "spills": _spills(build),
        "shared_bytes": build.shared_bytes,
        "blocks": occupancy.blocks if occupancy else None,
        "occupancy": occupancy.share if occupancy else None,
        "limited_by": occupancy.limited_by if occupancy else None,
        "matrix": _counts(build.matrix),
        "loads": _counts(build.loads),
        "instructions": build.instructions,
        "arguments": ", ".join(f"{name} {text}" for name, text in build.arguments.items() if not text.startswith("=")),
        "cases": ", ".join(map(str, build.cases)),
    }


def _spills(build: KernelBuild) -> str | None:
    if build.spilled_registers is not None:
        return f"{build.spilled_registers} registers" if build.spilled_registers else "0"
    if build.spill_store_bytes is None:
        return None
    return f"{build.spill_store_bytes:,} B out, {build.spill_load_bytes:,} B in" if build.spills else "0"


def _counts(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def _failures(build: ArchitectureBuild) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"kernel": each.kernel, "configuration": each.configuration, "case": each.case, "message": each.message}
        for each in build.failed
    ]
    if build.error is not None:
        rows.append({"message": build.error})
    return [row | {"architecture": build.architecture, "message": gist(row["message"])} for row in rows]
