"""A model's numbers as this engine wants them, whatever file they lie in: matrices in float16, vectors in float32.

Blocks of a GGUF file's matrices are packed as they are: no number changes. Other matrices are rounded in blocks that
stay in a core's cache, to nearest, ties to even, with a count of what that loses; of BF16 it is exact from 2^-17 up.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NoReturn

import numpy as np

from inferometer.backends.wgsl.weight_formats import F16, Q4, Q4K, Q5, Q5K, Q6K, Q8, WeightFormat, pack
from inferometer.engines.gguf.block_codes import take_apart
from inferometer.engines.safetensors_header import StoredTensor
from inferometer.engines.stored_numbers import widen
from inferometer.errors import InputError

Stored = Callable[[str, StoredTensor, int, int], Any]
"""Rows `first` to `last` of a tensor as its file has them: float16, BF16 as uint16, or float32."""

CODED: Mapping[str, WeightFormat] = {
    **dict.fromkeys(("Q4_0", "Q4_1"), Q4),
    **dict.fromkeys(("Q5_0", "Q5_1"), Q5),
    "Q8_0": Q8,
    "Q4_K": Q4K,
    "Q5_K": Q5K,
    "Q6_K": Q6K,
}
"""What holds each of GGUF's quantized types exactly."""

_BLOCK = 2**17  # numbers decoded at once
_SIGN, _MAGNITUDE = 0x8000, 0x7FFF
_SMALLEST_NORMAL = 113 << 7  # 2^-14 as BF16: from here up float16 has all its bits
_TOO_LARGE = 143 << 7  # 2^16 as BF16; the one below it is 65280, which float16 holds
_REBIAS = (127 - 15) << 7  # float16 counts exponents from 15
_INFINITY = 0x7C00  # as float16
_LARGEST = 65504
_BROKEN = "Copy the file again, or ask for it where it comes from."


