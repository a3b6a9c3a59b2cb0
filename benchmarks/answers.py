"""The correctness gate: each command's answer against what is known of the file. Times come after it is green.

Sums, counts, extremes and medians must agree to the nanosecond, row by row; means and deviations, which are floats, to
a part in 10^9. A peer whose numbers are known to differ must answer; how far its sum is off is reported with it.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.trace_files import Truth

_ROUNDED: Final = ("mean_ns", "stddev_ns")
_ROUNDING: Final = 1e-9
_PAGE_BYTES: Final = 8_000_000
_PIECE_BYTES: Final = 1 << 20


class WrongAnswer(Exception):
    """A command's output isn't what is known to be true."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found. `kernel_ns` is the sum over all kernels; None where the command doesn't say it."""

    kernel_ns: int | None
    agreed: str


def check_kernels(output: bytes, truth: Truth) -> Answer:
    """`kernels --json`: what is known of every kernel, and the sum of all."""
    said = parse(output)
    _check_rows(said["rows"], "kernel", truth, "kernels")
    want("total_ns", truth.kernel_ns, said["total_ns"])
    launches = f", {truth.launches:,} launches" if truth.launches else ""
    return Answer(said["total_ns"], f"{len(said['rows'])} kernels{launches}")


def check_calls(output: bytes, truth: Truth) -> Answer:
    """`calls --json`: what is known of every API's calls."""
    rows = parse(output)["rows"]
    _check_rows(rows, "api", truth, "calls")
    return Answer(None, f"{len(rows)} APIs")


def check_spans(output: bytes, truth: Truth) -> Answer:
    """`spans --json`: what is known of every name's ranges, and of the launches in them."""
    rows = parse(output)["rows"]
    _check_rows(rows, "span", truth, "spans")
    return Answer(None, f"{len(rows):,} names of {sum(row['instances'] for row in rows):,} ranges")


def check_sql(output: bytes, truth: Truth) -> Answer:
    """`sql --json`, asked for the number of kernels' launches and their time."""
    (row,) = parse(output)["rows"]
    want("launches", truth.launches, row["launches"])
    want("kernel_ns", truth.kernel_ns, row["kernel_ns"])
    return Answer(row["kernel_ns"], f"{row['launches']:,} launches")


def check_timeline(output: bytes, truth: Truth) -> Answer:
    """`timeline --json`: busy, summed and wall time of every device."""
    rows = parse(output)["devices"]
    _check_rows(rows, "device", truth, "devices")
    return Answer(None, "busy, summed and wall time")


def check_import(output: bytes, truth: Truth) -> Answer:
    """`import --json`: the rows of every table that the file fills."""
    rows = parse(output)["rows"]
    for table, number in truth.rows.items():
        want(f"rows of {table}", number, rows[table])
    return Answer(None, f"{sum(truth.rows.values()):,} rows")


def check_summary(output: bytes, truth: Truth) -> Answer:
    """`summary`: its line of row counts, as text."""
    line = ", ".join(f"{number:,} {table}" for table, number in truth.rows.items())
    if line not in output.decode("utf-8"):
        raise WrongAnswer(f"expected a line with {line!r}, found\n{output[:600].decode('utf-8', 'replace')}")
    return Answer(None, f"{sum(truth.rows.values()):,} rows")


def check_families(output: bytes, truth: Truth) -> Answer:
    """`kernels --by family --json`: all launches and all time, in fewer rows than there are names."""
    said = parse(output)
    counts = [row["count"] for row in said["rows"] if row["count"] is not None]
    want("launches", truth.launches, sum(counts))
    want("total_ns", truth.kernel_ns, said["total_ns"])
    want("total_ns of rows", truth.kernel_ns, sum(row["total_ns"] for row in said["rows"]))
    if len(said["rows"]) >= len(truth.tables["kernels"]):
        raise WrongAnswer(f"expected fewer families than kernels, found {len(said['rows'])}")
    return Answer(said["total_ns"], f"{len(said['rows'])} families")


