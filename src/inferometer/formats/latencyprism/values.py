"""Columns of text as columns of the trace; what can't be read becomes null and is counted.

Times are decimals of microseconds and become whole nanoseconds without passing through a float; digits below a
nanosecond round half to even.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from inferometer.formats.kineto.decimals import OK, OUT_OF_RANGE
from inferometer.formats.kineto.numbers import parse_ns
from inferometer.trace.losses import Losses

Sort = Literal["text", "device", "whole", "number", "us"]

_PLAIN_US = r"^([0-9]{1,16})(?:\.([0-9]*))?$"
_MOST_US = 4_600_000_000_000_000  # 2^62 ns: leaves room to add a duration
_WHOLE = r"^[+-]?[0-9]{1,18}(?:\.0*)?$"
_NUMBERED = r"^([a-z]+)[ :]*([0-9]+)$"


@dataclass(frozen=True)
class Reading:
    """Column `name` of the trace is read from the column `title` of the file, as what `sort` says."""

    name: str
    title: str
    sort: Sort


def read_columns(rows: pl.DataFrame, readings: Sequence[Reading], losses: Losses, table: str) -> pl.DataFrame:
    """The columns of `readings`, and `is_far`: whether a time of the row is beyond what the trace holds.

    Numbers that can't be read are counted under `table.name`. Such times are null: the caller knows what that means.
    """
    texts = rows.select(clean(pl.col(each.title)).alias(each.name) for each in readings)
    found = texts.select(_READ[each.sort](pl.col(each.name)).alias(each.name) for each in readings)
    found = found.with_columns(pl.lit(value=False).alias("is_far"))
    for each, before, after in zip(readings, texts.null_count().row(0), found.null_count().row(0), strict=False):
        if after > before and each.sort == "us":
            found = _read_odd_times(found, texts[each.name], each.name)
        elif after > before:
            _count_unread(texts[each.name], found[each.name], losses, f"{table}.{each.name}")
    return _without_infinities(found, losses, table)


def clean(text: pl.Expr) -> pl.Expr:
    """Without white space around it; null where nothing is left."""
    bare = text.str.strip_chars()
    return pl.when(bare != "").then(bare)


def read_device(text: pl.Expr) -> pl.Expr:
    """`GPU 7` is `gpu:7`, `Host` is `host`; another word is itself in lower case."""
    return text.str.to_lowercase().str.replace(_NUMBERED, "$1:$2")


def keep(found: pl.DataFrame, reasons: Mapping[str, pl.Expr], losses: Losses, table: str) -> pl.DataFrame:
    """The rows to which no reason applies; the others are counted under the first that does."""
    counts = pl.coalesce(pl.when(bad).then(pl.lit(reason)) for reason, bad in reasons.items())
    dropped = found.select(counts.alias("reason"))["reason"]
    if dropped.null_count() == len(dropped):
        return found
    for reason, n in dropped.drop_nulls().value_counts(sort=True).iter_rows():
        losses.count(reason, n, category=table)
    return found.filter(dropped.is_null())


def _read_whole(text: pl.Expr) -> pl.Expr:
    """Also where it is written `7.0`."""
    digits = text.str.replace(r"\.0*$", "").str.strip_prefix("+")
    return pl.when(text.str.contains(_WHOLE)).then(digits).cast(pl.Int64, strict=False)


def _read_us(text: pl.Expr) -> pl.Expr:
    """Nanoseconds of plain decimals."""
    parts = text.str.extract_groups(_PLAIN_US).struct
    whole = parts[0].cast(pl.Int64, strict=False)
    digits = parts[1].fill_null("").str.pad_end(3, "0")
    thousandths, rest = digits.str.slice(0, 3).cast(pl.Int64), digits.str.slice(3).str.strip_chars_end("0")
    up = (rest > "5") | ((rest == "5") & (thousandths % 2 == 1))
    return pl.when(whole <= _MOST_US).then(whole * 1000 + thousandths + up.cast(pl.Int64))


_READ: Mapping[Sort, Callable[[pl.Expr], pl.Expr]] = {
    "text": lambda text: text.cast(pl.Categorical),
    "device": lambda text: read_device(text).cast(pl.Categorical),
    "whole": _read_whole,
    "number": lambda text: text.cast(pl.Float64, strict=False),
    "us": _read_us,
}


def _read_odd_times(found: pl.DataFrame, texts: pl.Series, name: str) -> pl.DataFrame:
    """Times with signs, exponents or more digits, one by one."""
    odd = (found[name].is_null() & texts.is_not_null()).arg_true()
    ns, states = parse_ns([text.encode(errors="replace") for text in texts.gather(odd)])
    read = pl.Series(ns).set(pl.Series(states != OK), None)
    is_far = found["is_far"].clone().scatter(odd, found["is_far"].gather(odd) | pl.Series(states == OUT_OF_RANGE))
    return found.with_columns(found[name].clone().scatter(odd, read), is_far)


def _count_unread(texts: pl.Series, values: pl.Series, losses: Losses, category: str) -> None:
    unread = texts.filter(values.is_null() & texts.is_not_null())
    losses.count("wrong_type", len(unread), category=category, example=unread[0][:80])


def _without_infinities(found: pl.DataFrame, losses: Losses, table: str) -> pl.DataFrame:
    numbers = [name for name, dtype in found.schema.items() if dtype == pl.Float64]
    if not numbers:
        return found
    counts = found.select(pl.col(numbers).is_finite().not_().sum()).row(0)
    for name, n in zip(numbers, counts, strict=True):
        losses.count("not_finite", n, category=f"{table}.{name}")
    if not any(counts):
        return found
    return found.with_columns(pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in numbers)
