"""The frames of a profile: kernels, steps and phases."""

from collections.abc import Sequence

import polars as pl

from inferometer.analyses.intervals import busy_sums
from inferometer.analyses.model.measured_rows import LEAST_BEST_BYTES
from inferometer.engines.webgpu.profile.profiled_run import decode_passes, prefill_tokens, step_phase
from inferometer.engines.webgpu.run.executor import Submission

_KERNEL_COLUMNS = (
    *("phase", "label", "op", "role", "layers", "kernel", "calls", "untimed", "total_ns", "min_ns", "median_ns"),
    *("max_ns", "share", "modelled_bytes", "modelled_flops", "gb_per_s", "gflop_per_s", "bound_ns", "sol_fraction"),
    *("best_fraction", "is_launch_bound", "grid", "workgroup"),
)


def kernel_rows(times: pl.DataFrame, by: str, bytes_per_s: float | None, least_ns: float | None) -> pl.DataFrame:
    """A row per phase and `class` or `label`, the most time first within a phase; `Profile` says what the columns are.

    Args:
        times: Of `dispatch_times`.
        by: Its column that makes a row.
        bytes_per_s: Of the device's memory, where it is known.
        least_ns: A kernel with a shorter median is bound by its launch; None: unknown.
    """
    is_timed = pl.col("dur_ns").is_not_null()
    dur = pl.col("dur_ns")
    rows = times.group_by("phase", pl.col(by).alias("label"), maintain_order=True).agg(
        pl.col("op").first(),
        pl.col("role").first(),
        pl.col("layer").drop_nulls().n_unique().cast(pl.Int64).alias("layers"),
        pl.col("kernel").unique(maintain_order=True).str.join(", "),
        dur.count().cast(pl.Int64).alias("calls"),
        dur.null_count().cast(pl.Int64).alias("untimed"),
        dur.sum().alias("total_ns"),
        dur.min().alias("min_ns"),
        dur.median().alias("median_ns"),
        dur.max().alias("max_ns"),
        pl.col("bytes").filter(is_timed).sum().alias("modelled_bytes"),
        pl.col("flops").filter(is_timed).sum().alias("modelled_flops"),
        _shape("grid"),
        _shape("workgroup"),
    )
    return (
        rows.with_columns(
            _over(pl.col("total_ns"), pl.col("total_ns").sum()).alias("share"),
            _over(pl.col("modelled_bytes"), pl.col("total_ns")).alias("gb_per_s"),
            _over(pl.col("modelled_flops").replace(0, None), pl.col("total_ns")).alias("gflop_per_s"),
            (pl.col("modelled_bytes") / pl.lit(bytes_per_s, dtype=pl.Float64) * 1e9).alias("bound_ns"),
            (pl.col("median_ns") <= pl.lit(least_ns, dtype=pl.Float64)).alias("is_launch_bound"),
        )
        .with_columns(
            _over(pl.col("bound_ns"), pl.col("total_ns")).alias("sol_fraction"),
            (pl.col("gb_per_s") / _best()).alias("best_fraction"),
        )
        .sort(
            pl.col("total_ns").sum().over("phase"), "phase", "total_ns", "label", descending=[True, False, True, False]
        )
        .select(_KERNEL_COLUMNS)
    )


