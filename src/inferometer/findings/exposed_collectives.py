"""Communication that no computation hides, by collective, and whether it waits for other ranks or moves data.

The time is that in which a kernel that communicates runs and none that computes does, on the device with the largest
share of its window in it. With several ranks, collectives that all of them leave together tell how much of their time
is waiting for the rank that came last; the rest is the exchange itself.

Normal: tensor parallelism exchanges each layer's results twice, and nothing computes meanwhile: in generated runs 7 to
10 % of the window with two ranks, 12 % with four, 17 % with eight. Fires from 20 % of the window: `low`; from 30 %
`medium`, from 45 % `high`.
"""

from collections.abc import Iterator

import polars as pl

from inferometer.analyses.work import at_place
from inferometer.findings.exposed_time import with_exposed
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.launch_evidence import LaunchEvidence
from inferometer.findings.places import Place, grave_place
from inferometer.findings.rule import Evidence, Rule
from inferometer.names import decode
from inferometer.units import format_duration, format_share

_SCALE = Scale(low=0.20, medium=0.30, high=0.45)
_SHOWN = 3
_SHOWN_SHARE = 0.1  # of the exposed time: less is not worth a sentence
_MOSTLY = 0.5  # of the time: then waiting, not the exchange, is what to look at


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    grave = grave_place(launches, launches.devices, "exposed_communication_ns", _SCALE)
    if grave is None:
        return
    place, exposed_ns, severity = grave
    collectives = _collectives(launches, place)
    first = collectives.row(0, named=True)
    share = exposed_ns / place.window_ns
    waited, waited_share = _waited(launches, place, int(collectives["dur_ns"].sum()))
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{place.name} only communicates for {format_share(share)} of its time, mostly in {_words(first)}",
        evidence=(
            f"Nothing computes during {format_duration(exposed_ns)} of communication{launches.a_step(exposed_ns)}.",
            *(
                f"{_words(row)} ({decode(row['kernel']).short_name}): {row['count']:,} times, each "
                f"{format_duration(row['dur_ns'] / row['count'])}, exposed for {format_duration(row['exposed_ns'])}."
                for row in collectives.head(_SHOWN).iter_rows(named=True)
                if row["exposed_ns"] >= _SHOWN_SHARE * exposed_ns
            ),
            waited,
        ),
        size_ns=exposed_ns,
        share=share,
        next=_next(waited_share),
    )


def _collectives(launches: LaunchEvidence, place: Place) -> pl.DataFrame:
    """One row a kernel that communicates, the most exposed first: `count`, `dur_ns`, `exposed_ns`."""
    rows = at_place(launches.device_work.launches, place.rank, place.device).filter(pl.col("sort") == "communication")
    sums = with_exposed(launches, place, rows, "compute").group_by("collective", "kernel")
    total = sums.agg(pl.len().cast(pl.Int64).alias("count"), pl.col("dur_ns", "exposed_ns").sum())
    return total.sort("exposed_ns", "kernel", descending=[True, False])


def _words(row: dict[str, str]) -> str:
    return row["collective"].replace("_", "-") if row["collective"] != "other" else "communication"


def _waited(launches: LaunchEvidence, place: Place, total_ns: int) -> tuple[str, float]:
    """What of the collectives' time is waiting for other ranks, in words and as a share."""
    rows = at_place(launches.ranks.frame, place.rank, place.device)
    if rows.is_empty() or not rows["compared"][0]:
        return (
            "Without other ranks to match, whether it waits for them or moves data isn't known.",
            0.0,
        )
    waited_ns, compared = int(rows["waited_ns"][0]), int(rows["compared"][0])
    share = waited_ns / total_ns if total_ns else 0.0
    return (
        (
            f"In {compared:,} collectives that could be matched it waited {format_duration(waited_ns)} for "
            f"the rank that came last: {format_share(share)} of its communication; the rest is the exchange itself."
        ),
        share,
    )


def _next(waited_share: float) -> str:
    if waited_share >= _MOSTLY:
        return "Find out why a rank comes late before the exchange is tuned: inferometer timeline FOLDER_OF_RANKS."
    return (
        "Check that small all-reduces take the one-shot path (vLLM, SGLang: no --disable-custom-all-reduce) and "
        "that the devices are connected by NVLink (nvidia-smi topo -m); else overlap them with computation."
    )


RULE = Rule("exposed_collectives", _find)