def check_steps(output: bytes, truth: Truth) -> Answer:
    """`steps --json`: what is known of the steps of every phase: their number and their times, added up."""
    steps = parse(output)["steps"]
    phases: dict[str, Counter[str]] = defaultdict(Counter)
    for step in steps:
        phases[step["phase"]].update(steps=1, wall_ns=step["wall_ns"])
    _check_rows([{"phase": phase, **numbers} for phase, numbers in phases.items()], "phase", truth, "steps")
    return Answer(None, f"{len(steps):,} steps")


def check_findings(output: bytes, truth: Truth) -> Answer:
    """`findings --json`: each has evidence, a next step and a share that can be.

    What rules should find is the matter of `findings_truth`.
    """
    found = parse(output)["findings"]
    for each in found:
        if not each["evidence"] or not each["next"] or not 0 <= (each["share"] or 0) <= 1:
            raise WrongAnswer(f"{truth.rows}: expected evidence, a next step and a share of 0 to 1, found {each}")
    return Answer(None, f"{len(found):,} findings")


def check_groups(output: bytes, truth: Truth) -> Answer:
    """`groups --json`: all launches were looked at, and of every kernel in a group how many there are is right."""
    said = parse(output)
    want("launches", truth.rows["launches"], said["launches"])
    kernels = truth.tables["kernels"]
    for part in (part for group in said["groups"] for member in group["members"] for part in member["parts"]):
        want(f"launches of {part['kernel']}", round(kernels[part["kernel"]]["count"]), part["of"])
        if part["count"] > part["of"]:
            raise WrongAnswer(
                f"expected at most {part['of']:,} of {part['kernel']} in a group, found {part['count']:,}"
            )
    return Answer(None, f"{said['groups_found']} groups among {said['launches']:,} launches")


_VERDICTS = ("software change", "too few samples")  # the second of files with a few steps


def check_compare(output: bytes, truth: Truth, candidate: Truth, changed: str) -> Answer:
    """`compare --json`: the one kernel that was changed is named first, and contributions add up to the step.

    Where devices are known, so is the time of every kernel in both runs; not where steps are compared, since some
    are left out.
    """
    said = parse(output)
    first, added = said["contributions"][0], [row for row in said["contributions"] if row["added"]]
    if changed not in first["base_names"][0] or said["verdict"] not in _VERDICTS:
        raise WrongAnswer(f"expected a change of {changed}, found {said['verdict']} and first {first['name']}")
    change = said["candidate_step_ns"] - said["base_step_ns"]
    want("the step's change", sum(row["delta_ns"] for row in added) + said["unexplained_ns"], change)
    if "devices" not in truth.tables or any(side and side["used"] for side in said["steps"].values()):
        return Answer(None, f"{said['verdict']}: {first['name']}")
    for side, known in (("base", truth), ("candidate", candidate)):
        ours = [row for row in added if row["base_names"] and row["base_names"][0] in known.tables["kernels"]]
        want(f"{side} kernel_ns", known.kernel_ns, sum(row[f"{side}_ns"] for row in ours))
    return Answer(truth.kernel_ns, f"{said['verdict']}, one kernel named")


def check_compare_of_start(output: bytes, _: Truth) -> Answer:
    """`compare --json` of a file so small that it is too little for a verdict: any answer will do."""
    return Answer(None, f"{parse(output)['verdict']}: not gated")


def check_export(output: bytes, truth: Truth, made: Path) -> Answer:
    """`export --json`: the rows of every table, and a file of the size that it says. Of a Chrome trace, its kernels."""
    said = parse(output)
    (file,) = said["files"]
    want("left out", 0, len(said["left_out"]))
    for table, number in truth.rows.items():
        want(f"rows of {table}", number, file["rows"].get(table))
    want("bytes", made.stat().st_size, file["bytes"])
    if said["to"] == "chrome":
        want("kernels in the file", truth.launches, _count(made, b'"cat":"kernel"'))
    return Answer(None, f"{sum(truth.rows.values()):,} rows")


