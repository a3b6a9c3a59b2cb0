"""Device time by who launched it: op chain, module, Python frame, the user's own frame, named range, compiled region.

Every launch is in exactly one row or unattributed, with the reason: attributed and unattributed time add up to all.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.remarks import has_any, site_remarks
from inferometer.analyses.launched_by.sites import BY_COLUMN, By
from inferometer.analyses.result import Result
from inferometer.analyses.rows import compile_match, matching, ordered
from inferometer.trace.losses import Losses

Layers = Literal["apart", "pooled"]
REASONS = {
    "launch_before_window": "queued before the profiling window: the call is not in the file",
    "call_missing": "the call is not in the file, though earlier work's is",
    "no_call": "no host call is known",
    "graph_replay": "replayed with a graph: one call launched many kernels",
    "outside": "nothing of the kind stands around the call",
}
"""Why a launch is not attributed. All other words of `by_how` say how one was."""

_COLUMNS = ("share", "total_ns", "count", "mean_ns", "kernel_count", "key")


@dataclass(frozen=True)
class LaunchSites(Result):
    """Rows of `frame` are keys, the most time first.

    `key`, `count` of launches, `total_ns`, `share` of all, `mean_ns`, `kernel_count`, and `kernels`: name, count and
    time of each, the longest first; of compiled kernels the file.

    `by_how`: ns by how launches were attributed, or why not (`REASONS`); they add up to `total_ns`.
    """

    view: ClassVar[str] = "launch_sites"
    source: str
    by: By
    layers: Layers
    frame: pl.DataFrame
    keys: int
    launches: int
    total_ns: int
    attributed_ns: int
    by_how: dict[str, int]
    notable: tuple[str, ...]
    losses: Losses

    @property
    def unattributed_ns(self) -> int:
        """Time of launches without a key."""
        return self.total_ns - self.attributed_ns

    def to_polars(self) -> pl.DataFrame:
        """One row per key."""
        return self.frame.select(_COLUMNS)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "by": self.by,
            "layers": self.layers,
            "launches": self.launches,
            "total_ns": self.total_ns,
            "attributed_ns": self.attributed_ns,
            "unattributed_ns": self.unattributed_ns,
            "by_how": self.by_how,
            "rows": self.frame.select("key", "count", "total_ns", "share", "mean_ns", "kernels").to_dicts(),
            "losses": self.losses.as_dict(),
        }


def launch_sites(
    found: Attribution,
    *,
    by: By | None = None,
    layers: Layers = "apart",
    top: int | None = None,
    match: str | None = None,
) -> LaunchSites:
    """Device time by what launched it.

    Args:
        found: Of `attribute`.
        by: What keys are: the chain of ops, the module's path, the innermost frame, the innermost of the user's, the
            innermost named range, the compiled region. By default ops, or ranges where there are ranges and no ops.
        layers: Modules of all layers in one row (`model.layers.*.mlp`), or each in its own. Pooled, ranges that differ
            in numbers only are one row, too.
        top: Show so many rows.
        match: Show rows whose key this regular expression finds. Shares are of all launches.

    Raises:
        InputError: `match` is no regular expression.
    """
    pattern = compile_match(match)
    by = by or default_by(found)
    keys = found.sites.select("node", _pooled(by, layers).alias("key"), "kernel_file")
    work = found.launches.select("kernel", "dur_ns", "node", "how").join(keys, on="node", how="left")
    total_ns = int(work["dur_ns"].sum())
    rows = _rows(work.filter(pl.col("key").is_not_null()), total_ns)
    return LaunchSites(
        source=found.source,
        by=by,
        layers=layers,
        frame=ordered(matching(rows, "key", pattern), "total_ns", "count", "key", top=top),
        keys=rows.height,
        launches=work.height,
        total_ns=total_ns,
        attributed_ns=int(rows["total_ns"].sum()),
        by_how=time_by_how(work),
        notable=tuple(site_remarks(found, by)),
        losses=found.losses,
    )


def _pooled(by: By, layers: Layers) -> pl.Expr:
    if layers == "pooled" and by == "module":
        return pl.col("module_pooled")
    column = pl.col(BY_COLUMN[by])
    return column.str.replace_all("[0-9]+", "N") if layers == "pooled" and by == "span" else column


def default_by(found: Attribution) -> By:
    """What to show where that is unknown: ops, or ranges where there are ranges and no ops."""
    return "span" if has_any(found, "span") and not has_any(found, "op") else "op"


def time_by_how(work: pl.DataFrame) -> dict[str, int]:
    """Ns by how launches were attributed, or why not; the most first. `work`: `key`, `how`, `dur_ns` of each."""
    sums: Counter[str] = Counter()
    for how, is_known, ns in work.group_by("how", pl.col("key").is_not_null()).agg(pl.col("dur_ns").sum()).iter_rows():
        sums[how if is_known else why_unknown(how)] += ns
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def why_unknown(how: str) -> str:
    """The one of `REASONS` for which a launch attributed so has no key."""
    if how in REASONS:
        return how
    return "graph_replay" if how == "graph_launch" else "outside"


def _rows(work: pl.DataFrame, total_ns: int) -> pl.DataFrame:
    sums = (pl.len().cast(pl.Int64).alias("count"), pl.col("dur_ns").sum().alias("total_ns"))
    kernels = (
        work.group_by("key", "kernel", "kernel_file", maintain_order=True)
        .agg(*sums)
        .with_columns(pl.col("kernel").cast(pl.String))
        .sort("total_ns", "count", "kernel", descending=[True, True, False])
    )
    share = pl.col("total_ns") / total_ns if total_ns else pl.lit(None, dtype=pl.Float64)
    return (
        kernels.group_by("key", maintain_order=True)
        .agg(
            pl.col("count").sum(),
            pl.col("total_ns").sum(),
            pl.col("kernel").n_unique().cast(pl.Int64).alias("kernel_count"),
            pl.struct("kernel", "count", "total_ns", "kernel_file").alias("kernels"),
        )
        .with_columns(share.alias("share"), (pl.col("total_ns") / pl.col("count")).alias("mean_ns"))
    )
