"""Steps that one graph could hold, and that run as several, or as none.

Three kinds, each a finding of its own, by the device on which the host is late for the largest share:

- decode steps that launch kernel by kernel though other decode steps replay a graph: a batch size that wasn't captured.
  What that costs is their idle time beyond what replayed steps have (median);
- several graph launches in one step, and idle time between the first and the last because the host was late;
- several Torch-Compiled Regions in a forward pass, and idle time at the breaks between them.

Normal: prefills run eagerly, since their lengths differ; engines that replay piecewise have a graph a layer, and lose
nothing where the host keeps ahead. By the share of the window that is idle for it: `low` from 2 %, `medium` from 8 %,
`high` from 20 %. Eager decode steps are `low` from 5 % of the window, too, even where their kernels are so large that
nothing is lost yet: the host needs all of each step to launch it.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from inferometer.analyses.timeline.budget import IDLE, part_key
from inferometer.findings.evidence.compiled_regions import find_breaks
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.evidence.places import grave_place
from inferometer.findings.finding import Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.units import format_duration, format_share

_SCALE = Scale("graph_breaks", low=0.02, medium=0.08, high=0.20)
_EAGER_SCALE = Scale("graph_breaks.eager", low=0.05)
_PARTS = (part_key(IDLE, "host_late"), part_key(IDLE, "sync"))
_REPLAYED = 0.5  # of a step's launches
_FEW = 3  # replayed steps; fewer show no usual idle time
_SHOWN = 8  # batch sizes, or regions, to list
_CAPTURE = (
    "Capture graphs for these batch sizes, or pad up to a captured one: vLLM --cudagraph-capture-sizes, SGLang "
    "--cuda-graph-bs and --cuda-graph-max-bs."
)
_JOIN = (
    "Capture the whole step as one graph: what runs between must not wait for the host, nor allocate (vLLM: "
    "--compilation-config with cudagraph_mode FULL)."
)
_BREAKS = "TORCH_LOGS=graph_breaks names the line of each break; torch.compile(fullgraph=True) refuses them."


def _find(evidence: Evidence) -> Iterator[Finding]:
    launches = evidence.launches
    if launches is None:
        return
    late = launches.gaps.filter(pl.col("cause").is_in(["host_late", "sync"]), pl.col("called_ns").is_not_null())
    if launches.work["is_replay"].any():
        steps = _steps(launches)
        yield from _eager_steps(launches, steps)
        yield from _several_graphs(launches, steps, late)
    yield from _compiled(launches, late)


def _steps(launches: LaunchEvidence) -> pl.DataFrame:
    """The steps with what was launched in them: `launches`, `replayed`, `graphs`, and the calls of the first and last.

    Empty where steps have no times.
    """
    table = launches.steps
    if table is None or not len(launches.step_starts_ns):
        return pl.DataFrame()
    columns = ("phase", "tokens", "start_ns", "wall_ns", "window_ns", "gap_ns")
    timed = table.steps.select(columns).filter(pl.col("start_ns").is_not_null()).sort("start_ns")
    work = launches.work.filter(_is_of(launches)).select("called_ns", "start_ns", "is_replay")
    number = pl.Series("number", _step_numbers(launches, timed, work), dtype=pl.Int64)
    graph = pl.col("called_ns").filter("is_replay").drop_nulls()
    counted = (
        work.with_columns(number)
        .group_by("number")
        .agg(
            pl.len().cast(pl.Int64).alias("launches"),
            pl.col("is_replay").sum().cast(pl.Int64).alias("replayed"),
            graph.n_unique().cast(pl.Int64).alias("graphs"),
            graph.min().alias("first_ns"),
            graph.max().alias("last_ns"),
        )
    )
    return timed.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64)).join(counted, on="number")


def _is_of(launches: LaunchEvidence) -> pl.Expr:
    """Whether a row is of the rank whose steps are looked at."""
    return pl.col("rank").eq_missing(pl.lit(launches.steps.rank if launches.steps else None, dtype=pl.Int64))


def _step_numbers(launches: LaunchEvidence, timed: pl.DataFrame, work: pl.DataFrame) -> NDArray[np.int32]:
    """The step of each launch, by when it was called or by when it began: whichever lies more often within steps.

    Marks on the host hold calls, steps found in the kernels hold kernels.
    """
    ends = (timed["start_ns"] + timed["wall_ns"].fill_null(0)).to_numpy()
    began = work["start_ns"].to_numpy()
    by_time = []
    for times in (began, work["called_ns"].fill_null(work["start_ns"]).to_numpy()):
        number = launches.step_of(times)
        inside = (number >= 0) & (times < ends[number])
        by_time.append((int(inside.sum()), number))
    return max(by_time, key=lambda each: each[0])[1]


def _eager_steps(launches: LaunchEvidence, steps: pl.DataFrame) -> Iterator[Finding]:
    if steps.is_empty() or steps["gap_ns"].null_count():
        return
    decode = steps.filter(pl.col("phase") == "decode")
    eager = decode.filter(pl.col("replayed") == 0)
    replayed = decode.filter(pl.col("replayed") >= _REPLAYED * pl.col("launches"))
    if replayed.height < _FEW or eager.is_empty() or not launches.window_ns:
        return
    usual_ns = _median(replayed["gap_ns"])
    lost_ns = int(eager["gap_ns"].sum()) - round(usual_ns * eager.height)
    took_ns = int(eager["window_ns"].sum())
    share = took_ns / launches.window_ns
    severity = _SCALE.severity(lost_ns / launches.window_ns) or _EAGER_SCALE.severity(share)
    if severity is None:
        return
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{eager.height:,} of {decode.height:,} decode steps run eagerly though others replay a graph"
        + _batches(eager),
        evidence=(
            (
                f"They take {format_duration(took_ns)}, {format_duration(_median(eager['window_ns']))} each (median), "
                f"the {replayed.height:,} replayed ones {format_duration(_median(replayed['window_ns']))}."
            ),
            (
                f"The device idles {format_duration(_median(eager['gap_ns']))} in each of them (median), and "
                f"{format_duration(usual_ns)} in a replayed one: {_lost(lost_ns, launches.window_ns)}."
            ),
        ),
        size_ns=took_ns,
        share=share,
        next=_CAPTURE,
    )


def _lost(lost_ns: int, window_ns: int) -> str:
    if lost_ns <= 0:
        return "no more in all"
    return f"{format_duration(lost_ns)} more in all, {format_share(lost_ns / window_ns)} of the window"


def _batches(eager: pl.DataFrame) -> str:
    tokens = eager["tokens"].drop_nulls().unique().sort().to_list()
    if not tokens:
        return ""
    more = ", …" if len(tokens) > _SHOWN else ""
    return f": batch size {', '.join(map(str, tokens[:_SHOWN]))}{more}"


def _median(values: pl.Series) -> float:
    """The median; 0 without values."""
    median = values.median()
    return float(median) if isinstance(median, int | float) else 0.0


def _several_graphs(launches: LaunchEvidence, steps: pl.DataFrame, late: pl.DataFrame) -> Iterator[Finding]:
    if steps.is_empty():
        return
    some = steps.filter(pl.col("graphs") > 0)
    several = some.filter(pl.col("graphs") > 1).sort("first_ns")
    if not several.height or 2 * several.height < some.height:
        return
    own = late.filter(_is_of(launches))  # times of several ranks can't be compared
    called = own["called_ns"].to_numpy()
    place = np.searchsorted(several["first_ns"].to_numpy(), called, side="left") - 1
    between = (place >= 0) & (called <= several["last_ns"].to_numpy()[place])
    grave = grave_place(launches, own.filter(pl.Series(between)), "gap_ns", _SCALE)
    if grave is None:
        return
    where, idle_ns, severity = grave
    graphs, eager = _median(several["graphs"]), _median(several["launches"] - several["replayed"])
    share = idle_ns / where.window_ns
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"{where.name} waits {format_share(share)} of its time between the graphs of a step",
        evidence=(
            (
                f"{several.height:,} steps launch {graphs:g} graphs each (median), and {eager:g} kernels and copies "
                "one by one (median)."
            ),
            (
                f"Between a step's first and last graph the device idles {format_duration(idle_ns)} for the host"
                f"{launches.a_step(idle_ns)}."
            ),
        ),
        size_ns=idle_ns,
        share=share,
        next=_JOIN,
        parts=_PARTS,
    )


def _compiled(launches: LaunchEvidence, late: pl.DataFrame) -> Iterator[Finding]:
    found = find_breaks(launches, late)
    severity = _SCALE.severity(found.idle_ns / found.place.window_ns) if found else None
    if found is None or severity is None:
        return
    share = found.idle_ns / found.place.window_ns
    more = ", …" if len(found.names) > _SHOWN else ""
    yield Finding(
        rule=RULE.name,
        severity=severity,
        title=f"compiled code is broken into {found.graphs:g} graphs a forward pass: {found.place.name} waits "
        f"{format_share(share)} of its time at the breaks",
        evidence=(
            (
                f"In {found.forwards:,} forward passes, of {found.graphs:g} graphs each (median), run "
                f"{', '.join(found.names[:_SHOWN])}{more}."
            ),
            (
                f"The device idles {format_duration(found.idle_ns)} at the breaks{launches.a_step(found.idle_ns)}, in "
                f"{found.gaps:,} gaps: the host leaves compiled code, runs Python and enters again."
            ),
        ),
        size_ns=found.idle_ns,
        share=share,
        next=_BREAKS,
        parts=_PARTS,
    )


RULE = Rule("graph_breaks", _find, (_SCALE, _EAGER_SCALE))