def check_report(output: bytes, truth: Truth, made: Path) -> Answer:
    """`report --json`: one whole page of at most 8 MB, which tells the kernel with the most time."""
    said = parse(output)
    want("bytes", made.stat().st_size, said["bytes"])
    page = made.read_bytes()
    kernels = truth.tables["kernels"]
    most = max(kernels, key=lambda name: kernels[name]["total_ns"]).partition("<")[0]  # what needs no escaping
    if len(page) > _PAGE_BYTES or not page.lstrip().startswith(b"<!doctype html>") or most.encode() not in page:
        raise WrongAnswer(f"expected a page of at most {_PAGE_BYTES:,} bytes with {most}, found {len(page):,} bytes")
    return Answer(None, f"{len(said['sections'])} sections, {len(page) / 1e6:.1f} MB")


def check_names(output: bytes, truth: Truth) -> Answer:
    """`names decode --json`: every name answered, and library and family of the labelled ones."""
    try:
        said = {row["name"]: row for row in json.loads(output)["names"]}
    except (ValueError, LookupError, TypeError) as error:
        raise WrongAnswer(f"expected JSON, found {output[:200]!r}") from error
    want("names", truth.events, len(said))
    for name, known in truth.tables["names"].items():
        found = {key: said[name][key] for key in known}
        if any(found[key] not in str(known[key]).split("|") for key in known):
            raise WrongAnswer(f"expected {known}, found {found} of {name}")
    return Answer(None, f"{len(said):,} names, {len(truth.tables['names']):,} of them labelled")


def check_help(output: bytes) -> Answer:
    """`inferometer --help` lists the commands measured here."""
    if missing := [name for name in (b"kernels", b"import", b"summary") if name not in output]:
        raise WrongAnswer(f"expected the commands in the help, found none of the name {missing[0].decode()}")
    return Answer(None, "lists the commands")


def read_peer(output: bytes, _: Truth | None = None) -> Answer:
    """A peer's last line, `{"kernel_ns": ...}`: it must be a sum, not the right one, so the truth isn't asked."""
    lines = output.splitlines()
    said = parse(lines[-1] if lines else b"")
    if not isinstance(said.get("kernel_ns"), int) or said["kernel_ns"] <= 0:
        raise WrongAnswer(f"expected a sum of kernel time above 0, found {said.get('kernel_ns')!r}")
    return Answer(said["kernel_ns"], "not gated")


def want(what: str, wanted: int, found: object) -> None:
    """Raises `WrongAnswer` unless the number is the one wanted."""
    if found != wanted:
        raise WrongAnswer(f"{what}: expected {wanted:,}, found {found!r}")


def parse(output: bytes) -> dict[str, Any]:
    """The JSON object that a command wrote. Raises `WrongAnswer` where it is none."""
    try:
        said = json.loads(output)
    except ValueError as error:
        raise WrongAnswer(f"expected JSON, found {output[:200]!r}") from error
    if not isinstance(said, dict):
        raise WrongAnswer(f"expected a JSON object, found {output[:200]!r}")
    return said


def _count(path: Path, words: bytes) -> int:
    """How often the words stand in a file, read by pieces."""
    found, rest = 0, b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            rest += piece
            found += rest.count(words)
            rest = rest[-len(words) + 1 :]
    return found


def _check_rows(rows: Sequence[Mapping[str, Any]], key: str, truth: Truth, table: str) -> None:
    """The same names as in the truth, once each, and the same numbers in the columns that it has."""
    wanted, found = truth.tables[table], {row[key]: row for row in rows}
    want(f"rows of {table}", len(wanted), len(rows))
    for name in sorted(wanted.keys() | found.keys()):
        known, row = wanted.get(name, {}), found.get(name, {})
        numbers = {column: row.get(column) for column in known}
        if not row or not known or not all(_equal(column, known[column], numbers[column]) for column in known):
            raise WrongAnswer(f"{table}: expected {dict(known) or 'no such row'}, found {numbers or row} of {name}")


def _equal(column: str, wanted: float, found: object) -> bool:
    """Whether a number is right: exactly, but for what only a float can hold."""
    if column in _ROUNDED:
        return isinstance(found, float | int) and math.isclose(found, wanted, rel_tol=_ROUNDING)
    return found == wanted
