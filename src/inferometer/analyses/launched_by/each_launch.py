"""Every launch with what is known of who launched it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.chain_tree import ROOT, Kind
from inferometer.analyses.launched_by.remarks import site_remarks
from inferometer.analyses.launched_by.site_times import default_by
from inferometer.analyses.launched_by.sites import BY_COLUMN, By
from inferometer.analyses.result import Result
from inferometer.analyses.rows import compile_match, first_rows, matching
from inferometer.trace.losses import Losses

_COLUMNS = (
    *("start_ns", "dur_ns", "kind", "kernel", "device", "stream", "rank", "how", "op_chain", "module"),
    *("module_recorded", "frame", "user_frame", "span", "region", "kernel_file", "kernel_hash", "chain"),
)


@dataclass(frozen=True)
class EachLaunch(Result):
    """`frame`: a row per launch in order of time, with the columns of `Attribution.each` that users read.

    `chain` numbers `chains`: all that stood around the call, outermost first, as kind (`span`, `frame`, `module`, `op`,
    `graph`) and name.
    """

    view: ClassVar[str] = "each_launch"
    source: str
    frame: pl.DataFrame
    chains: dict[int, list[tuple[Kind, str]]]
    launches: int
    notable: tuple[str, ...]
    losses: Losses

    def to_polars(self) -> pl.DataFrame:
        """All columns."""
        return self.frame

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "launches": self.launches,
            "rows": self.frame.to_dicts(),
            "chains": {str(number): chain for number, chain in self.chains.items()},
            "losses": self.losses.as_dict(),
        }


def each_launch(
    found: Attribution, *, by: By | None = None, top: int | None = None, match: str | None = None
) -> EachLaunch:
    """Every launch, in order of time.

    Args:
        found: Of `attribute`.
        by: What `match` is searched in; as for `launch_sites`.
        top: Show so many launches.
        match: Show launches whose key this regular expression finds.

    Raises:
        InputError: `match` is no regular expression.
    """
    by = by or default_by(found)
    rows = found.each().rename({"node": "chain"}).select(_COLUMNS).with_columns(pl.col(pl.Categorical).cast(pl.String))
    shown = first_rows(matching(rows, BY_COLUMN[by], compile_match(match)), top)
    labels = {
        node: [found.tree.label_of(each)[:2] for each in found.tree.chain(node)] for node in shown["chain"].unique()
    }
    return EachLaunch(
        source=found.source,
        frame=shown.with_columns(pl.when(pl.col("chain") != ROOT).then("chain").alias("chain")),
        chains={node: labels[node] for node in sorted(labels) if node != ROOT},
        launches=rows.height,
        notable=tuple(site_remarks(found, by)),
        losses=found.losses,
    )
