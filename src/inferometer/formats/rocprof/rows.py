"""Rows of rocprofiler in one form, whichever file they are from, to rows of a trace's tables.

A frame of dispatches has `start`, `end` and what else the file holds of `kernel`, `device`, `stream`, `queue`,
`thread`, `correlation`, `external`, `grid_*` (in work-items, as AMD counts), `workgroup_*`, `lds`, `scratch`, `vgpr`,
`agpr`, `sgpr`, `graph` and `graph_node`. An id of 0 is none.
"""

from collections.abc import Collection, Mapping

import polars as pl

from inferometer.trace.builder import TraceBuilder, Values
from inferometer.trace.tables import ALL_TABLES
from inferometer.trace.timed_rows import keep_timed

_AXES = "xyz"
_GRIDS = tuple(f"grid_{axis}" for axis in _AXES)
_WORKGROUPS = tuple(f"workgroup_{axis}" for axis in _AXES)
_CALLS = ("HIP", "HSA")
_SPANS = {"MARKER": "ROCTx", "ROCTX": "ROCTx", "RCCL": "RCCL"}
_COPY = "MEMORY_COPY_"
_DIRECTIONS = {  # as PyTorch names AMD's copies, so that both kinds of trace compare
    "HOST_TO_HOST": "CopyHostToHost",
    "HOST_TO_DEVICE": "CopyHostToDevice",
    "DEVICE_TO_HOST": "CopyDeviceToHost",
    "DEVICE_TO_DEVICE": "CopyDeviceToDevice",
}


def _or_null(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != 0).then(pl.col(name))


