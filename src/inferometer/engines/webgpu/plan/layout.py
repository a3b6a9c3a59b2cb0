"""Where a program's numbers lie: buffers, what they begin with, and the parts of them that dispatches bind.

Weights are one after the other, row after row, in one format for the whole layout (`weight_formats`), or each matrix in
the one that holds it as its file does. Matrices that one product takes (queries, keys, values) are one, rows after
rows. Such a matrix is in parts, a buffer each, where formats differ, and where it is above the adapter's limit: parts
begin at a multiple of 64 rows, so that those of outputs and biases begin at a multiple of 256 bytes. Formats that
can't be kept apart so become float32, which loses nothing. Norms and biases of a layer share a buffer. Activations are
reused by all layers; each has keys and values of its own, in the layout's format (`cache_formats`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from inferometer.backends.wgsl.cache_formats import CACHE_F16, CacheFormat
from inferometer.backends.wgsl.weight_formats import F16, F32, WeightFormat
from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.engines.webgpu.plan.weight_shapes import (
    matrix_shape,
    short_name,
    slots_by_name,
    vector_size,
    weight_shape,
)
from inferometer.engines.webgpu.program import SAMPLING_WORDS, STATE_WORDS, Binding, Buffer, Purpose
from inferometer.engines.webgpu.run.executor import Adapter, Content
from inferometer.engines.webgpu.weights.slots import weight_slots
from inferometer.errors import InputError

ALIGNMENT = 256
ROWS_OF_A_CUT = 64
F32_BYTES, F16_BYTES = 4, 2


@dataclass(frozen=True)
class MatrixPart:
    """Rows `first` to `first + rows` of a matrix, of `row_bytes` each, with their scales."""

    binding: Binding
    first: int
    rows: int
    weights: WeightFormat
    row_bytes: int


@dataclass(frozen=True)
class Matrix:
    """A matrix [n, k] in one part or more."""

    n: int
    k: int
    parts: tuple[MatrixPart, ...]


@dataclass
class _Slots:
    """A buffer of vectors that grows: each slot begins at a multiple of 256 bytes."""

    part: str
    names: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    size_bytes: int = 0
    needed_bytes: int = 0


def rounded_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


class Layout:
    """Grows as the planner asks for places; `buffers()` and `contents` are whole when it is done.

    Args:
        checkpoint: The model.
        adapter: Its limits decide cuts.
        capacity: Positions of the KV cache.
        most_rows: Rows of a pass at most.
        weights: The format of all matrices; None: of each its own.

    Attributes:
        matrix_bytes: What matrices take, by their formats.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        adapter: Adapter,
        *,
        capacity: int,
        most_rows: int,
        weights: WeightFormat | None = None,
        cache: CacheFormat = CACHE_F16,
    ) -> None:
        self._weights = weights
        self.cache = cache
        self.matrix_bytes: dict[WeightFormat, int] = {}
        self.checkpoint = checkpoint
        self.spec = checkpoint.spec
        self.adapter = adapter
        self.capacity = capacity
        self.most_rows = most_rows
        self.contents: dict[str, Content] = {}
        self._sizes: dict[str, tuple[int, Purpose]] = {}
        self._slots: dict[str, _Slots] = {}
        self._slot_of: dict[tuple[str, ...], Binding] = {}
        self._matrices: dict[str, Matrix] = {}
        for name, words in (
            ("state", STATE_WORDS),
            ("tokens", capacity + 1),
            ("sampling", SAMPLING_WORDS),
            ("seen", self.spec.vocab),
            ("logits", self.spec.vocab),
        ):
            self._need(name, words * F32_BYTES, "activations" if name == "logits" else "state")

    @property
    def is_half(self) -> bool:
        """Whether all matrices are float16."""
        slots = weight_slots(self.spec).items()
        return all(self.formats([name]) == (F16,) for name, slot in slots if len(slot.shape) > 1)

    @property
    def most_binding_bytes(self) -> int:
        """What one binding, and a buffer of one binding, may have."""
        return min(self.adapter.most_binding_bytes, self.adapter.most_buffer_bytes) // ALIGNMENT * ALIGNMENT

    def buffers(self) -> tuple[Buffer, ...]:
        """All that was asked for."""
        plain = [
            Buffer(name, rounded_up(needed, ALIGNMENT), purpose, needed)
            for name, (needed, purpose) in self._sizes.items()
        ]
        return (
            *plain,
            *(Buffer(name, slots.size_bytes, "weights", slots.needed_bytes) for name, slots in self._slots.items()),
        )

    def words(self, name: str) -> Binding:
        """All of one of the buffers that every program has."""
        return Binding(name, 0, self._sizes[name][0])

    def unused(self) -> Binding:
        """For a binding of a kernel that its constants say not to read."""
        self._need("unused", ALIGNMENT, "state")
        return Binding("unused", 0, ALIGNMENT)

    def activation(self, name: str, numbers: int) -> Binding:
        """Room for float32 numbers that live within a pass; the same room for every user of the name."""
        self._need(name, numbers * F32_BYTES, "activations")
        return Binding(name, 0, numbers * F32_BYTES)

    def key_values(self, layer: int) -> tuple[Binding, Binding]:
        """Cache of keys and of values of a layer, in the layout's format [capacity, kv_heads, head_dim]."""
        size = self.capacity * self.spec.kv_heads * self.spec.head_dim * self.cache.number_bytes
        if size > self.most_binding_bytes:
            fits = self.most_binding_bytes // (size // self.capacity)
            raise InputError(
                f"{self.spec.name}: {self.capacity} positions: expected keys of a layer within the "
                f"{self.most_binding_bytes:,} bytes of a binding, found {size:,}",
                hint=f"On {self.adapter.name} at most {fits:,} positions fit.",
            )
        names = (f"layers.{layer}.keys", f"layers.{layer}.values")
        for name in names:
            self._need(name, size, "kv_cache")
        return Binding(names[0], 0, size), Binding(names[1], 0, size)

    def angles(self, layer: int) -> Binding:
        """Cosines then sines of each position, float32 [capacity, head_dim], of this layer's rope."""
        table = self.spec.rope_of[layer]
        name, size = f"angles.{table}", self.capacity * self.spec.head_dim * F32_BYTES
        if name not in self.contents:
            frequencies, capacity = self.spec.inverse_frequencies[table], self.capacity
            self.contents[name] = Content("tables", 0, lambda: rope_angles(frequencies, capacity))
            self._need(name, size, "tables")
        return Binding(name, 0, size)

    def matrix(self, names: Sequence[str]) -> Matrix:
        """Matrices stacked into one. Those of a tied head are the embedding's."""
        return self._matrix(names, self.formats(names))

    def alike(self, names: Sequence[str]) -> tuple[Matrix, ...]:
        """Matrices that a kernel reads together, each by itself: one format for all."""
        formats = self.formats(names, alike=True)
        return tuple(self._matrix((name,), (weights,)) for name, weights in zip(names, formats, strict=True))

    def formats(self, names: Sequence[str], *, alike: bool = False) -> tuple[WeightFormat, ...]:
        """Of stacked matrices; `alike`: of those that a kernel reads together, where one format is a must."""
        own = tuple(self._weights or self.checkpoint.own_format(name) for name in names)
        ends = [weight_shape(self.spec, name)[0] for name in names]
        is_uneven = any(sum(ends[:i]) % ROWS_OF_A_CUT for i in range(1, len(names)) if own[i] is not own[i - 1])
        return (F32,) * len(own) if is_uneven or (alike and len(set(own)) > 1) else own

    def _matrix(self, names: Sequence[str], formats: Sequence[WeightFormat]) -> Matrix:
        if tuple(names) == ("lm_head",) and self.spec.tied:
            names = ("embed",)
        label = _joined(names)
        if tuple(formats) != self.formats(names):  # where it is read together with others; by itself it is another
            label = f"{label}.{formats[0].name}"
        if label not in self._matrices:
            self._matrices[label] = self._place_matrix(label, names, formats)
        return self._matrices[label]

    @cached_property
    def expert_weights(self) -> WeightFormat:
        """Of all experts of all layers: kernels that take one of several read one format."""
        names = [name for name in slots_by_name(self.spec) if name.startswith("layers.") and ".experts." in name]
        own = {self._weights or self.checkpoint.own_format(name) for name in names}
        return own.pop() if len(own) == 1 else F32

    def experts(self, layer: int, name: str) -> Matrix:
        """`gate`, `up` or `down` of all experts of a layer, stacked; parts have whole experts."""
        label, count = f"layers.{layer}.expert_{name}", 0 if self.spec.experts is None else self.spec.experts.count
        if label not in self._matrices:
            names = tuple(f"layers.{layer}.experts.{expert}.{name}" for expert in range(count))
            formats, cut = (self.expert_weights,) * count, weight_shape(self.spec, names[0])[0]
            self._matrices[label] = self._place_matrix(label, names, formats, cut)
        return self._matrices[label]

    def _place_matrix(
        self, label: str, names: Sequence[str], formats: Sequence[WeightFormat], cut: int = ROWS_OF_A_CUT
    ) -> Matrix:
        """`cut`: parts have a multiple of so many rows."""
        n, k = matrix_shape(self.spec, names)
        parts = []
        spans = list(self._spans(label, names, formats, cut))
        for index, (weights, first, last) in enumerate(spans):
            name = label if len(spans) == 1 else f"{label}.{index}"
            row_bytes = weights.row_bytes(k)
            size = (last - first) * row_bytes
            pieces = _pieces(self.spec, names, first, last)
            source_bytes = sum(self.checkpoint.source_bytes(each, start, end) for each, start, end in pieces)
            self.contents[name] = Content(
                _part(names[0]), source_bytes, _matrix_reader(self.checkpoint, pieces, weights)
            )
            self._need(name, size, "weights")
            self.matrix_bytes[weights] = self.matrix_bytes.get(weights, 0) + size
            parts.append(MatrixPart(Binding(name, 0, size), first, last - first, weights, row_bytes))
        return Matrix(n, k, tuple(parts))

    def _spans(
        self, label: str, names: Sequence[str], formats: Sequence[WeightFormat], cut: int
    ) -> Iterator[tuple[WeightFormat, int, int]]:
        """First and last rows of each part, with its format: as many rows as a binding has room for."""
        start = 0
        for weights, group in groupby(zip(formats, names, strict=True), key=lambda each: each[0]):
            n, k = matrix_shape(self.spec, [name for _, name in group])
            self._require_multiple(label, k, weights)
            row_bytes = weights.row_bytes(k)
            rows = self.most_binding_bytes // row_bytes
            if rows < n:
                rows = rows // cut * cut
            if rows < 1:
                raise InputError(
                    f"{self.spec.name}: {label}: expected {cut:,} rows of {row_bytes:,} bytes within a "
                    f"binding, found room for {self.most_binding_bytes:,} bytes on {self.adapter.name}"
                )
            for first in range(0, n, rows):
                yield weights, start + first, start + min(first + rows, n)
            start += n

    def _require_multiple(self, label: str, k: int, weights: WeightFormat) -> None:
        multiple, name = weights.multiple, weights.name
        if k % multiple:
            hint = "--weights f16 takes multiples of 8." if multiple > 8 else "--engine hf runs any size."
            where = f"{self.spec.name}: {short_name(label)}"
            wanted = f"a multiple of {multiple} numbers" + (f" for {name}" if multiple > 8 else "")
            raise InputError(
                f"{where}: expected rows of {wanted}, found {k}",
                hint=f"Kernels of this engine load {multiple} numbers at once; {hint}",
            )

    def vector(self, names: Sequence[str]) -> Binding:
        """Vectors concatenated, float32."""
        key = tuple(names)
        if key not in self._slot_of:
            scope = names[0].rpartition(".")[0]
            buffer = f"{scope}.vectors" if scope else "head.vectors"
            slots = self._slots.setdefault(buffer, _Slots(_part(names[0])))
            size = vector_size(self.spec, names) * F32_BYTES
            self._slot_of[key] = Binding(buffer, slots.size_bytes, size)
            slots.names.append((slots.size_bytes, key))
            slots.size_bytes = rounded_up(slots.size_bytes + size, ALIGNMENT)
            slots.needed_bytes += size
            self.contents[buffer] = Content(
                slots.part,
                sum(self.checkpoint.source_bytes(name) for _, each in slots.names for name in each),
                _vectors_reader(self.checkpoint, slots),
            )
        return self._slot_of[key]

    def _need(self, name: str, size_bytes: int, purpose: Purpose) -> None:
        had = self._sizes.get(name, (0, purpose))[0]
        size_bytes = max(had, size_bytes)
        if rounded_up(size_bytes, ALIGNMENT) > self.most_binding_bytes:
            hint = "Fewer rows per pass, or fewer positions, make it smaller." if purpose == "activations" else None
            raise InputError(
                f"{self.spec.name}: {name}: expected {size_bytes:,} bytes in one binding, found room for "
                f"{self.most_binding_bytes:,} on {self.adapter.name}",
                hint=hint,
            )
        self._sizes[name] = (size_bytes, purpose)


