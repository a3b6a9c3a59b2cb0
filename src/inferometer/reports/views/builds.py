"""What became of a candidate's kernels: a table of kernels, what failed, and the gate's findings."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from inferometer.bench.builds.gate import SEVERITIES
from inferometer.bench.builds.record import ArchitectureBuild, KernelBuild, gist
from inferometer.bench.builds.result import Builds
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View

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
    Field("severity", "Severity", "severity"),
    Field("rule", "Rule", "text"),
    Field("found", "Found", "text"),
    Field("wanted", "Wanted", "text", spare=1),
    Field("where", "Where", "name"),
)
_PLURAL = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("remark", "remarks")}


def _facts(found: Builds) -> Sequence[tuple[str, str]]:
    """Candidate, operator, compilers, verdict."""
    versions = sorted(
        {f"{each.triton or 'unknown'} with torch {each.torch or 'unknown'}" for each in found.architectures}
    )
    counts = [(severity, sum(each.severity == severity for each in found.findings)) for severity in SEVERITIES]
    concerns = ", ".join(f"{count} {_PLURAL[severity][count != 1]}" for severity, count in counts if count)
    return [
        ("Candidate", found.candidate),
        ("Operator", f"{found.operator}, {len(found.cases)} {'case' if len(found.cases) == 1 else 'cases'}"),
        ("Triton", ", ".join(versions)),
        ("Gate", f"{'passed' if found.passed else 'not passed'}{f': {concerns}' if concerns else ''}"),
    ]


def _sections(found: Builds) -> Sequence[Section]:
    """Kernels first; failures and findings where there are any."""
    sections = [Section("Kernels", _KERNELS, _kernel_rows(found), _NOTES)]
    if failed := [row for each in found.architectures for row in _failures(each)]:
        schema = {field.column: pl.Int64 if field.column == "case" else pl.String for field in _FAILED}
        sections.append(Section("Failed", _FAILED, pl.DataFrame(failed, schema=schema)))
    if found.findings:
        schema = {field.column: pl.String for field in _FINDINGS}
        frame = pl.DataFrame([finding.as_json() for finding in found.findings], schema=schema)
        sections.append(Section("Gate", _FINDINGS, frame))
    return sections


def _remarks(found: Builds) -> Sequence[str]:
    """The errors, as sentences."""
    return [
        f"{each.where}: {each.found}; expected {each.wanted}." for each in found.findings if each.severity == "error"
    ]


def _kernel_rows(found: Builds) -> pl.DataFrame:
    texts = {
        "spills": map(_spills, found.kernels),
        "matrix": (_counts(each.matrix) for each in found.kernels),
        "loads": (_counts(each.loads) for each in found.kernels),
    }
    return found.to_polars().with_columns(pl.Series(name, [*cells], dtype=pl.String) for name, cells in texts.items())


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


VIEW = View(schema=Schema("builds", 1), facts=_facts, sections=_sections, remarks=_remarks)
