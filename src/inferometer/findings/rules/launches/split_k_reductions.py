"""Matrix products that split their sum (split-K), and spend notable time on adding up the parts in a second kernel.

A product with few rows fills a GPU only when its sum is split, so such reductions are usual in decode steps: in
healthy generated runs they take 3 to 7 % of the GPU time of the steps that have them, the more the smaller the model
and the larger the batch. Shares are of these steps, where steps are known, so that prefills don't hide what happens
in decode. Up to 8 % there is nothing to say; then it is `info`; from 12 % `low`, from 20 % `medium`, from 40 %
`high`. What could be saved isn't known: without the split the product itself may take longer.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from inferometer.findings.evidence.kernel_rows import PRODUCTS, Ints, KernelRows, Origins
from inferometer.findings.finding import Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.names import KernelName
from inferometer.units import format_duration, format_share

if TYPE_CHECKING:
    from inferometer.findings.evidence.launch_evidence import LaunchEvidence

_SCALE = Scale("split_k_reductions", low=0.12, medium=0.20, high=0.40)
_WORTH_SAYING = 0.08
_SHOWN = 3


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None or not launches.total_ns:
        return
    rows = launches.rows
    reduces = np.flatnonzero(rows.each(_is_reduction))
    if not len(reduces):
        return
    size_ns = int(rows.dur_ns[reduces].sum())
    share = size_ns / max(1, _around_ns(launches, reduces))
    if share < _WORTH_SAYING:
        return
    severity: Severity = _SCALE.severity(share) or "info"
    where = launches.origins
    by_place = _by_place(rows, where, reduces)
    products_ns = int(by_place["product_ns"].sum())
    of_products = f", the products before them {format_duration(products_ns)}" if products_ns else ""
    of = "the GPU time of their steps" if len(launches.step_starts_ns) else "the GPU time"
    place = where.describe(by_place["place"][0])
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"split-K reductions take {format_share(share)} of {of}",
        evidence=(
            (f"{len(reduces):,} reductions take {format_duration(size_ns)}{launches.a_step(size_ns)}{of_products}."),
            *(_sentence(rows, where, row) for row in by_place.head(_SHOWN).iter_rows(named=True)),
        ),
        size_ns=size_ns,
        share=share,
        next=f"Tune the products for their shape{place}: fewer parts, or a kernel that adds up in place (stream-K).",
    )


def _around_ns(launches: "LaunchEvidence", reduces: Ints) -> int:
    """GPU time of the steps that have reductions; of all launches where steps aren't known."""
    if not len(launches.step_starts_ns):
        return launches.total_ns
    step = launches.steps_of_work + 1
    has_one = np.bincount(launches.steps_of_rows[reduces] + 1, minlength=int(step.max()) + 1) > 0
    return int(launches.work["dur_ns"].to_numpy()[has_one[step]].sum())


def _is_reduction(name: str, known: KernelName) -> bool:
    words = known.short_name.lower().replace("-", "").replace("_", "").replace(" ", "")
    return (known.family == "gemm_epilogue" and "splitk" in words) or "PostGSU" in name


def _by_place(rows: KernelRows, where: Origins, reduces: Ints) -> pl.DataFrame:
    """One row per place and product: `count`, `total_ns`, `product_ns`; `product` is null where none comes before."""
    before = np.maximum(reduces - 1, 0)
    has_product = rows.before(rows.of_family(*PRODUCTS))[reduces]
    frame = pl.DataFrame(
        {
            "place": where.codes(rows.node[reduces]),
            "product": np.where(has_product, rows.kernel[before], -1),
            "total_ns": rows.dur_ns[reduces],
            "product_ns": np.where(has_product, rows.dur_ns[before], 0),
        }
    )
    sums = frame.group_by("place", "product").agg(
        pl.len().cast(pl.Int64).alias("count"), pl.col("total_ns", "product_ns").sum()
    )
    return sums.sort("total_ns", "place", "product", descending=[True, False, False])


def _sentence(rows: KernelRows, where: Origins, row: dict[str, int]) -> str:
    product = "" if row["product"] < 0 else f" after {rows.known[row['product']].short_name}"
    of_products = format_share(row["total_ns"] / row["product_ns"]) if row["product_ns"] else ""
    against = f", {of_products} of the products' time" if of_products else ""
    place, took = where.describe(row["place"]), format_duration(row["total_ns"])
    return f"{row['count']:,} reductions{product}{place}: {took}{against}."


RULE = Rule("split_k_reductions", _find, (_SCALE,))