def step_rows(times: pl.DataFrame, submissions: Sequence[Submission]) -> pl.DataFrame:
    """A row per submit: `phase`, `tokens`, `context` before it, host times, the device's, null where none are timed.

    `tokens` are those of the prompt that it read and the decode steps that it ran; `token_ns` its wall time over them.
    `read_tokens` are those of the prompt alone.
    """
    timed = times.filter(pl.col("dur_ns").is_not_null())
    begin, end = (timed[name].to_numpy() for name in ("begin_ns", "end_ns"))
    busy = busy_sums(timed["step"].to_numpy(), begin, end, len(submissions))
    device = timed.group_by("step").agg(
        pl.col("dur_ns").sum().alias("summed_ns"),
        (pl.col("end_ns").max() - pl.col("begin_ns").min()).alias("span_ns"),
        pl.len().cast(pl.Int64).alias("timed"),
    )
    counts = times.group_by("step").agg(pl.len().cast(pl.Int64).alias("dispatches"))
    host = pl.DataFrame(
        [_host_row(number, one) for number, one in enumerate(submissions)], schema=_HOST, orient="row"
    ).with_columns(pl.Series("busy_ns", busy, dtype=pl.Int64))
    rows = host.join(counts, on="step", how="left", maintain_order="left")
    rows = rows.join(device, on="step", how="left", maintain_order="left")
    return rows.with_columns(
        pl.when(pl.col("timed").is_not_null()).then("busy_ns").alias("busy_ns"),
        (pl.col("dispatches") - pl.col("timed").fill_null(0)).alias("untimed"),
        _over(pl.col("wall_ns"), pl.col("tokens")).alias("token_ns"),
    ).drop("timed")


def phase_rows(steps: pl.DataFrame) -> pl.DataFrame:
    """A row per phase: its steps' times summed, and the median and 95th percentile of a token's wall time.

    A token's is its step's wall time over the step's tokens, so these weigh steps by their tokens.
    """
    sums = ["tokens", "wall_ns", "record_ns", "submit_ns", "wait_ns", "read_ns", "dispatches", "untimed"]
    device = [
        pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)
        for name in ("busy_ns", "summed_ns", "span_ns")
    ]
    each = pl.col("token_ns").repeat_by("tokens").explode()
    rows = steps.group_by("phase", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col(sums).sum(),
        *device,
        each.quantile(0.5, "linear").alias("token_p50_ns"),
        each.quantile(0.95, "linear").alias("token_p95_ns"),
    )
    return rows.with_columns(
        _over(pl.col("busy_ns"), pl.col("wall_ns")).alias("busy_share"),
        _over(pl.col("record_ns"), pl.col("dispatches")).alias("record_per_dispatch_ns"),
    )


_HOST = {
    "step": pl.Int64,
    "phase": pl.String,
    **dict.fromkeys(("tokens", "read_tokens", "decode_tokens", "context", "start_ns", "wall_ns"), pl.Int64),
    **dict.fromkeys(("record_ns", "submit_ns", "wait_ns", "read_ns"), pl.Int64),
}


def _host_row(number: int, one: Submission) -> tuple[int | str | None, ...]:
    read, decoded = prefill_tokens(one), decode_passes(one)
    context = one.passes[0].position if one.passes else None
    place = (number, step_phase(one), read + decoded, read, decoded, context, one.start_ns, one.wall_ns)
    return (*place, one.record_ns, one.submit_ns, one.wait_ns, one.read_ns)


def _over(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return pl.when(whole > 0).then(part / whole)


def _best() -> pl.Expr:
    """The best bytes per second: of kernels that move enough a call, else of all."""
    per_call = _over(pl.col("modelled_bytes"), pl.col("calls"))
    large = pl.col("gb_per_s").filter(per_call >= LEAST_BEST_BYTES).max()
    best = pl.coalesce(large, pl.col("gb_per_s").max())
    return pl.when(best > 0).then(best)


def _shape(name: str) -> pl.Expr:
    """The sizes of a grid or workgroup in words: `64x1x1`; of several the smallest and the largest."""
    sizes = pl.col(name).drop_nulls()
    texts = sizes.arr.to_list().cast(pl.List(pl.String)).list.join("x")
    volume = sizes.arr.get(0) * sizes.arr.get(1) * sizes.arr.get(2)
    least, most = texts.sort_by(volume).first(), texts.sort_by(volume).last()
    return pl.when(least == most).then(least).otherwise(pl.concat_str(least, pl.lit(" to "), most)).alias(name)
