"""What one trace gives to a fleet: results of the analyses that a single trace has, each made once.

The trace is opened once, with all tables: the findings need nearly all of them. Left out: single launches, steps and
log lines, which would make a digest as large as the trace.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Final

import polars as pl

from inferometer.analyses.launched_by.attribution import attribute
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.analyses.steps.table import StepTable, step_table
from inferometer.analyses.tables.kernels import KernelTable, kernel_table
from inferometer.errors import InputError
from inferometer.findings.engine import find_findings
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.fleet.about import describe_trace
from inferometer.fleet.tables import ABOUT, BUDGET, CLASSES, DIGEST, FINDINGS, KERNELS, LOSSES, OPS, PHASES, TRACE
from inferometer.names import decode
from inferometer.trace.tables import Table
from inferometer.trace.trace import Trace

if TYPE_CHECKING:
    from inferometer.findings.engine import Findings

Digest = Mapping[str, pl.DataFrame]
"""By name, the tables of `tables.DIGEST`, each exactly as declared."""

MOST_LAUNCHES: Final = 2_000_000
"""Of a trace with more, ops aren't modelled: 3 GB would be needed for it."""
_MOST_OPS: Final = 2_000
_LONGEST_ARGUMENT: Final = 2_000  # characters: a list of 10,000 tensors adds nothing
_ARGUMENTS: Final = ("input_dims", "input_dtypes", "input_strides", "scalars", "operator_args")


def make_digest(trace: Trace) -> Digest:
    """The digest of a trace that was opened with all tables.

    Raises:
        InputError: One of its tables is damaged, or was not read.
    """
    count = trace.launches.select(pl.len()).collect().item()
    evidence = LaunchEvidence(trace) if count else None
    found = find_findings(trace, launches=evidence)
    kernels = kernel_table(trace)
    steps = _recorded_steps(trace) if evidence is None else evidence.steps
    modelled = None if evidence is None or count > MOST_LAUNCHES else _modelled(evidence, trace)
    return {
        ABOUT.name: describe_trace(trace, kernels, modelled, steps, count),
        KERNELS.name: _kernels(kernels),
        OPS.name: OPS.empty.collect() if modelled is None else _ops(modelled),
        PHASES.name: _fitted(PHASES, None if steps is None else steps.phases, "phase"),
        CLASSES.name: _fitted(CLASSES, None if steps is None else steps.classes, "phase", "class"),
        BUDGET.name: _fitted(BUDGET, found.budget, "rank", "device", "sort", "name"),
        FINDINGS.name: _findings(found),
        LOSSES.name: _losses(trace),
    }


def encode_digest(digest: Digest) -> bytes:
    """As Parquet with one row, which has a list for each table; the same digest gives the same bytes."""
    row = pl.DataFrame({name: [frame.to_struct(name)] for name, frame in digest.items()}, schema=_PACKED)
    out = BytesIO()
    row.write_parquet(out, compression="zstd", compression_level=3, statistics=False)
    return out.getvalue()


def unpack(packed: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """The rows of a table of many digests, as `encode_digest` packs them, after the column `trace` of `packed`."""
    rows = packed.select(TRACE, pl.col(table.name)).filter(pl.col(table.name).list.len() > 0)
    return rows.explode(table.name).unnest(table.name).select(TRACE, *table.schema)


_PACKED: Final = {name: pl.List(pl.Struct(dict(table.schema))) for name, table in DIGEST.items()}


def _modelled(evidence: LaunchEvidence, trace: Trace) -> Roofline:
    return evidence.roofline or roofline(attribute(trace, with_op_calls=True), trace)


def _recorded_steps(trace: Trace) -> StepTable | None:
    """Steps of a source without launches."""
    try:
        return step_table(trace)
    except InputError:
        return None


def _kernels(table: KernelTable) -> pl.DataFrame:
    names = [decode(name) for name in table.frame["kernel"]]
    decoded = [
        pl.Series("short", [name.short_name for name in names], dtype=pl.String),
        pl.Series("family", [name.family for name in names], dtype=pl.String),
        pl.Series("library", [name.library for name in names], dtype=pl.String),
    ]
    return _fitted(KERNELS, table.frame.with_columns(decoded))


def _ops(modelled: Roofline) -> pl.DataFrame:
    """The rows with the most time, and the others as one."""
    rows = modelled.frame.sort("total_ns", "number", "kernel", descending=[True, False, False], nulls_last=True)
    rows = rows.with_columns(pl.coalesce("calls", "cut_calls").alias("calls"))
    kept, others = rows.head(_MOST_OPS), rows.slice(_MOST_OPS)
    spelled = [pl.Series(name, list(map(_spelled, kept[name])), dtype=pl.String) for name in _ARGUMENTS]
    fitted = _fitted(OPS, kept.with_columns(spelled))
    if others.is_empty():
        return fitted
    sums = others.select(pl.col("launches", "total_ns").sum(), pl.lit("too many ops").alias("reason"))
    return pl.concat([fitted, _fitted(OPS, sums)])


def _findings(found: "Findings") -> pl.DataFrame:
    return _fitted(FINDINGS, found.to_polars())


def _losses(trace: Trace) -> pl.DataFrame:
    rows = [{name: getattr(loss, name) for name in LOSSES.schema} for loss in trace.losses]
    return _fitted(LOSSES, pl.DataFrame(rows, schema=LOSSES.schema, orient="row"), "name", "category")


def _fitted(table: Table, rows: pl.DataFrame | None, *order: str) -> pl.DataFrame:
    """`rows` with exactly the declared columns, in order; none: the empty table."""
    if rows is None:
        return table.empty.collect()
    typed = table.complete(rows.lazy()).with_columns(pl.col(name).cast(dtype) for name, dtype in table.schema.items())
    fitted = typed.collect()
    return fitted.sort(order, nulls_last=True, maintain_order=True) if order else fitted


def _spelled(text: str | None) -> str | None:
    """JSON text with the spaces that PyTorch writes, so that traces that another tool wrote anew have the same shapes.

    Of a long one the beginning, and a hash of the whole, since others may begin alike.
    """
    if text is None:
        return None
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), ensure_ascii=False)
    if len(text) <= _LONGEST_ARGUMENT:
        return text
    return f"{text[:_LONGEST_ARGUMENT]}… {sha256(text.encode(errors='replace')).hexdigest()[:12]}"
