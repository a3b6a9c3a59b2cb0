"""The details of a benchmark's requests, one row each, and the statistics that a file with them leaves out."""

from dataclasses import dataclass, field
from typing import Any

import polars as pl
from msgspec.structs import replace

from inferometer.formats.serving_results.json_runs import MOST, RunFields
from inferometer.formats.serving_results.serving import REQUESTS, Latency, Serving

_NS = 1e9
_PERCENTS = (50.0, 95.0, 99.0)
_COLUMNS = {  # of a file: column, unit in ns where it is a time
    "input_lens": ("input_tokens", None),
    "output_lens": ("output_tokens", None),
    "start_times": ("start_ns", _NS),
    "ttfts": ("ttft_ns", _NS),
}


@dataclass(frozen=True)
class Requests:
    """`frame` as in `Serving.requests`; `gaps_ns` are all times between chunks (or tokens), of all requests."""

    frame: pl.DataFrame = field(default_factory=REQUESTS.to_frame)
    gaps_ns: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Float64))


def read_requests(run: RunFields) -> Requests:
    """The lists of a file with details. A request that failed has no time to its first token: it is null.

    Raises:
        FormatError: A list holds something else than numbers, or lists differ in length.
    """
    lists = {name: items for name in (*_COLUMNS, "itls") if (items := run.items(name)) is not None}
    if not lists:
        return Requests()
    lengths = {name: len(items) for name, items in lists.items()}
    if len(set(lengths.values())) > 1:
        run.refuse(", ".join(lengths), "one item a request", list(lengths.values()))
    columns: dict[str, pl.Series] = {}
    gaps = pl.Series(dtype=pl.Float64)
    for name, items in lists.items():
        if name == "itls":
            each = _series(run, name, items, pl.List(pl.Float64))
            gaps = (each.drop_nulls().explode(empty_as_null=False).drop_nulls() * _NS).round(3)
            columns["decode_ns"] = (each.list.sum() * _NS).round(3)
            columns["chunks"] = each.list.len().cast(pl.Int64)
        else:
            column, unit = _COLUMNS[name]
            values = _series(run, name, items, pl.Float64() if unit else pl.Int64())
            columns[column] = values if unit is None else (values * unit).round(3)
    frame = pl.DataFrame(columns)
    missing = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in REQUESTS.items() if name not in columns]
    frame = frame.with_columns(*missing).select(REQUESTS.names())
    begun = pl.when(pl.col("ttft_ns") > 0)
    return Requests(frame.with_columns(begun.then(name).alias(name) for name in ("ttft_ns", "decode_ns")), gaps)


def _series(run: RunFields, name: str, items: list[Any], dtype: pl.DataType) -> pl.Series:
    wanted = "lists of numbers" if name == "itls" else "numbers"
    if not all(map(_are_numbers, items) if name == "itls" else [_are_numbers(items)]):
        run.refuse(name, wanted, items)  # Polars takes minutes for lists in lists in lists
    try:
        found = pl.Series(items, dtype=dtype, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        run.refuse(name, wanted, items)
    numbers = found.explode() if dtype == pl.List else found
    if numbers.dtype == pl.Float64 and not (numbers.abs() <= MOST).fill_null(value=True).all():
        run.refuse(name, f"numbers up to {MOST:g}", items)
    return found


def _are_numbers(items: Any) -> bool:
    return items is None or (
        isinstance(items, list) and all(each is None or isinstance(each, int | float) for each in items)
    )


def fill_from_requests(serving: Serving, requests: Requests) -> Serving:
    """With the statistics that the file doesn't have; percentiles interpolate as NumPy's and the tools' do."""
    ttft = requests.frame["ttft_ns"].drop_nulls()
    return replace(serving, ttft=_filled(serving.ttft, ttft), itl=_filled(serving.itl, requests.gaps_ns))


def _filled(latency: Latency, values: pl.Series) -> Latency:
    if values.is_empty() or not (values.max() or 0) > 0:  # type: ignore[operator]
        return latency
    known = latency.percentiles_ns
    found = {percent: _quantile(values, percent) for percent in _PERCENTS if percent not in known}
    every = {**known, **found}
    mean = latency.mean_ns if latency.mean_ns is not None else float(values.mean())  # type: ignore[arg-type]
    most = latency.max_ns if latency.max_ns is not None else float(values.max())  # type: ignore[arg-type]
    median = latency.median_ns if latency.median_ns is not None else every[50.0]
    return replace(latency, mean_ns=mean, median_ns=median, max_ns=most, percentiles_ns=dict(sorted(every.items())))


def _quantile(values: pl.Series, percent: float) -> float:
    value = values.quantile(percent / 100, "linear")
    assert value is not None  # the series isn't empty
    return float(value)
