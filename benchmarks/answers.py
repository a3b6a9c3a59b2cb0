"""The correctness gate: what each command said, against what the generator knows. No time is told before it is green.

Ours must agree to the nanosecond, kernel by kernel. A peer must answer; how far its sum is off is told beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.trace_files import Truth


class WrongAnswer(Exception):
    """A command's output isn't what the generator knows to be true."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found. `kernel_ns` is the sum over all kernels; None where the command doesn't say it."""

    kernel_ns: int | None
    agreed: str


def check_kernels(output: bytes, truth: Truth) -> Answer:
    """`inferometer kernels --json`: every kernel's launches and total, and the sum of all."""
    said = _parse(output)
    found = {row["kernel"]: (row["count"], row["total_ns"]) for row in said["rows"]}
    if wrong := [name for name in found.keys() | truth.kernels.keys() if found.get(name) != truth.kernels.get(name)]:
        name = min(wrong)
        raise WrongAnswer(
            f"{len(wrong)} kernels: want (launches, ns) {truth.kernels.get(name)}, found {found.get(name)} of {name}"
        )
    _want("total_ns", truth.kernel_ns, said["total_ns"])
    return Answer(said["total_ns"], f"{len(found)} kernels, {truth.launches:,} launches")


def check_import(output: bytes, truth: Truth) -> Answer:
    """`inferometer import --json`: the rows of every table that a Kineto file fills."""
    rows = _parse(output)["rows"]
    for table, number in table_rows(truth).items():
        _want(f"rows of {table}", number, rows[table])
    return Answer(None, f"{sum(table_rows(truth).values()):,} rows")


def check_summary(output: bytes, truth: Truth) -> Answer:
    """`inferometer summary`: its line of row counts, as text."""
    line = ", ".join(f"{number:,} {table}" for table, number in table_rows(truth).items())
    if line not in output.decode("utf-8"):
        raise WrongAnswer(f"want a line with {line!r}, found\n{output[:600].decode('utf-8', 'replace')}")
    return Answer(None, f"{sum(table_rows(truth).values()):,} rows")


def check_help(output: bytes) -> Answer:
    """`inferometer --help` lists the commands measured here."""
    if missing := [name for name in (b"kernels", b"import", b"summary") if name not in output]:
        raise WrongAnswer(f"want the commands in the help, found none of the name {missing[0].decode()}")
    return Answer(None, "lists the commands")


def read_peer(output: bytes) -> Answer:
    """A peer's last line, `{"kernel_ns": ...}`: it must be a sum, not the right one."""
    lines = output.splitlines()
    said = _parse(lines[-1] if lines else b"")
    if not isinstance(said.get("kernel_ns"), int) or said["kernel_ns"] <= 0:
        raise WrongAnswer(f"want a sum of kernel time above 0, found {said.get('kernel_ns')!r}")
    return Answer(said["kernel_ns"], "not gated")


def table_rows(truth: Truth) -> Mapping[str, int]:
    """How many rows each table must have, from the events of the categories that become its rows."""
    categories = {
        "launches": ("kernel", "gpu_memcpy", "gpu_memset"),
        "calls": ("cuda_runtime", "cuda_driver"),
        "ops": ("cpu_op",),
        "frames": ("python_function",),
        "spans": ("user_annotation", "gpu_user_annotation", "Trace", "i"),
    }
    return {table: sum(truth.events.get(name, 0) for name in names) for table, names in categories.items()}


def _want(what: str, wanted: int, found: object) -> None:
    if found != wanted:
        raise WrongAnswer(f"{what}: want {wanted:,}, found {found!r}")


def _parse(output: bytes) -> dict[str, Any]:
    try:
        said = json.loads(output)
    except ValueError as error:
        raise WrongAnswer(f"want JSON, found {output[:200]!r}") from error
    if not isinstance(said, dict):
        raise WrongAnswer(f"want a JSON object, found {output[:200]!r}")
    return said