def rope_angles(inverse_frequencies: Sequence[float], positions: int) -> Any:
    """Cosines then sines [positions, head_dim], float32 throughout, as models were trained with them."""
    angles = np.arange(positions, dtype=np.float32)[:, None] * np.asarray(inverse_frequencies, np.float32)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)


def _part(name: str) -> str:
    """What a weight is loaded with."""
    if name.startswith("layers."):
        return "layers"
    return "embedding" if name == "embed" else "head"


def _joined(names: Sequence[str]) -> str:
    """`layers.0.q`, `layers.0.k`, `layers.0.v` are `layers.0.qkv`."""
    scope = names[0].rpartition(".")[0]
    joined = "".join(short_name(name) for name in names)
    return f"{scope}.{joined}" if scope else joined


def _pieces(spec: ModelSpec, names: Sequence[str], first: int, last: int) -> list[tuple[str, int, int]]:
    """Rows `first` to `last` of stacked matrices: each one's name and its own rows."""
    pieces, start = [], 0
    for name in names:
        rows = weight_shape(spec, name)[0]
        begin, end = max(first - start, 0), min(last - start, rows)
        if begin < end:
            pieces.append((name, begin, end))
        start += rows
    return pieces


def _matrix_reader(
    checkpoint: Checkpoint, pieces: Sequence[tuple[str, int, int]], weights: WeightFormat
) -> Callable[[], Any]:
    def read() -> Any:
        rows = [checkpoint.rows(name, weights, first, last) for name, first, last in pieces]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    return read


def _vectors_reader(checkpoint: Checkpoint, slots: _Slots) -> Callable[[], Any]:
    def read() -> Any:
        out = np.zeros(slots.size_bytes // F32_BYTES, np.float32)
        for offset, names in slots.names:
            values = np.concatenate([checkpoint.vector(name) for name in names])
            out[offset // F32_BYTES : offset // F32_BYTES + len(values)] = values
        return out

    return read
