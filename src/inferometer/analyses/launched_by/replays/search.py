"""Finds the part of any reference that a replay's sequence of kernels fits best."""

from collections.abc import Sequence

import msgspec
import numpy as np
import polars as pl
from msgspec.structs import replace

from inferometer.analyses.launched_by.replays.alignment import Alignment, Symbol, align
from inferometer.analyses.nesting import Numbers
from inferometer.names import decode

_SURE = 0.98
"""A replay that fits so well where another one did isn't looked for elsewhere."""

_ROOM = 32
"""Rows around such a place, for kernels that one of the two lacks."""

_AXES = [pl.col(name).arr.get(axis).alias(f"{name}{axis}") for name in ("grid", "block") for axis in range(3)]


class Symbols:
    """Numbers of kernels with their shapes: equal numbers are equal kernels launched alike."""

    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self._known: dict[Symbol, int] = {}
        self._short: dict[str, str] = {}

    def number(self, rows: pl.DataFrame) -> Numbers:
        """The number of each row's `kernel`, `grid` and `block`."""
        keyed = rows.lazy().select(pl.col("kernel").cast(pl.String), *_AXES).with_row_index("row")
        distinct = keyed.group_by(pl.exclude("row"), maintain_order=True).agg("row").collect()
        numbers = np.zeros(rows.height, dtype=np.int64)
        for kernel, *shape, at in distinct.iter_rows():
            symbol = Symbol(kernel, None if None in shape else tuple(shape), self._short_name(kernel))
            if symbol not in self._known:
                self._known[symbol] = len(self.symbols)
                self.symbols.append(symbol)
            numbers[at] = self._known[symbol]
        return numbers

    def _short_name(self, kernel: str) -> str:
        if kernel not in self._short:
            self._short[kernel] = decode(kernel).short_name
        return self._short[kernel]


class Fit(msgspec.Struct, frozen=True):
    """A reference by its number, and where in it."""

    reference: int
    alignment: Alignment


class ReplaySearch:
    """Equal sequences are looked for once; a new one first where another one was found.

    Args:
        symbols: Of all sequences.
        references: Of each its sequence, and the part of each row.
    """

    def __init__(self, symbols: Symbols, references: Sequence[tuple[Numbers, Numbers]]) -> None:
        self._symbols = symbols
        self._references = references
        self._found: dict[bytes, Fit | None] = {}
        self._places: list[tuple[int, int, int]] = []

    def find(self, sequence: Numbers) -> Fit | None:
        """The best fit; None where none is good enough."""
        key = sequence.tobytes()
        if key not in self._found:
            self._found[key] = self._look(sequence)
        return self._found[key]

    def _look(self, sequence: Numbers) -> Fit | None:
        for reference, begin, end in self._places:
            fit = self._align(sequence, reference, max(begin - _ROOM, 0), end + _ROOM)
            if fit is not None and fit.alignment.score >= _SURE:
                return fit
        fits = [self._align(sequence, reference, 0, len(rows)) for reference, (rows, _) in enumerate(self._references)]
        best = max((fit for fit in fits if fit is not None), key=lambda fit: fit.alignment.score, default=None)
        if best is not None:
            self._places.append((best.reference, best.alignment.begin, best.alignment.end))
        return best

    def _align(self, sequence: Numbers, reference: int, begin: int, end: int) -> Fit | None:
        rows, parts = (column[begin:end] for column in self._references[reference])
        found = align(sequence.tolist(), rows.tolist(), self._symbols.symbols, breaks=parts)
        if found is None:
            return None
        place = np.where(found.place < 0, found.place, found.place + begin)
        return Fit(reference, replace(found, place=place, begin=found.begin + begin, end=found.end + begin))
