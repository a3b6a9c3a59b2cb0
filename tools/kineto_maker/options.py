"""What to generate: the model, the workload, what the profiler records, and how the file is laid out.

The same options always give the same bytes. Model shapes are those of the published Llama configurations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from .faults import FAULTS, Fault

Phase = Literal["prefill", "decode"]
Mode = Literal["eager", "graph", "capture"]
Marks = Literal["sglang", "vllm", "profiler", "none"]
Layout = Literal["kineto", "compact", "oneline", "indent2"]


_FIRST_GRAPH_ID: Final = 17


@dataclass(frozen=True, slots=True)
class Model:
    """Shapes of a Llama model, before tensor parallelism splits it."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    layers: int


MODELS: Final = {
    "llama-3.1-8b": Model(4096, 32, 8, 128, 14336, 128256, 32),
    "llama-3.2-1b": Model(2048, 32, 8, 64, 8192, 128256, 16),
}


@dataclass(frozen=True, slots=True)
class Options:
    """One trace. `fault_ms` is about what the fault `host-late` adds to a decode step.

    Ranks are made one at a time. With `lockstep` (and with the fault `slow-rank`) each knows when the others begin a
    collective and waits for them; else nobody waits.

    A trace of mode `capture` has no steps: the engine captures a graph for each batch size. Only with `batches` does
    the tile of a GEMM follow the batch size; of one `batch`, names are those of 32 requests.

    Raises:
        ValueError: A value is out of range, or the model's heads don't divide by `world`.
    """

    steps: int = 8
    model: str = "llama-3.1-8b"
    layers: int | None = None  # the model's own number
    batch: int = 32  # requests in a decode step
    batches: tuple[int, ...] = ()  # decode steps take these in turn; none: `batch`
    prefill_every: int = 10  # steps 0, N, 2N... are prefill; 0: no step is
    mode: Mode = "eager"  # of the decode steps; a prefill is always eager
    graph_node_ids: bool = False
    drop_kernels: float = 0.0  # share of the replayed kernels whose records are lost
    add_kernels: float = 0.0  # kernels in replays that no capture has, as a share of the replayed ones
    compiled: bool = False  # the model of decode steps went through Inductor
    threads: int = 1  # 2: a second thread computes log-probabilities, on its own stream
    stack: bool = True
    lean: bool = False  # without the Python calls of some 100 ns that lie between the others
    shapes: bool = True
    marks: Marks = "sglang"
    rank: int = 0
    world: int = 1
    lockstep: bool = False  # ranks wait for each other in collectives
    seed: int = 7
    slow: tuple[str, float] | None = None  # kernels whose name matches take this many times as long
    fault: Fault = "none"
    fault_ms: float = 3.0
    layout: Layout = "kineto"
    gz: bool = False

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model: expected one of {', '.join(MODELS)}, found {self.model!r}")
        if self.steps < 1 or min(self.batch, *self.batch_sizes) < 1 or (self.layers is not None and self.layers < 1):
            raise ValueError("steps, batch and layers: expected at least 1")
        if self.prefill_every < 0 or self.fault_ms < 0:
            raise ValueError("prefill_every and fault_ms: expected 0 or more")
        if len(set(self.batches)) < len(self.batches):
            raise ValueError(f"batches: expected each size once, found {list(self.batches)}")
        if not (0 <= self.drop_kernels <= 1 and 0 <= self.add_kernels <= 1):
            raise ValueError("drop_kernels and add_kernels: expected a share from 0 to 1")
        if (self.drop_kernels or self.add_kernels) and self.mode != "graph":
            raise ValueError(f"drop_kernels and add_kernels: expected mode graph, found {self.mode}")
        if self.mode == "capture" and self.fault != "none":
            raise ValueError(f"fault: expected none in mode capture, found {self.fault}")
        if self.threads not in (1, 2):
            raise ValueError(f"threads: expected 1 or 2, found {self.threads}")
        if self.world < 1 or self.shape.kv_heads % self.world:
            raise ValueError(f"world: expected a divisor of {self.shape.kv_heads}, found {self.world}")
        if not 0 <= self.rank < self.world:
            raise ValueError(f"rank: expected 0 to {self.world - 1}, found {self.rank}")
        _check_fault(self)
        if self.slow is not None:
            _check_slow(*self.slow)

    @property
    def shape(self) -> Model:
        """The model's shapes."""
        return MODELS[self.model]

    @property
    def layer_count(self) -> int:
        """Decoder layers in the trace."""
        return self.shape.layers if self.layers is None else self.layers

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Of the decode steps, in turn; of a capture, in order."""
        return self.batches or (self.batch,)

    @property
    def step_count(self) -> int:
        """Steps in the trace; of a capture, graphs."""
        return len(self.batch_sizes) if self.mode == "capture" else self.steps

    @property
    def in_lockstep(self) -> bool:
        """Whether collectives end on all ranks at once."""
        return self.world > 1 and (self.lockstep or self.fault == "slow-rank")

    def phase(self, step: int) -> Phase:
        """What the step with this number does."""
        if self.mode == "capture":
            return "decode"
        return "prefill" if self.prefill_every and step % self.prefill_every == 0 else "decode"

    def batch_at(self, step: int) -> int:
        """Requests of the decode step with this number: prefills take no turn."""
        every = 0 if self.mode == "capture" else self.prefill_every
        decodes = step - (-(-step // every) if every else 0)
        return self.batch_sizes[decodes % len(self.batch_sizes)]

    def graph_id(self, batch: int) -> int:
        """Of the graph that decodes so many requests."""
        return _FIRST_GRAPH_ID + self.batch_sizes.index(batch)


def _check_fault(options: Options) -> None:
    planted = FAULTS.get(options.fault)
    if planted is None:
        return
    if options.mode not in planted.modes:
        raise ValueError(f"fault {options.fault}: expected mode {' or '.join(planted.modes)}, found {options.mode}")
    if options.world < planted.world:
        raise ValueError(f"fault {options.fault}: expected a world of {planted.world} or more, found {options.world}")
    if len(options.batch_sizes) < planted.batches:
        raise ValueError(
            f"fault {options.fault}: expected {planted.batches} or more batches, found {options.batch_sizes}"
        )


def _check_slow(pattern: str, factor: float) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"slow: expected a regular expression, found {pattern!r}: {error}") from error
    if factor <= 0:
        raise ValueError(f"slow: expected a factor above 0, found {factor}")
