"""One step at one place of a program: where its operands lie, and how a launch of it is put together.

A kernel gets those bindings and constants that it declares, by their names, so that variants may differ in them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from inferometer.backends.wgsl.source import read_kernel
from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.plan.costs import Cost
from inferometer.engines.webgpu.plan.kernel_path import NEXT_NORM, PathStep, holds
from inferometer.engines.webgpu.plan.layout import Layout
from inferometer.engines.webgpu.plan.selection import Chosen
from inferometer.engines.webgpu.plan.weight_shapes import vector_size
from inferometer.engines.webgpu.program import Binding, Dispatch, Extent, Grid, Phase, Pipeline
from inferometer.errors import FormatError, InferometerError

Arrays = Mapping[str, Binding]
_OF_LAYER = re.compile(r"layers\.(\d+)\.")


def weight_name(spec: ModelSpec, name: str, layer: int | None) -> str:
    """A path's name for a weight in a layer, or outside of layers, as the checkpoint has it."""
    if layer is None or "." in name:
        return name
    if name == NEXT_NORM:
        return "final_norm" if layer + 1 == spec.layers else f"layers.{layer + 1}.attention_norm"
    return f"layers.{layer}.{name}"


@dataclass
class Pipelines:
    """Each kernel with constants once."""

    made: list[Pipeline] = field(default_factory=list)

    @property
    def requires(self) -> tuple[str, ...]:
        """Features that the kernels need."""
        return tuple(sorted({each for one in self.made for each in read_kernel(one.kernel).requires}))

    def index(self, kernel: str, constants: Mapping[str, float]) -> int:
        """Its number, given when it is first asked for.

        Raises:
            InferometerError: A constant that the kernel needs isn't known here: a bug of ours.
        """
        source = read_kernel(kernel)
        kept = {name: float(value) for name, value in constants.items() if name in source.constants}
        if missing := set(source.required).difference(kept):
            raise InferometerError(f"{kernel}.wgsl: no value for the constants {', '.join(sorted(missing))}")
        pipeline = Pipeline(kernel, kept)
        if pipeline not in self.made:
            self.made.append(pipeline)
        return self.made.index(pipeline)


@dataclass
class StepContext:
    """One step at one place: everything that its dispatches are made of.

    Attributes:
        widths: Numbers of a row of each activation written so far.
        heights: How many rows these may have.
        place: Begins messages: `gemma3: decode.layer: linear:o_proj`.
    """

    phase: Phase
    step: PathStep
    chosen: Chosen
    layer: int | None
    layout: Layout
    pipelines: Pipelines
    widths: dict[str, int]
    heights: dict[str, int]
    place: str

    @property
    def label_layer(self) -> int | None:
        """The layer that a dispatch is reported as: its own, or the one whose weight a step outside of layers names."""
        named = {int(match[1]) for name in self.step.weights if (match := _OF_LAYER.match(name))}
        return named.pop() if self.layer is None and len(named) == 1 else self.layer

    def read(self, index: int, width: int | None = None) -> Binding:
        """An input of so many numbers per row.

        Raises:
            FormatError: It has another width: the path's steps don't fit each other.
        """
        name = self.step.inputs[index]
        found = self.widths[name]
        if width is not None and width != found:
            raise FormatError(f"{self.place}: {name}: expected rows of {width} numbers, found {found}")
        return self.layout.activation(name, found * (1 if self.phase == "decode" else self.heights[name]))

    def write(self, index: int, width: int) -> Binding:
        """An output of so many numbers per row."""
        name = self.step.outputs[index]
        rows = self.layout.most_rows if self.phase == "prefill" else 1
        self.widths[name] = width
        self.heights[name] = max(rows, self.heights.get(name, 0))
        return self.layout.activation(name, rows * width)

    def weight_name(self, name: str) -> str:
        """A step's name for a weight, as the checkpoint has it."""
        return weight_name(self.layout.spec, name, self.layer)

    def weights(self) -> tuple[str, ...]:
        """Names of its weights in the checkpoint."""
        return tuple(map(self.weight_name, self.step.weights))

    def matrices(self) -> tuple[str, ...]:
        """Those of them that are matrices of a product."""
        return tuple(map(self.weight_name, self.step.matrices))

    def vector(self, index: int, width: int) -> Binding:
        """A norm's weight."""
        name = self.weights()[index]
        if vector_size(self.layout.spec, [name]) != width:
            raise FormatError(f"{self.place}: {name}: expected {width} numbers for the rows of {self.step.inputs[0]}")
        return self.layout.vector([name])

    def extra(self) -> Binding | None:
        """Biases or norms of heads, where the model has them."""
        if not self.step.extra or not holds(self.step.extra_when, self.layout.spec):
            return None
        return self.layout.vector([self.weight_name(name) for name in self.step.extra])

    def dispatch(
        self,
        kernel: str,
        arrays: Arrays,
        constants: Mapping[str, float],
        grid: Grid,
        cost: Cost,
        shapes: str,
        op: str | None = None,
    ) -> Dispatch:
        """One launch. Constants of the choice go before those of the shapes, which a path can't change."""
        known = {"state": self.layout.words("state"), **arrays}
        bindings = []
        for binding in read_kernel(kernel).bindings:
            if binding.name not in known:
                raise InferometerError(f"{kernel}.wgsl: nothing to bind as {binding.name}")
            bindings.append(known[binding.name])
        return Dispatch(
            op=op or self.step.op,
            role=self.step.role,
            layer=self.label_layer,
            pipeline=self.pipelines.index(kernel, {**self.chosen.constants, **constants}),
            bindings=tuple(bindings),
            grid=grid,
            flops=cost.flops,
            bytes_read=cost.bytes_read,
            bytes_written=cost.bytes_written,
            shapes=shapes,
        )

    def many_rows(self) -> Extent:
        """A workgroup per row."""
        return Extent("tokens")
