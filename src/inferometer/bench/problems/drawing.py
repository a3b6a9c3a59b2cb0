"""Draws the inputs of a definition: from files of the data set, and at random as the input means it.

Real numbers are standard normal, as flashinfer-bench draws them, but for those of `drawn_inputs.json`. Whole numbers
without an entry there have no range that anybody states: they must come from a file. Nothing is imported when tensors
are drawn: a candidate may be in the process then.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inferometer.bench.exchange.blobs import find_tensor
from inferometer.bench.exchange.schema import Definition, Random, Safetensors, TensorSpec, Workload
from inferometer.bench.problems.definition_files import sizes_of
from inferometer.errors import FormatError, InputError

if TYPE_CHECKING:
    from torch import Tensor

_STORED = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool",
}  # fmt: skip
_TAIL = 4  # bytes of a float32 scale
_E4M3_MOST = 448.0


class Drawn(msgspec.Struct, frozen=True):
    """How an input of an operator is drawn; patterns are of whole names."""

    op_type: str
    input: str
    draw: str
    most: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True):
    source: str
    inputs: tuple[Drawn, ...]
    meaning: dict[str, str]


_KNOWN = msgspec.json.decode(Path(__file__).with_name("drawn_inputs.json").read_bytes(), type=_File)


@dataclass(frozen=True)
class Inputs:
    """The inputs of one workload.

    Attributes:
        definition: Checked.
        workload: One of its.
        root: The data set's folder.
        where: The workload's file and line.
    """

    definition: Definition
    workload: Workload
    root: Path
    where: str
    _stored: dict[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Sizes of all axes."""
        return sizes_of(self.where, self.definition, self.workload)

    def check(self) -> None:
        """Refuse a workload whose inputs can't be had; files are only looked at.

        Raises:
            InputError: Which input, and what to do.
        """
        for name in self.workload.inputs:
            if name not in self.definition.inputs:
                has = ", ".join(self.definition.inputs)
                raise FormatError(f"{self.where}: inputs.{name:.80}: {self.definition.name} has only {has}")
        for name, spec in self.definition.inputs.items():
            given = self.workload.inputs.get(name)
            if given is None and not spec.optional and spec.shape is None:
                raise FormatError(f"{self.where}: inputs.{name}: expected a number, found nothing")
            if isinstance(given, Safetensors):
                self._find(name, given, spec)
            elif spec.shape is not None and name in self.tensor_names:
                self._draw_of(name, spec)
            elif isinstance(given, Random):
                raise InputError(
                    f"{self.where}: inputs.{name}: a number drawn at random: its range isn't stated",
                    hint='Give {"type": "scalar", "value": …} in the workload.',
                )

    @cached_property
    def tensor_names(self) -> tuple[str, ...]:
        """Inputs that are tensors here, in their order: an optional one that a workload lacks is none."""
        names = self.definition.inputs.items()
        return tuple(
            name for name, spec in names
            if (spec.shape is not None or isinstance(self.workload.inputs.get(name), Safetensors))
            and not (spec.optional and name not in self.workload.inputs)
            and not hasattr(self.workload.inputs.get(name), "value")
        )  # fmt: skip

    @cached_property
    def scalars(self) -> dict[str, Any]:
        """Plain numbers by name."""
        return {name: each.value for name, each in self.workload.inputs.items() if hasattr(each, "value")}

    def draw(self, seed: int, device: str) -> "dict[str, Tensor]":
        """The tensors; the same seed gives the same ones."""
        import torch

        generator = torch.Generator(device="cpu").manual_seed(seed)
        found = {}
        for name in self.tensor_names:
            spec, given = self.definition.inputs[name], self.workload.inputs.get(name)
            if isinstance(given, Safetensors):
                tensor = self._read(name, given, spec).clone()
            else:
                shape = [self.sizes[axis] for axis in spec.shape or ()]
                tensor = self._draw_of(name, spec)(Draw(torch, generator, shape, getattr(torch, spec.dtype)))
            found[name] = tensor.to(device)
        return found

    def _draw_of(self, name: str, spec: TensorSpec) -> "Callable[[Draw], Tensor]":
        for each in _KNOWN.inputs:
            if re.fullmatch(each.op_type, self.definition.op_type) and re.fullmatch(each.input, name):
                return self._known_draw(name, each)
        if spec.dtype.startswith("int"):
            raise InputError(
                f"{self.where}: inputs.{name}: {spec.dtype} drawn at random: its range isn't stated",
                hint='Give the values in a file: {"type": "safetensors", "path": …, "tensor_key": …}.',
            )
        if spec.dtype == "float4_e2m1":
            raise InputError(
                f"{self.where}: inputs.{name}: float4_e2m1: PyTorch has no tensor with one such value an element",
                hint="Definitions with two values to a byte, as uint8, can be run.",
            )
        return Draw.usual

    def _known_draw(self, name: str, known: Drawn) -> "Callable[[Draw], Tensor]":
        if not known.most:
            return lambda draw: getattr(draw, known.draw)()
        there = [self.sizes[axis] for axis in known.most if axis in self.sizes]
        if not there or (known.draw != "offsets" and len(there) < len(known.most)):
            raise InputError(
                f"{self.where}: inputs.{name}: drawn up to {' times '.join(known.most)}, which isn't an axis here",
                hint="Give the values in a file of safetensors.",
            )
        most = there[0] if known.draw == "offsets" else math.prod(there)
        if most < 1 and known.draw != "offsets":
            raise FormatError(
                f"{self.where}: inputs.{name}: expected {' times '.join(known.most)} above 0, found {most}"
            )
        return lambda draw: getattr(draw, known.draw)(most)

    def _find(self, name: str, given: Safetensors, spec: TensorSpec) -> Any:
        """Where its bytes are, checked against the definition."""
        where = f"{self.where}: inputs.{name}"
        file, stored = find_tensor(self.root, given.path, given.tensor_key, where=where)
        dtype = _STORED.get(stored.dtype, stored.dtype)
        if dtype != spec.dtype:
            raise FormatError(f"{file}: {given.tensor_key}: expected {spec.dtype} as {name} is, found {dtype}")
        expected = tuple(self.sizes[axis] for axis in spec.shape or ())
        if tuple(stored.shape) != expected:
            raise FormatError(
                f"{file}: {given.tensor_key}: expected {list(expected)} as {name} is, found {list(stored.shape)}"
            )
        return file, stored

    def _read(self, name: str, given: Safetensors, spec: TensorSpec) -> Any:
        if name not in self._stored:
            import torch

            file, stored = self._find(name, given, spec)
            with file.open("rb") as source:
                source.seek(stored.start)
                data = bytearray(source.read(stored.end - stored.start))
            flat = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
            self._stored[name] = flat.view(getattr(torch, spec.dtype)).reshape(stored.shape)
        return self._stored[name]


