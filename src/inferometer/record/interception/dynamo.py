"""torch.compile leaves our functions alone where it comes upon them between two of its regions."""

from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any


def leave_alone(code_of: Iterable[Any]) -> bool:
    """Mark functions, and those of modules and their classes, as none to compile. Whether this PyTorch knows that."""
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

        skipped = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.DEFAULT)
        for function in _functions(code_of):
            set_code_exec_strategy(function.__code__, skipped)
    except (ImportError, AttributeError, TypeError):
        return False
    return True


def _functions(code_of: Iterable[Any]) -> Iterable[FunctionType]:
    for each in code_of:
        if isinstance(each, FunctionType):
            yield each
        elif isinstance(each, ModuleType | type):
            own = each.__name__ if isinstance(each, ModuleType) else each.__module__
            inner = (value for value in vars(each).values() if getattr(value, "__module__", None) == own)
            yield from _functions(value for value in inner if isinstance(value, FunctionType | type))
