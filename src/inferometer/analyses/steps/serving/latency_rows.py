"""The rows of a benchmark next to the steps: its latencies, the parts of them, and the trace's own lengths of steps."""

from typing import Any

import polars as pl

from inferometer.analyses.steps.serving.load import StepLatency
from inferometer.analyses.steps.serving.token_intervals import PARTS, Intervals, Prefills
from inferometer.formats.serving_results.serving import Latency, Serving

TOLERANCE = 0.05  # by which recorded steps may be slower than the benchmark's: contexts, noise and profilers differ
TOKEN, FIRST = "token", "first token"
ROWS = pl.Schema(
    {
        "about": pl.String(),  # TOKEN or FIRST
        "what": pl.String(),
        "source": pl.String(),  # `benchmark` or `log`, `trace`, or `rest`: the first less the steps
        **dict.fromkeys(("mean_ns", "mean_share", "median_ns", "median_share", "p95_ns", "p99_ns"), pl.Float64()),
    }
)
PART_NAMES = {
    "busy": "· GPU's work in the step",
    "host": "· rest of the step",
    "others": "· steps in between",
    "between": "· in no step",
    "outside": "· beyond the recorded steps",
}
FIRST_NAMES = {"steps": "· prefill steps", "rest": "· outside of them"}


def token_rows(found: StepLatency | None, intervals: Intervals, *, is_parted: bool) -> list[dict[str, Any]]:
    """Of the wait from step to step: the benchmark's, its parts, and the trace's own lengths."""
    rows = []
    if found is not None:
        a_step = "" if found.tokens == 1 else f", for {found.tokens:.3g} tokens"
        rows.append(_latency_row(TOKEN, f"{found.name}{a_step}", found.latency))
        if is_parted:
            rows += _parts(found.latency, intervals)
    if intervals.frame.height:
        rows.append(_trace_row(TOKEN, "step to step", intervals.frame["interval_ns"]))
    if len(intervals.walls_ns):
        rows.append(_trace_row(TOKEN, "step, wall", intervals.walls_ns))
    return rows


def _parts(latency: Latency, intervals: Intervals) -> list[dict[str, Any]]:
    """What passes from step to step, and the rest. A step that is known by its length alone has no more parts."""
    sides = {"mean": (latency.mean_ns, intervals.frame), "median": (latency.median_ns, intervals.middle)}
    if intervals.frame.is_empty():
        walls = _walls_alone(intervals)
        sides = {"mean": (latency.mean_ns, walls), "median": (latency.median_ns, walls)}
    parts: dict[str, dict[str, float | None]] = {}
    for statistic, (whole, frame) in sides.items():
        own_parts = {part: mean_of(frame[part]) if part in frame.columns else None for part in PARTS}
        if whole is None or frame.is_empty() or any(value is not None and value < 0 for value in own_parts.values()):
            continue  # steps overlap: what is whose can't be known
        inside = mean_of(frame["interval_ns"])
        outside = None if inside is None else whole - inside
        for part, value in {**own_parts, "outside": outside}.items():
            if value is not None:
                parts.setdefault(part, {})[f"{statistic}_ns"] = value
                parts[part][f"{statistic}_share"] = value / whole
    order = [part for part in (*PARTS, "outside") if part in parts]
    return [
        {"about": TOKEN, "what": PART_NAMES[part], "source": "rest" if part == "outside" else "trace", **parts[part]}
        for part in order
    ]


def _walls_alone(intervals: Intervals) -> pl.DataFrame:
    """As `Intervals.frame`, of steps whose lengths are all that is known. Empty where those say nothing."""
    walls, busy = intervals.walls_ns.rename("interval_ns"), intervals.busy_ns.rename("busy")
    if intervals.runs_ahead:
        return walls.clear().to_frame()
    frame = pl.DataFrame([walls, busy])
    return frame.with_columns((pl.col("interval_ns") - pl.col("busy").fill_null(0)).alias("host"))


def first_rows(serving: Serving, prefills: Prefills, needed: float | None) -> list[dict[str, Any]]:
    """Of the time to the first token; `needed`: prefill steps of a prompt, None where nothing is to be parted."""
    rows = [_latency_row(FIRST, "time to first token", serving.ttft)] if serving.ttft.is_known else []
    if rows and needed is not None and len(prefills.walls_ns):
        steps: dict[str, float | None] = {}
        rest: dict[str, float | None] = {}
        for statistic, whole, wall in (
            ("mean", serving.ttft.mean_ns, mean_of(prefills.walls_ns)),
            ("median", serving.ttft.median_ns, number_of(prefills.walls_ns.median())),
        ):
            if whole is None or wall is None or whole < (1 - TOLERANCE) * needed * wall:
                continue
            for part, value in ((steps, needed * wall), (rest, whole - needed * wall)):
                part |= {f"{statistic}_ns": value, f"{statistic}_share": value / whole}
        for name, source, part in (("steps", "trace", steps), ("rest", "rest", rest)):
            if part:
                rows.append({"about": FIRST, "what": FIRST_NAMES[name], "source": source, **part})
    if len(prefills.walls_ns):
        rows.append(_trace_row(FIRST, "prefill step, wall", prefills.walls_ns))
    return rows


def _latency_row(about: str, what: str, latency: Latency) -> dict[str, Any]:
    shares = {"mean_share": latency.mean_ns and 1.0, "median_share": latency.median_ns and 1.0}
    percentiles = {f"p{percent:g}_ns": latency.percentiles_ns.get(percent) for percent in (95.0, 99.0)}
    known = {"mean_ns": latency.mean_ns, "median_ns": latency.median_ns, **shares, **percentiles}
    return {"about": about, "what": what, "source": "benchmark", **known}


def _trace_row(about: str, what: str, values: pl.Series) -> dict[str, Any]:
    quantiles = {f"p{percent}_ns": values.quantile(percent / 100, "linear") for percent in (95, 99)}
    known = {"mean_ns": mean_of(values), "median_ns": number_of(values.median()), **quantiles}
    return {"about": about, "what": what, "source": "trace", **known}


def mean_of(values: pl.Series) -> float | None:
    """None where a value isn't known, or there is none."""
    return number_of(values.mean()) if len(values) and values.null_count() == 0 else None


def number_of(value: object) -> float | None:
    """None where it is something else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