@dataclass(frozen=True)
class Draw:
    """One tensor at random; its methods are named as in `drawn_inputs.json`."""

    torch: Any
    generator: Any
    shape: list[int]
    dtype: Any

    def usual(self) -> "Tensor":
        """Standard normal numbers; fp8 within ±2, whose codes lie where values do; bytes and truths evenly."""
        if self.dtype == self.torch.bool:
            return self._whole(2).bool()
        if self.dtype == self.torch.uint8:
            return self._whole(256).to(self.dtype)
        values = self._normal()
        return (values.clamp(-2, 2) if self.dtype.itemsize == 1 else values).to(self.dtype)

    def probabilities(self) -> "Tensor":
        return (2 * self._normal()).softmax(-1).to(self.dtype)

    def share(self) -> "Tensor":
        return (0.05 + 0.95 * self._even()).to(self.dtype)

    def scale(self) -> "Tensor":
        return (0.01 + 0.02 * self._even()).to(self.dtype)

    def count(self, most: int) -> "Tensor":
        return (1 + self._whole(most)).to(self.dtype)

    def index(self, most: int) -> "Tensor":
        count = math.prod(self.shape)
        if count <= most <= 1 << 24:
            return self.torch.randperm(most, generator=self.generator)[:count].reshape(self.shape).to(self.dtype)
        return self._whole(most).to(self.dtype)

    def offsets(self, most: int) -> "Tensor":
        count = math.prod(self.shape) - 1
        if count < 1:
            return self.torch.zeros(self.shape, dtype=self.dtype)
        spare = max(0, most - count)
        cuts = self.torch.randint(spare + 1, (count - 1,), generator=self.generator).sort().values
        inner = cuts + self.torch.arange(1, count) if most >= count else cuts.clamp(max=most)
        ends = [self.torch.zeros(1, dtype=self.torch.int64), inner, self.torch.full((1,), most)]
        return self.torch.cat(ends).to(self.dtype)

    def unit_rows(self) -> "Tensor":
        values = self._normal()
        return (values / values.norm(dim=-1, keepdim=True).clamp(min=1e-6)).to(self.dtype)

    def scaled_fp8_pages(self) -> "Tensor":
        pages, tokens, _, width = self.shape
        keys = self.torch.randn(pages, tokens, width - _TAIL, generator=self.generator)
        scale = keys.abs().amax(-1, keepdim=True).clamp(min=1e-4) / _E4M3_MOST
        codes = (keys / scale).to(self.torch.float8_e4m3fn).view(self.torch.uint8).reshape(pages, -1)
        tails = scale.contiguous().view(self.torch.uint8).reshape(pages, -1)
        return self.torch.cat([codes, tails], 1).reshape(self.shape).view(self.dtype)

    def _normal(self) -> Any:
        return self.torch.randn(self.shape, generator=self.generator)

    def _even(self) -> Any:
        return self.torch.rand(self.shape, generator=self.generator)

    def _whole(self, below: int) -> Any:
        return self.torch.randint(below, self.shape, generator=self.generator)
