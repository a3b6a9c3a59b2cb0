"""Time in a candidate's own Triton kernels where Triton interprets them, on a CPU."""

import os
import time
from dataclasses import dataclass
from typing import Any

_clock = time.perf_counter_ns


@dataclass
class OwnTime:
    """`ns` in kernels of the candidate's file since it was last set; `known`: whether it could be measured."""

    ns: int = 0
    known: bool = False

    @classmethod
    def watch(cls, files: frozenset[str]) -> "OwnTime":
        """From now on, of kernels that are defined in one of these files."""
        own = cls()
        if not files or os.environ.get("TRITON_INTERPRET") != "1":
            return own
        try:
            from triton.runtime.interpreter import InterpretedFunction
        except ImportError:
            return own
        run = InterpretedFunction.run

        def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
            begin = _clock()
            try:
                return run(self, *args, **kwargs)
            finally:
                if self.fn.__code__.co_filename in files:
                    own.ns += _clock() - begin

        InterpretedFunction.run = timed
        own.known = True
        return own
