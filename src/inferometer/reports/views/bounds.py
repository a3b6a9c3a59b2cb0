"""How far each kernel of a model is from its bounds, a table per phase."""

from collections.abc import Sequence

import polars as pl

from inferometer.analyses.model.bounds import KEYS, ModelBounds
from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.layout import Field, Section
from inferometer.reports.views.view import View


def _facts(found: ModelBounds) -> Sequence[tuple[str, str]]:
    where = found.device.name if found.device else "not known"
    where += " (bandwidth " + ", ".join(f"{each / 1e9:g}" for each in found.bandwidths) + " GB/s)"
    bits = {"weights": found.sizes.weight, "activations": found.sizes.activation, "KV": found.sizes.kv}
    sizes = ", ".join(f"{what} {size * 8:g} bits" for what, size in bits.items())
    return [("File", found.source), ("Model", f"{found.model.name} ({sizes})"), ("Device", where)]


def _sections(found: ModelBounds) -> Sequence[Section]:
    return [_section(found, phase) for phase in found.rows["phase"].unique(maintain_order=True)]


def _section(found: ModelBounds, phase: str | None) -> Section:
    fields, rows = _columns(found)
    rows = rows.filter(pl.col("phase").eq_missing(phase))
    unit = rows["unit"][0]
    rows = rows if found.top is None else rows.head(found.top)
    return Section(f"{(phase or 'steps').capitalize()}, each {unit}", fields, rows)


def _columns(found: ModelBounds) -> tuple[list[Field], pl.DataFrame]:
    """What tables show, and the rows that have it: those of `rows`, each with its bounds."""
    rows = found.rows
    fields = [
        Field("share", "Time", "share"),
        Field("measured_ns", "Measured", "ns"),
        Field("bytes", "Bytes", "bytes", spare=1),
        Field("flop_count", "FLOPs", "count", spare=4),
        Field("rate", "Bytes/s", "bytes", spare=2),
    ]
    for bandwidth in found.bandwidths:
        of = found.bounds.filter(pl.col("bandwidth_bytes_per_s") == bandwidth)
        words = f"{bandwidth / 1e9:g} GB/s"
        columns = {"bound_ns": f"bound {words}", "sol_fraction": f"S {words}"}
        of = of.select(*KEYS, *columns).rename(columns)
        rows = rows.join(of, on=KEYS, nulls_equal=True, maintain_order="left")
        fields += [
            Field(columns["bound_ns"], f"Bound @{words}", "ns", spare=5),
            Field(columns["sol_fraction"], f"S @{words}", "share"),
        ]
    rows = rows.with_columns(
        pl.col("moved_bytes").round().cast(pl.Int64).alias("bytes"),
        pl.col("flops").round().cast(pl.Int64).alias("flop_count"),
        pl.col("bytes_per_s").round().cast(pl.Int64).alias("rate"),
    )
    return [*fields, Field("kernel", "Kernel", "kernel", leads=True)], rows


def _remarks(found: ModelBounds) -> Sequence[str]:
    above = found.bounds.filter(pl.col("sol_fraction") > 1)["kernel"].unique(maintain_order=True)
    words = ["S above 1 means that sizes, dtype or device aren't as assumed: " + ", ".join(above) + "."]
    return [*found.notes, *(words if len(above) else [])]


def _table(found: ModelBounds) -> Section:
    fields, rows = _columns(found)
    return Section("Kernels", [Field("phase", "Phase", "text"), Field("unit", "Each", "text"), *fields], rows)


VIEW = View(
    schema=Schema("model_bounds", 1),
    facts=_facts,
    sections=_sections,
    remarks=_remarks,
    remarks_in_json=True,
    table=_table,
)