class WeightReader:
    """Reads tensors of one model.

    Args:
        stored: Gives rows as numbers.
        blocks: Gives rows as the blocks that lie in a file, where it has some: uint8 [rows, bytes].
    """

    def __init__(self, stored: Stored, blocks: Stored | None = None) -> None:
        self._stored, self._blocks = stored, blocks
        self._counts: dict[str, Any] = {}  # [rows, 3] of a matrix: numbers read, made zero, made coarse

    def halves(self, name: str, tensor: StoredTensor, first: int, last: int) -> Any:
        """Rows `first` to `last` of a matrix as float16 [rows, K], new and C-contiguous.

        Raises:
            InputError: A number above 65504, or one that isn't finite; a dtype that can't be read.
            Unavailable: They are quantized, and the gguf library isn't installed.
        """
        rows, width = tensor.shape
        out_RK = np.empty((last - first, width), np.float16)
        counts = self._counts.setdefault(name, np.zeros((rows, 3), np.int64))
        counts[first:last] = width, 0, 0
        step = max(1, _BLOCK // max(1, width))
        for at in range(first, last, step):
            end = min(at + step, last)
            block_RK, into_RK = self._stored(name, tensor, at, end), out_RK[at - first : end - first]
            if not _DECODERS[block_RK.dtype.str](block_RK, into_RK, counts[at:end]):
                _refuse_largest(name, tensor, widen(block_RK))
        return out_RK

    def floats(self, name: str, tensor: StoredTensor, first: int = 0, last: int | None = None) -> Any:
        """Rows, or the numbers of a vector, as float32: exact.

        Raises:
            InputError: A number that isn't finite; a dtype that can't be read.
            Unavailable: They are quantized, and the gguf library isn't installed.
        """
        found = widen(self._stored(name, tensor, first, tensor.shape[0] if last is None else last))
        if not np.isfinite(found).all():
            _refuse_largest(name, tensor, found)
        return found

    def own_format(self, tensor: StoredTensor) -> WeightFormat:
        """The format of a device that holds a quantized matrix exactly; of others float16."""
        return F16 if self._blocks is None else CODED.get(tensor.dtype, F16)

    def coded(self, name: str, tensor: StoredTensor, first: int, last: int) -> Any:
        """Rows of a quantized matrix in its own format, uint8 [rows, bytes], new.

        Raises:
            InputError: A scale that isn't finite, or too large for the format.
        """
        assert self._blocks is not None  # else no matrix has such a format
        form = self.own_format(tensor)
        width = tensor.shape[1]
        out = np.empty((last - first, form.row_bytes(width)), np.uint8)
        step = max(1, _BLOCK // width)
        for at in range(first, last, step):
            end = min(at + step, last)
            found = take_apart(self._blocks(name, tensor, at, end), tensor.dtype)
            if not (np.isfinite(found.scales).all() and np.isfinite(found.least).all()):
                self._refuse_scale(name, tensor, at, end, form)
            out[at - first : end - first] = pack(found.codes, found.scales, found.least, form, found.of_blocks)
        return out

    def _refuse_scale(self, name: str, tensor: StoredTensor, first: int, last: int, form: WeightFormat) -> NoReturn:
        """Say that numbers aren't finite; where they are, it is only the format that can't hold their scales."""
        most = np.abs(self.floats(name, tensor, first, last)).max()
        raise InputError(
            f"{tensor.path}: {name}: expected numbers with scales that {form.name} holds, found {most:g}",
            hint="--weights f32 keeps them as they are.",
        )

    def notes(self) -> tuple[str, ...]:
        """What float16 can't hold well of the matrices read so far; none where it holds all."""
        read, zeroed, coarse = (sum(int(each[:, i].sum()) for each in self._counts.values()) for i in range(3))
        if not zeroed and not coarse:
            return ()
        lost = f"{zeroed:,} that become 0 and {coarse:,} that lose digits, all below 6.1e-05"
        return (f"float16 holds {read:,} numbers of matrices but for {lost}",)


def _refuse_largest(name: str, tensor: StoredTensor, found: Any) -> NoReturn:
    bad = found[~(np.abs(found) <= _LARGEST)]
    wanted = f"numbers up to {_LARGEST}, which float16 holds" if np.isfinite(bad).all() else "finite numbers"
    hint = "--weights f32 keeps them as they are." if np.isfinite(bad).all() else _BROKEN
    worst = bad[0] if np.isfinite(bad).all() else bad[~np.isfinite(bad)][0]
    raise InputError(f"{tensor.path}: {name}: expected {wanted}, found {worst:g}", hint=hint)


def _copy(stored: Any, into: Any, counts: Any) -> bool:
    into[:] = stored
    return not into.size or bool((into.view(np.uint16) & _MAGNITUDE).max() < _INFINITY)


def _round_float32(stored: Any, into: Any, counts: Any) -> bool:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        into[:] = stored
    places = np.flatnonzero(np.abs(stored) < 2.0**-14)
    _count_losses(stored.reshape(-1)[places], into.reshape(-1)[places], places, counts)
    return bool(np.isfinite(into).all())


def _round_bfloat16(stored: Any, into: Any, counts: Any) -> bool:
    """Shifts the bits of normal numbers into place; the few below float16's normal range go through a table."""
    flat, out = stored.reshape(-1), into.reshape(-1).view(np.uint16)
    magnitude = flat & _MAGNITUDE
    if flat.size and magnitude.max() >= _TOO_LARGE:
        return False
    places = np.flatnonzero(magnitude < _SMALLEST_NORMAL)
    np.bitwise_and(flat, _SIGN, out=out)
    magnitude -= np.uint16(_REBIAS)
    magnitude <<= 3
    out |= magnitude
    small = flat[places]
    out[places] = _table()[small]
    _count_losses(widen(small), out[places].view(np.float16), places, counts)
    return True


def _count_losses(exact: Any, found: Any, places: Any, counts: Any) -> None:
    """Add to `counts` [rows, 3], by row, what became zero and what changed otherwise; `places` are flat."""
    changed = exact != found.astype(np.float32)
    width = int(counts[0, 0]) if len(counts) else 1
    for column, chosen in ((1, changed & (found == 0)), (2, changed & (found != 0))):
        counts[:, column] += np.bincount(places[chosen] // max(1, width), minlength=len(counts))


@cache
def _table() -> Any:
    """float16's bits for each of BF16's."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return widen(np.arange(2**16, dtype=np.uint16)).astype(np.float16).view(np.uint16)


_DECODERS: Mapping[str, Callable[[Any, Any, Any], bool]] = {
    "<f2": _copy,
    "<u2": _round_bfloat16,
    "<f4": _round_float32,
}
