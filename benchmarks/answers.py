"""The correctness gate: what each command said, against what is known of the file. No time is told before it is green.

Sums, counts, extremes and medians must agree to the nanosecond, row by row; means and deviations, which are floats, to
a part in 10^9. A peer whose numbers are known to differ must answer; how far its sum is off is told beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.trace_files import Truth

_ROUNDED: Final = ("mean_ns", "stddev_ns")
_ROUNDING: Final = 1e-9


class WrongAnswer(Exception):
    """A command's output isn't what is known to be true."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found. `kernel_ns` is the sum over all kernels; None where the command doesn't say it."""

    kernel_ns: int | None
    agreed: str


def check_kernels(output: bytes, truth: Truth) -> Answer:
    """`kernels --json`: what is known of every kernel, and the sum of all."""
    said = _parse(output)
    _check_rows(said["rows"], "kernel", truth, "kernels")
    _want("total_ns", truth.kernel_ns, said["total_ns"])
    return Answer(said["total_ns"], f"{len(said['rows'])} kernels, {truth.launches:,} launches")


def check_calls(output: bytes, truth: Truth) -> Answer:
    """`calls --json`: what is known of every API's calls."""
    rows = _parse(output)["rows"]
    _check_rows(rows, "api", truth, "calls")
    return Answer(None, f"{len(rows)} APIs")


def check_spans(output: bytes, truth: Truth) -> Answer:
    """`spans --json`: what is known of every name's ranges, and of the launches in them."""
    rows = _parse(output)["rows"]
    _check_rows(rows, "span", truth, "spans")
    return Answer(None, f"{len(rows):,} names of {sum(row['instances'] for row in rows):,} ranges")


def check_timeline(output: bytes, truth: Truth) -> Answer:
    """`timeline --json`: busy, summed and wall time of every device."""
    rows = _parse(output)["devices"]
    _check_rows(rows, "device", truth, "devices")
    return Answer(None, "busy, summed and wall time")


def check_import(output: bytes, truth: Truth) -> Answer:
    """`import --json`: the rows of every table that the file fills."""
    rows = _parse(output)["rows"]
    for table, number in truth.rows.items():
        _want(f"rows of {table}", number, rows[table])
    return Answer(None, f"{sum(truth.rows.values()):,} rows")


def check_summary(output: bytes, truth: Truth) -> Answer:
    """`summary`: its line of row counts, as text."""
    line = ", ".join(f"{number:,} {table}" for table, number in truth.rows.items())
    if line not in output.decode("utf-8"):
        raise WrongAnswer(f"want a line with {line!r}, found\n{output[:600].decode('utf-8', 'replace')}")
    return Answer(None, f"{sum(truth.rows.values()):,} rows")


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


def _check_rows(rows: Sequence[Mapping[str, Any]], key: str, truth: Truth, table: str) -> None:
    """The same names as in the truth, once each, and the same numbers in the columns that it has."""
    wanted, found = truth.tables[table], {row[key]: row for row in rows}
    _want(f"rows of {table}", len(wanted), len(rows))
    for name in sorted(wanted.keys() | found.keys()):
        known, row = wanted.get(name, {}), found.get(name, {})
        numbers = {column: row.get(column) for column in known}
        if not row or not known or not all(_equal(column, known[column], numbers[column]) for column in known):
            raise WrongAnswer(f"{table}: want {dict(known) or 'no such row'}, found {numbers or row} of {name}")


def _equal(column: str, wanted: float, found: object) -> bool:
    """Whether a number is right: exactly, but for what only a float can hold."""
    if column in _ROUNDED:
        return isinstance(found, float | int) and math.isclose(found, wanted, rel_tol=_ROUNDING)
    return found == wanted


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
