"""What integer tensors and texts hold in a replay: a profiler records neither, and an index must lie in its table.

Row numbers are drawn below the rows that there are, slots of a cache differ, sequences are equally long. Operands of
arithmetic are small numbers above 0, since some divide by them. All others are 0, which is in range everywhere.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from inferometer.operators.framework.call import OpCall, Tensor
from inferometer.operators.framework.family import model_of
from inferometer.reports.replay.harness import Distinct, Ends, Integers

Fill = Integers | Distinct | Ends
_Rule = Callable[[OpCall], Fill]
_SMALL: Final = Integers(1, 100)
_ZEROS: Final = Integers(0, 1)


def _rows_of(table_at: int, dim: int = 0) -> _Rule:
    """Numbers of entries along a dimension of the table at this position."""
    return lambda call: Integers(0, max(1, _size(call.tensor(table_at), dim)))


def _rows_along(table_at: int, dim_at: int) -> _Rule:
    """The same, the dimension being an argument, too."""
    return lambda call: Integers(0, max(1, _size(call.tensor(table_at), call.integer(dim_at))))


def _size(table: Tensor, dim: int) -> int:
    return table.dims[dim] if -len(table.dims) <= dim < len(table.dims) else 1


def _below(at: int) -> _Rule:
    """Numbers below the argument at this position."""
    return lambda call: Integers(0, max(1, call.integer(at)))


def _slots(cache_at: int, token_dims: int) -> _Rule:
    """Different places of tokens in a cache, whose first dimensions say how many there are."""
    return lambda call: Distinct(prod(call.tensor(cache_at).dims[:token_dims]))


def _ends_in(tokens_at: int) -> _Rule:
    """Where sequences end among the tokens of a tensor."""
    return lambda call: Ends(_size(call.tensor(tokens_at), 0))


_FLASH = {3: _ends_in(0), 4: _ends_in(1)}
_SCATTERED = ("gather", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill")
_RULES: Final[Mapping[str, Mapping[int, _Rule]]] = {
    "aten::embedding": {1: _rows_of(0)},
    "aten::_embedding_bag": {1: _rows_of(0), 2: _ends_in(1)},
    "aten::index_select": {2: _rows_along(0, 1)},
    **{f"aten::{name}{suffix}": {2: _rows_along(0, 1)} for name in _SCATTERED for suffix in ("", "_")},
    "aten::take": {1: lambda call: Integers(0, max(1, call.tensor(0).numel))},
    "aten::nll_loss_forward": {1: _rows_of(0, -1)},
    "aten::_flash_attention_forward": _FLASH,
    "aten::_efficient_attention_forward": {4: _ends_in(0), 5: _ends_in(1)},
    "flash_attn::_flash_attn_varlen_forward": _FLASH,
    **{f"{library}::rotary_embedding": {0: _rows_of(4)} for library in ("_C", "sgl_kernel")},
    "_C_cache_ops::reshape_and_cache_flash": {4: _slots(2, 2)},
    "sglang::store_cache": {4: _slots(2, 1)},
    **{f"{library}::moe_align_block_size": {0: _below(1)} for library in ("_moe_C", "sgl_kernel")},
}
_TEXTS: Final = {("_C_cache_ops::reshape_and_cache_flash", 5): "auto", ("_C_cache_ops::reshape_and_cache", 5): "auto"}


def fill_of(call: OpCall, at: int) -> Fill:
    """What an integer tensor at this position holds.

    Raises:
        Unmodelled: What it depends on isn't recorded.
    """
    rule = _RULES.get(call.op, {}).get(at)
    if rule is not None:
        return rule(call)
    found = model_of(call.op)
    return _SMALL if found is not None and found.family == "element-wise" else _ZEROS


def text_of(op: str, at: int) -> str | None:
    """A text that the op needs at this position and that the profiler doesn't record."""
    return _TEXTS.get((op, at))
