"""Ops of PyTorch that touch no element of a tensor: views, allocations, questions, and what leaves it to ops inside."""

from functools import cache
from pathlib import Path
from typing import Final

import msgspec

_NAMESPACE: Final = "aten::"
_ENGINE: Final = "autograd::engine::evaluate_function: "


def why_no_data(op: str) -> str | None:
    """Why a call of this op moves no data itself; None where it may."""
    return "what it moves, ops inside it do" if op.startswith(_ENGINE) else _known().get(op)


@cache
def _known() -> dict[str, str]:
    """By op the reason, of `no_data.json`, which has ops by reason, and its source."""
    lists = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, str | list[str]])
    return {f"{_NAMESPACE}{op}": why for why, ops in lists.items() if isinstance(ops, list) for op in ops}
