"""Which rows become slices of a Perfetto trace: their names, categories, tracks and arguments, table by table."""

from dataclasses import dataclass

import polars as pl

from inferometer.reports.perfetto.tracks import KEY, KEY_TYPES

Key = tuple[tuple[str, pl.Expr], ...]
_ON_DEVICE = pl.col("device").is_not_null()
_SIDE = pl.when(_ON_DEVICE).then(pl.lit("device")).otherwise(pl.lit("process"))


@dataclass(frozen=True)
class Slices:
    """How rows of a table become slices.

    `key` is what of `tracks.KEY` says where a row lies, the rest being null. `numbers` and `texts` are the
    columns that become arguments; with `triples`, grid and block do too, an axis an argument.
    """

    table: str
    name: pl.Expr
    category: pl.Expr
    key: Key
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    doubles: tuple[str, ...] = ()
    triples: bool = False

    def arguments(self) -> dict[str, pl.Expr]:
        """The arguments' values by their names, in order."""
        columns = {name: pl.col(name) for name in (*self.numbers, *self.doubles, *self.texts)}
        for column in ("grid", "block") if self.triples else ():
            columns |= {f"{column}_{axis}": pl.col(column).arr.get(i) for i, axis in enumerate("xyz")}
        return columns


def key_columns(key: Key) -> list[pl.Expr]:
    """All columns of a track's key, those that `key` lacks null."""
    given = dict(key)
    return [given.get(name, pl.lit(None)).cast(KEY_TYPES[name]).alias(f"key_{name}") for name in KEY]


def _columns(*names: str) -> Key:
    return tuple((name, pl.col(name)) for name in names)


def _on_host(*names: str, what: str | None = None) -> Key:
    return (("group", pl.lit("process")), *_columns("rank", "process", *names), ("what", pl.lit(what)))


_SPAN_KEY = (
    ("group", _SIDE),
    *_columns("rank", "device"),
    ("stream", pl.when(_ON_DEVICE).then(pl.col("stream"))),
    *((name, pl.when(~_ON_DEVICE).then(pl.col(name))) for name in ("process", "thread")),
    ("what", pl.when(_ON_DEVICE).then(pl.lit("ranges"))),
)
COUNTER_KEY = (
    ("group", _SIDE),
    *_columns("rank", "host", "device"),
    ("process", pl.when(~_ON_DEVICE).then(pl.col("process"))),
    ("what", pl.col("metric")),
    ("unit", pl.col("unit").fill_null("")),
)
OUTER_FIRST = (
    Slices(
        "steps",
        pl.concat_str(pl.lit("step "), pl.col("step")),
        pl.lit("step"),
        _on_host(what="steps"),
        numbers=("gpu_busy_ns", "batch", "prefill_tokens", "decode_tokens", "context_len"),
        texts=("phase", "anchor", "source"),
    ),
    Slices("frames", pl.col("frame"), pl.lit("frame"), _on_host("thread"), numbers=("frame_id", "parent")),
    Slices(
        "spans",
        pl.col("span"),
        pl.col("domain").fill_null("span"),
        _SPAN_KEY,
        numbers=("process", "thread"),
        texts=("input_dims", "input_dtypes"),
    ),
    Slices(
        "ops",
        pl.col("op"),
        pl.lit("op"),
        _on_host("thread"),
        numbers=("external_id", "parent", "sequence_number"),
        texts=(
            *("input_dims", "input_dtypes", "input_strides", "scalars"),
            *("kernel_file", "kernel_hash", "kernel_backend"),
        ),
    ),
    Slices(
        "calls",
        pl.col("api"),
        pl.lit("call"),
        _on_host("thread"),
        numbers=("correlation_id", "external_id", "path_id", "stream", "bytes"),
        texts=("kernel",),
        triples=True,
    ),
    Slices("host_events", pl.col("kind"), pl.lit("host_event"), _on_host("thread", what="host events")),
    Slices(
        "launches",
        pl.col("kernel"),
        pl.col("kind"),
        (("group", pl.lit("device")), *_columns("rank", "host", "device", "process", "context", "stream")),
        numbers=(
            *("process", "context", "queued_ns", "correlation_id", "external_id", "graph_id", "graph_node_id"),
            *("registers", "shared_bytes", "bytes"),
            *("elements_in", "elements_out", "group_size", "source_rank", "destination_rank", "sequence_number"),
        ),
        texts=(*("collective", "dtype", "group", "group_description", "group_ranks", "splits_in", "splits_out"),),
        doubles=("occupancy",),
        triples=True,
    ),
)
