"""By which weights matrix products ran: another dtype or other sizes are another model, however its kernels are called.

On a CPU an op has one name for all inputs, so a model in bfloat16 or a wider one calls the same functions as often.
Weights have the same sizes at any number of tokens; products without one (attention) say nothing here.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

from inferometer.analyses.comparison_limits import MOST
from inferometer.trace.trace import Trace

NEEDED = ("op", "input_dims", "input_dtypes")
_WEIGHT = {"aten::linear": 1, "aten::mm": 1, "aten::addmm": 2, "aten::_scaled_mm": 1, "aten::convolution": 1}
"""Which input of each product is the weight."""
_DTYPES = {"float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16"}
_MOST_SIZES = 4
Weight = tuple[tuple[int, ...], str]
"""Its sizes and its dtype."""


class InputChange(msgspec.Struct, frozen=True):
    """The weights of most matrix products of the candidate, where the base has none like them.

    `dtypes`: of base and candidate, where they differ. `sizes`: those that the base has alone, and the candidate.
    """

    dtypes: tuple[str, str] | None
    sizes: tuple[tuple[int, ...], tuple[int, ...]]

    def as_json(self) -> dict[str, Any]:
        return {
            "dtypes": None if self.dtypes is None else list(self.dtypes),
            "sizes": [list(each) for each in self.sizes],
        }

    def describe(self) -> str:
        """What differs, in a sentence."""
        changed = [f"in {self.dtypes[1]} in place of {self.dtypes[0]}"] if self.dtypes else []
        gone, new = self.sizes
        if gone and new:
            few = max(map(len, self.sizes)) <= _MOST_SIZES
            changed.append(f"of other sizes{f' ({_listed(new)} in place of {_listed(gone)})' if few else ''}")
        return f"Weights of most matrix products are {' and '.join(changed)}."


def find_input_change(base: Trace, candidate: Trace) -> InputChange | None:
    """What is different of the weights of most products; None where that is unknown, or nothing."""
    first, second = _weights(base), _weights(candidate)
    if not first or not second:
        return None
    known = sum(count for weight, count in second.items() if weight in first)
    if known >= MOST * second.total():
        return None
    before, after = (_dtype(run) for run in (first, second))
    found = InputChange((before, after) if before != after else None, _sizes(first, second))
    return found if found.dtypes or all(found.sizes) else None


def _weights(trace: Trace) -> Counter[Weight]:
    """How many products had which weight; nothing where inputs weren't recorded."""
    if "ops" not in trace.scope:
        return Counter()
    products = trace.ops.select(NEEDED).filter(pl.col("op").is_in(list(_WEIGHT))).drop_nulls()
    found: Counter[Weight] = Counter()
    for op, dims, dtypes, count in products.group_by(NEEDED).len().collect().iter_rows():
        if weight := _weight(_WEIGHT[op], dims, dtypes):
            found[weight] += count
    return found


def _weight(place: int, dims: str, dtypes: str) -> Weight | None:
    """Of the inputs as the source writes them, lists in JSON; None of others."""
    try:
        sizes, dtype = json.loads(dims)[place], json.loads(dtypes)[place]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if not (isinstance(sizes, list) and sizes and isinstance(dtype, str) and all(type(size) is int for size in sizes)):
        return None
    return tuple(sizes), dtype


def _dtype(run: Mapping[Weight, int]) -> str:
    """The dtype of most products' weights."""
    counts: Counter[str] = Counter()
    for (_, dtype), count in run.items():
        counts[dtype] += count
    most = max(counts, key=lambda dtype: (counts[dtype], dtype))
    return _DTYPES.get(most, most.removeprefix("c10::"))


def _listed(sizes: tuple[int, ...]) -> str:
    return " and ".join(f"{size:,}" for size in sizes)


def _sizes(first: Mapping[Weight, int], second: Mapping[Weight, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes that only the one run has, and only the other."""
    one, two = ({size for sizes, _ in run for size in sizes} for run in (first, second))
    return tuple(sorted(one - two)), tuple(sorted(two - one))
