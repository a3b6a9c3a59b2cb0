"""Recorded arguments as people write them: `[32,4096] [4096,24576] bf16`."""

import json
from typing import Final

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
