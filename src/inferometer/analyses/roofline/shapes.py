"""Recorded arguments as people write them: `[32,4096] [4096,24576] bf16`."""

import json
from collections.abc import Mapping
from typing import Any, Final

import polars as pl

_SHORT: Final = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64", "long int": "i64"}


def say_shapes(dims: str | None, dtypes: str | None) -> str:
    """`[32, 4096] [4096, 24576] bf16`: the tensors of recorded arguments; types where they change."""
    try:
        sizes, types = json.loads(dims or "[]"), json.loads(dtypes or "[]")
    except (ValueError, RecursionError):
        return ""
    words: list[str] = []
    last = None
    for size, kind in zip(sizes, types, strict=False):
        if not size or kind in ("", "Scalar", "ScalarList"):
            continue
        short = _SHORT.get(kind, str(kind).removeprefix("c10::"))
        if last is not None and short != last:
            words.append(last)
        words.append(json.dumps(size, separators=(",", ":")))
        last = short
    return " ".join([*words, *([last] if last and last != "TensorList" else [])])


def say_op(row: Mapping[str, Any]) -> str:
    """`aten::mm [32, 4096] [4096, 24576] bf16`: a row's op with its shapes, where it has any."""
    return f"{row['op']} {say_shapes(row['input_dims'], row['input_dtypes'])}".rstrip()


def shapes_of(rows: pl.DataFrame) -> pl.Series:
    """`shapes`: the arguments of each row, as `say_shapes` has them."""
    texts = [say_shapes(dims, dtypes) for dims, dtypes in rows.select("input_dims", "input_dtypes").iter_rows()]
    return pl.Series("shapes", texts, dtype=pl.String)
