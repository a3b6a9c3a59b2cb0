"""A run as a trace store: what `summary`, `kernels`, `steps`, `launches`, `findings`, `compare` and others read.

`launches` has every dispatch that was timed, under its label; `totals` the same summed by step and label, exactly;
`steps` a row per submit; `calls` the `queue.submit` that handed it over; `spans` what the host did around it (record,
submit, wait, read back) and the parts of loading; `selections` and `log` what the engine says. Times count from the
beginning of loading. Dispatches without timestamps have no row in `launches`; they are counted in the losses.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import polars as pl

from inferometer.engines.webgpu.profile.dispatch_times import dispatch_times
from inferometer.engines.webgpu.profile.engine_log import render_engine_log
from inferometer.engines.webgpu.profile.metrics import run_metrics
from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun, step_phase
from inferometer.engines.webgpu.profile.tables import step_rows
from inferometer.formats.webgpu_log.lines import Splitter
from inferometer.formats.webgpu_log.messages import read_message
from inferometer.record.journal.journal import FORMAT
from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.facts import Device, Facts, NamedId
from inferometer.trace.store_writer import StoreFolder, write_manifest

DEVICE = "webgpu:0"
DOMAIN = "webgpu"
ANCHOR = "queue submit"


def save_profile(path: Path, run: ProfiledRun, *, clock_base_ns: int | None = None, force: bool = False) -> Path:
    """Write the run as the store `path` (`NAME.ifm`).

    Args:
        path: Its folder.
        run: With or without timestamps; without, it has steps and no launches.
        clock_base_ns: Ns from 1970 to the zero of the submissions' clock, where that is known.
        force: Replace a store that is there.

    Raises:
        InputError: No store can be made there.
        InferometerError: A submission has times of other than all its dispatches.
    """
    times = dispatch_times(run.program, run.submissions)
    with StoreFolder(path, force=force) as folder:
        builder = TraceBuilder(folder=folder)
        _add_launches(builder, times, run)
        _add_totals(builder, times)
        _add_steps(builder, step_rows(times, run.submissions), run)
        _add_host(builder, run)
        _add_words(builder, run)
        trace = builder.finish(_facts(path, run, clock_base_ns))
        write_manifest(folder, trace.facts, trace.losses, builder.parts())
    return path


def _add_launches(builder: TraceBuilder, times: pl.DataFrame, run: ProfiledRun) -> None:
    timed = times.filter(pl.col("dur_ns").is_not_null())
    launched = times.filter(pl.col("step").is_in(timed["step"].unique().to_list()))
    builder.losses.see("launches", launched.height)
    untimed = launched.height - timed.height
    first = launched.filter(pl.col("dur_ns").is_null()).select("step", "dispatch", "label").head(1).rows()
    example = f"step {first[0][0]}, dispatch {first[0][1]}: {first[0][2]}" if first else None
    builder.losses.count("without_timestamp", untimed, category="launches", example=example)
    columns: dict[str, Values] = {
        "kind": "kernel",
        "kernel": timed["label"],
        "device": DEVICE,
        "stream": 0,
        "process": 0,
        "start_ns": timed["begin_ns"] - run.zero_ns,
        "dur_ns": timed["dur_ns"],
        "correlation_id": timed["step"],
        "grid": timed["grid"],
        "block": timed["workgroup"],
    }
    builder.add("launches", timed.height, columns)


def _add_totals(builder: TraceBuilder, times: pl.DataFrame) -> None:
    dur = pl.col("dur_ns")
    sums = (
        times.filter(dur.is_not_null())
        .group_by("step", "label", maintain_order=True)
        .agg(
            pl.col("layer").first().cast(pl.String),
            pl.col("role").first(),
            pl.len().cast(pl.Int64).alias("count"),
            dur.sum().alias("total_ns"),
            dur.mean().alias("mean_ns"),
            dur.median().alias("median_ns"),
            dur.min().alias("min_ns"),
            dur.max().alias("max_ns"),
            dur.std().alias("stddev_ns"),
        )
        .rename({"label": "kernel"})
    )
    builder.losses.see("totals", sums.height)
    columns: dict[str, Values] = {name: sums[name] for name in sums.columns}
    builder.add("totals", sums.height, {"section": 0, "device": DEVICE, **columns})


def _add_steps(builder: TraceBuilder, steps: pl.DataFrame, run: ProfiledRun) -> None:
    builder.losses.see("steps", steps.height)
    some = {"prefill_tokens": "read_tokens", "decode_tokens": "decode_tokens"}
    known = {name: steps.select(pl.col(of).replace(0, None))[of] for name, of in some.items()}
    columns: dict[str, Values] = {
        "step": steps["step"],
        "phase": steps["phase"],
        "start_ns": steps["start_ns"] - run.zero_ns,
        "dur_ns": steps["wall_ns"],
        "gpu_busy_ns": steps["busy_ns"],
        "batch": 1,
        **known,
        "context_len": steps["context"],
        "anchor": ANCHOR,
        "source": "recorded",
    }
    builder.add("steps", steps.height, columns)


def _add_host(builder: TraceBuilder, run: ProfiledRun) -> None:
    """Spans of loading and of each submit, and the call of each."""
    spans = [(f"load {one.name}", one.start_ns, one.dur_ns) for one in run.load]
    spans += list(_spans(run))
    builder.losses.see("spans", len(spans))
    names, starts, durations = zip(*spans, strict=True) if spans else ((), (), ())
    place: dict[str, Values] = {"process": 0, "thread": 0}
    shifted = [start - run.zero_ns for start in starts]
    named: dict[str, Values] = {"span": names, "start_ns": shifted, "dur_ns": durations, "domain": DOMAIN}
    builder.add("spans", len(spans), named | place)
    calls: dict[str, Values] = {
        "api": "queue.submit",
        "start_ns": [one.start_ns + one.record_ns - run.zero_ns for one in run.submissions],
        "dur_ns": [one.submit_ns for one in run.submissions],
        "correlation_id": list(range(len(run.submissions))),
    }
    builder.losses.see("calls", len(run.submissions))
    builder.add("calls", len(run.submissions), calls | place)


def _spans(run: ProfiledRun) -> Iterator[tuple[str, int, int]]:
    for one in run.submissions:
        phase, at_ns = step_phase(one), one.start_ns
        yield f"{phase} step", at_ns, one.wall_ns
        parts = {"record": one.record_ns, "submit": one.submit_ns, "wait": one.wait_ns, "read back": one.read_ns}
        for part, dur_ns in parts.items():
            yield f"{phase}: {part}", at_ns, dur_ns
            at_ns += dur_ns


def _add_words(builder: TraceBuilder, run: ProfiledRun) -> None:
    """Choices of kernels, and the lines of the log but the tables, which `totals` holds."""
    chosen = run.loaded.selections
    where = [one.phase if one.role is None else f"{one.phase} {one.role}" for one in chosen]
    columns: dict[str, Values] = {
        "op": [one.op for one in chosen],
        "variant": [one.kernel for one in chosen],
        "reason": [f"{place}: {one.reason}" for place, one in zip(where, chosen, strict=True)],
        "time_ns": run.request_ns - run.zero_ns,
    }
    builder.losses.see("selections", len(chosen))
    builder.add("selections", len(chosen), columns)
    splitter, rows = Splitter(), []
    for number, text in enumerate(render_engine_log(run, tables=False), start=1):
        parts = splitter.split(text)
        kind, fields = (None, {}) if parts is None else read_message(parts)
        known = (None, None, None) if parts is None else (parts.time_ns, parts.level, parts.module)
        rows.append((number, *known, kind, text, msgspec.json.encode(fields).decode() if fields else None))
    names = ("line", "time_ns", "level", "source", "kind", "text", "fields")
    builder.losses.see("log", len(rows))
    builder.add("log", len(rows), dict(zip(names, zip(*rows, strict=True), strict=True)))


def _facts(path: Path, run: ProfiledRun, clock_base_ns: int | None) -> Facts:
    from inferometer import __version__

    adapter = run.adapter
    return Facts(
        FORMAT,
        path.name,
        tool="inferometer",
        tool_version=__version__,
        framework="WebGPU",
        model=run.program.name,
        devices=(Device(DEVICE, adapter.name),),
        processes=(NamedId(0, name=run.harness),),
        clock_base_ns=None if clock_base_ns is None else clock_base_ns + run.zero_ns,
        recorded={"finished": run.failure is None, "timestamps": any(one.begin_ns for one in run.submissions)},
        versions={"backend": adapter.backend, **({"driver": adapter.description} if adapter.description else {})},
        engine_metrics=run_metrics(run),
        notes=(*run.loaded.notes, *(() if run.failure is None else (f"The run failed: {run.failure}",))),
    )
