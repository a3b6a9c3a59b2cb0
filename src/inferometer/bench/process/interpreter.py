"""Triton's interpreter in a candidate's process, mended before the candidate loads: so that a verdict is the kernel's.

It holds bf16 numbers as 16-bit integers, and (3.7) adds, multiplies and compares these: `tl.dot`, `+` and `>` of bf16
are wrong whatever the kernel, and float32 is cut off rather than rounded on its way to bf16. Here they are computed in
float32 and rounded to nearest even, as GPUs do. `@triton.autotune` would time its configurations on a GPU: the first
that its pruning leaves is taken. What was done otherwise is noted, and said in the result. Left out: fp8.
"""

import os
from collections.abc import Callable
from typing import Any

BF16_DOT, BF16_MATH, FIRST_CONFIG = "bf16 dot", "bf16 math", "first configuration"

_WIDE = ("binary_op", "create_clampf", "create_fma")


def mend_interpreter() -> set[str]:
    """What is done otherwise from now on, filled as it happens; nothing where Triton isn't here or compiles."""
    noted: set[str] = set()
    if os.environ.get("TRITON_INTERPRET") != "1":
        return noted
    try:
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.interpreter import InterpreterBuilder
    except ImportError:
        return noted
    _Bf16(noted).install(InterpreterBuilder)

    def take_first(self: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        noted.add(FIRST_CONFIG)
        return [0.0, 0.0, 0.0]  # of equal times, the first is the least

    def without_disk(self: Any, tuning_key: Any, configs: Any, bench_fn: Callable[[], Any]) -> bool:
        bench_fn()
        return False

    Autotuner._bench = take_first
    Autotuner.check_disk_cache = without_disk
    return noted


class _Bf16:
    """Operations of the interpreter whose operands or results may be bf16."""

    def __init__(self, noted: set[str]) -> None:
        import numpy as np
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle

        self._np, self._tl, self._handle, self._noted = np, tl, TensorHandle, noted

    def install(self, builder: Any) -> None:
        """In the place of the builder's own."""
        for name in _WIDE:
            if hasattr(builder, name):
                setattr(builder, name, self._in_float32(getattr(builder, name)))
        builder.create_dot = self._dot(builder.create_dot)
        builder.cast_impl = self._rounding(builder.cast_impl)
        builder.create_fp_to_fp = self._rounding(builder.create_fp_to_fp)
        if not hasattr(builder, "get_bf16"):
            builder.get_bf16 = lambda _, value: self._narrow(self._np.array([value], dtype=self._np.float32))

    def _is_bf16(self, value: Any) -> bool:
        return isinstance(value, self._handle) and value.dtype.scalar == self._tl.bfloat16

    def _widen(self, value: Any) -> Any:
        if not self._is_bf16(value):
            return value
        bits = value.data.astype(self._np.uint32) << 16
        return self._handle(bits.view(self._np.float32), self._tl.float32)

    def _narrow(self, values: Any) -> Any:
        """float32 numbers rounded to nearest even; NaN stays NaN."""
        np = self._np
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        rounded = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) >> 16
        kept = np.where(np.isnan(values), (bits >> 16) | 0x40, rounded)
        return self._handle(kept.astype(np.uint16), self._tl.bfloat16)

    def _in_float32(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method on wide operands, its result narrowed; truth values stay as they are."""

        def computed(builder: Any, *operands: Any) -> Any:
            if not any(map(self._is_bf16, operands)):
                return method(builder, *operands)
            self._noted.add(BF16_MATH)
            found = method(builder, *map(self._widen, operands))
            return self._narrow(found.data) if found.data.dtype == self._np.float32 else found

        return computed

    def _dot(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def computed(builder: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
            if not (self._is_bf16(a) or self._is_bf16(b) or self._is_bf16(d)):
                return method(builder, a, b, d, *rest)
            self._noted.add(BF16_DOT)
            found = method(builder, self._widen(a), self._widen(b), self._widen(d), *rest)
            return self._narrow(found.data) if self._is_bf16(d) else found

        return computed

    def _rounding(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """A cast of float32 to bf16 without another rounding asked for."""

        def cast(builder: Any, source: Any, to: Any, *mode: Any) -> Any:
            down = source.dtype.scalar == self._tl.float32 and to.scalar == self._tl.bfloat16
            if down and (mode in ((), (None,)) or "RTNE" in str(mode[0])):
                return self._narrow(source.data)
            return method(builder, source, to, *mode)

        return cast