def _blocks() -> pl.Expr:
    """Blocks along each axis: a grid that doesn't divide has a last block that is not full."""
    sizes = []
    for grid, workgroup in zip(map(pl.col, _GRIDS), map(pl.col, _WORKGROUPS), strict=True):
        sizes.append(grid // workgroup + (grid % workgroup > 0).cast(pl.Int64))
    return _triple(sizes, [pl.col(*_GRIDS) >= 0, pl.col(*_WORKGROUPS) > 0])


def _triple(sizes: list[pl.Expr], conditions: list[pl.Expr]) -> pl.Expr:
    """Three numbers as one; null where any is missing or can't be."""
    return pl.when(pl.all_horizontal(conditions)).then(pl.concat_arr(sizes))


_LAUNCH: Mapping[str, tuple[tuple[str, ...], pl.Expr]] = {  # our column: theirs that it needs, its value
    "kernel": (("kernel",), pl.col("kernel")),
    "device": (("device",), pl.col("device")),
    "stream": (("stream",), pl.col("stream")),
    "queue": (("queue",), pl.col("queue")),
    "host": (("host",), pl.col("host")),
    "process": (("process",), pl.col("process")),
    "start_ns": (("start",), pl.col("start")),
    "dur_ns": (("end",), pl.col("dur_ns")),
    "correlation_id": (("correlation",), _or_null("correlation")),
    "external_id": (("external",), _or_null("external")),
    "graph_id": (("graph",), _or_null("graph")),
    "graph_node_id": (("graph_node",), _or_null("graph_node")),
    "grid": ((*_GRIDS, *_WORKGROUPS), _blocks()),
    "block": (_WORKGROUPS, _triple([pl.col(name) for name in _WORKGROUPS], [pl.col(*_WORKGROUPS) > 0])),
    "registers": (("vgpr",), pl.col("vgpr")),
    "accum_registers": (("agpr",), pl.col("agpr")),
    "scalar_registers": (("sgpr",), pl.col("sgpr")),
    "shared_bytes": (("lds",), pl.col("lds")),
    "scratch_bytes": (("scratch",), pl.col("scratch")),
    "bytes": (("bytes",), pl.col("bytes")),
}


def launch_parts(wanted: Collection[str]) -> frozenset[str]:
    """What a frame of device work must have for these columns of `launches`: a start and an end, and more."""
    parts = {part for column in wanted if column in _LAUNCH for part in _LAUNCH[column][0]}
    return frozenset({*parts, "start", "end"})


def add_launches(
    out: TraceBuilder, rows: pl.DataFrame, kind: str, category: str, about: Mapping[str, int | str | None]
) -> None:
    """Rows with usable times into `launches`; `about` fills columns that are the same for all."""
    out.losses.see(category, rows.height)
    kept = keep_timed(rows, category, out.losses)
    wanted = out.narrow("launches")
    found = kept.select(
        value.alias(ours)
        for ours, (needs, value) in _LAUNCH.items()
        if ours in wanted and set(needs) <= set(kept.columns)
    )
    columns: dict[str, Values] = {"kind": kind, **about, **{series.name: series for series in found}}
    if "stream" not in kept.columns and "queue" in kept.columns:
        columns["stream"] = kept["queue"]  # older versions know queues only
    out.add("launches", kept.height, {name: value for name, value in columns.items() if name in wanted})


def add_by_domain(out: TraceBuilder, rows: pl.DataFrame, category: str, about: Mapping[str, int | str | None]) -> None:
    """Calls and ranges, named in `name`, by how their `domain` begins; others are counted where all is read."""
    domain = rows["domain"].cast(pl.String).str.extract(r"^([A-Za-z]*)").str.to_uppercase().fill_null("")
    if out.wants("calls"):
        add_calls(out, rows.filter(domain.is_in(_CALLS)), category, about)
    if out.wants("spans"):
        for sign, text in _SPANS.items():
            add_spans(out, rows.filter(domain == sign), category, text, about)
    if out.tables == ALL_TABLES:
        rest = int((~domain.is_in([*_CALLS, *_SPANS])).sum())
        out.losses.see(category, rest)
        out.losses.count("unknown_category", rest, category=category)


def add_calls(out: TraceBuilder, rows: pl.DataFrame, category: str, about: Mapping[str, int | str | None]) -> None:
    """Calls of HIP and HSA, named in `name`, into `calls`."""
    kept, columns = _of_host(out, rows, category, about)
    for ours, theirs in (("correlation_id", "correlation"), ("external_id", "external")):
        if theirs in kept.columns:
            columns[ours] = kept.select(_or_null(theirs).alias(ours)).to_series()
    out.add("calls", kept.height, {"api": kept["name"], **columns})


def add_spans(
    out: TraceBuilder, rows: pl.DataFrame, category: str, domain: str, about: Mapping[str, int | str | None]
) -> None:
    """Ranges and library calls, named in `name`, into `spans`."""
    kept, columns = _of_host(out, rows, category, about)
    out.add("spans", kept.height, {"span": kept["name"], "domain": domain, **columns})


def add_counters(out: TraceBuilder, rows: pl.DataFrame, about: Mapping[str, int | str | None]) -> None:
    """Counters of dispatches, with `launch`, `metric` and a `value` over all instances, into `kernel_counters`."""
    names = ("kernel", "device", "stream", "process", "grid", "block")
    known = {name: _LAUNCH[name] for name in names if set(_LAUNCH[name][0]) <= set(rows.columns)}
    found = rows.select("launch", "metric", "value", *(value.alias(name) for name, (_, value) in known.items()))
    columns: dict[str, Values] = {**about, **{series.name: series for series in found}}
    if "stream" not in columns and "queue" in rows.columns:
        columns["stream"] = rows["queue"]
    out.add("kernel_counters", rows.height, columns)


def with_kernel_names(
    out: TraceBuilder, rows: pl.DataFrame, names: pl.Series, numbers: pl.Series, category: str
) -> pl.DataFrame:
    """`rows` with names of kernels; one without is called by its number, and counted."""
    missing = names.null_count()
    if missing:
        out.losses.count("without_symbol", missing, category=category)
        numbered = pl.concat_str(pl.lit("[kernel "), numbers.cast(pl.String).fill_null("?"), pl.lit("]"))
        names = pl.select(pl.coalesce(names.cast(pl.String), numbered)).to_series()
    return rows.with_columns(names.cast(pl.Categorical).alias("kernel"))


def copy_names(names: pl.Series) -> pl.Series:
    """Directions of copies as PyTorch's profiler names them; others stay as in the file."""
    plain = names.cast(pl.String)
    known = {prefix + way: name for way, name in _DIRECTIONS.items() for prefix in ("", _COPY)}
    return plain.replace(known).cast(pl.Categorical)


def copy_devices(source: pl.Series, destination: pl.Series) -> pl.Series:
    """The GPU that a copy is from or to; to, where both are."""
    gpus = [pl.when(end.str.starts_with("gpu:")).then(end) for end in map(pl.lit, (destination, source))]
    return pl.select(pl.coalesce(*gpus, pl.lit(destination), pl.lit(source)).alias("device")).to_series()


def _of_host(
    out: TraceBuilder, rows: pl.DataFrame, category: str, about: Mapping[str, int | str | None]
) -> tuple[pl.DataFrame, dict[str, Values]]:
    out.losses.see(category, rows.height)
    kept = keep_timed(rows, category, out.losses)
    places: dict[str, Values] = {name: kept[name] for name in ("process", "thread") if name in kept.columns}
    return kept, {**about, **places, "start_ns": kept["start"], "dur_ns": kept["dur_ns"]}
