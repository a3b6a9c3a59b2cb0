"""The nodes of planted faults, for the places in the program where they belong; none of a fault that isn't planted."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from . import aten
from .frames import builtin, function, small_calls
from .kernels import SMS, Kernels
from .nodes import (
    BF16,
    FP32,
    INT64,
    MAIN_STREAM,
    SECOND_STREAM,
    Busy,
    Copy,
    Frame,
    Join,
    Launch,
    Mark,
    Node,
    Op,
    Tensor,
    Wait,
)
from .options import Options, Phase

_SPLITS, _MANY_SPLITS = 4, 64  # of a matmul's depth
_SLOWER: Final = 4
_PCIE_SLOWER: Final = 20  # than NVLink, one way
_COPIED_BYTES: Final = 64 * 10**6
_WORDS: Final = 128
_ONE_SM_BYTES_PER_S: Final = 25 * 10**9  # a multiprocessor's part of 3.35 TB/s
_ITEMS: Final = 3  # a request: its temperature, top-p and min-p
_CONFIGS, _RUNS, _COMPILE_NS = 8, 20, 12_000_000  # that an autotuner compiles, how often it runs each, and one's time


class PlantedNodes:
    """What the fault of `options` adds to a phase."""

    def __init__(self, options: Options, phase: Phase, requests: int, rows: int) -> None:
        self._fault = options.fault
        self._in_decode = phase == "decode"
        self._is_graph = options.mode == "graph" and self._in_decode
        self._requests = requests
        self._rows = rows
        self._hidden, self._vocab = options.shape.hidden, options.shape.vocab
        self._kernels = Kernels(options)
        self.splits = _MANY_SPLITS if self._fault == "split-k" else _SPLITS
        self.collective_factor = _PCIE_SLOWER if self._fault == "slow-collectives" else 1
        self.draws = requests if self._fault == "repeated-work" and self._in_decode else 1
        self._slow_linear = f"RowParallelLinear_{2 * (options.layer_count // 2) + 1}"

    def matmul(self, name: str, launch: Launch) -> Launch:
        """The kernel of the projection `name`."""
        is_slow = self._fault == "slow-layer" and name == self._slow_linear
        return replace(launch, ns=_SLOWER * launch.ns) if is_slow else launch

    def around_o(self, width: int, depth: int, linear: Frame) -> tuple[Frame, ...]:
        """Attention's last projection with casts before and after it."""
        if self._fault != "casts":
            return (linear,)
        return *self._there_and_back(depth), linear, *self._there_and_back(width)

    def norm(self, fused: Op) -> tuple[Node, ...] | None:
        """RMSNorm in pieces, for its fused operator; None where that stays."""
        if self._fault != "unfused-norm":
            return None
        x_TD, row_T1 = Tensor((self._rows, self._hidden)), Tensor((self._rows, 1), FP32)
        x32_TD = x_TD._replace(dtype=FP32)
        wide, narrow = 8 * self._rows * self._hidden, 8 * self._rows
        add = (self._piece("add", "add_residual", x_TD, 3 * wide // 4),) if "add" in fused.name else ()
        return (
            *add,
            builtin("to", aten.to(x_TD, FP32, self._launch("cast_float", 3 * wide // 4)), of="Tensor"),
            self._piece("pow", "pow", x32_TD, wide),
            self._piece("mean", "mean", x32_TD, wide // 2),
            self._piece("add", "add_eps", row_T1, narrow),
            self._piece("rsqrt", "rsqrt", row_T1, narrow),
            self._piece("mul", "mul_rows", x32_TD, wide),
            builtin("to", aten.to(x32_TD, BF16, self._launch("cast_bf16", 3 * wide // 4)), of="Tensor"),
            self._piece("mul", "mul_weight", x_TD, wide // 2),
        )

    def before_block(self) -> tuple[Node, ...]:
        """Before attention and before the MLP of every layer."""
        return (self._item(),) if self._fault == "sync-points" and not self._is_graph else ()

    def mlp(self, body: tuple[Node, ...]) -> tuple[Node, ...]:
        """The parts of an MLP, on a stream of their own, or after a wait."""
        if self._fault != "serial-stream":
            return *self.before_block(), *body
        moved = (_on_stream(node, SECOND_STREAM) for node in body)
        return Join(SECOND_STREAM, MAIN_STREAM), *moved, Join(MAIN_STREAM, SECOND_STREAM)

    def in_sampler(self, probs_TV: Tensor) -> tuple[Node, ...]:
        """Between the probabilities and the draw."""
        if not self._in_decode:
            return ()
        if self._fault == "sync-points" and self._is_graph:
            items = (self._item() for _ in range(_ITEMS * self._requests))
            return (function("serving/params.py(77): read_params", *items),)
        return (self._largest(probs_TV),) if self._fault == "low-occupancy" else ()

    def with_batch(self) -> tuple[Node, ...]:
        """With the batch's own small copies to the device, before the model."""
        if self._fault == "launch-storm" and self._in_decode:  # here the device has nothing queued
            words = (self._penalty() for _ in range(_WORDS))
            return (function("serving/penalties.py(121): ban_words", *words),)
        if self._fault != "exposed-copy" or not self._in_decode:
            return ()
        mask = Tensor((_COPIED_BYTES // 4,), FP32)
        return (builtin("to", aten.to(mask, FP32, Copy("HtoD", _COPIED_BYTES)), of="Tensor"),)

    def tuning(self) -> Frame:
        """What an autotuner does before the first step."""
        launch = replace(self._launch("mul_weight", 0), api="cuLaunchKernelEx", grid=(SMS, 1, 1), ns=100_000)
        configs = (
            function(
                "triton/runtime/autotuner.py(163): _bench",
                function("triton/compiler/compiler.py(226): compile", *small_calls(20), Busy(_COMPILE_NS)),
                function(
                    "triton/testing.py(96): do_bench",
                    *(replace(launch, kernel=f"_matmul_config_{number}") for _ in range(_RUNS)),
                    builtin("synchronize", Wait("cudaDeviceSynchronize")),
                ),
            )
            for number in range(_CONFIGS)
        )
        return function("triton/runtime/autotuner.py(211): run", *configs)

    def _there_and_back(self, width: int) -> tuple[Frame, Frame]:
        x_TD = Tensor((self._rows, width))
        moved = 6 * self._rows * width
        up = aten.to(x_TD, FP32, self._launch("cast_float", moved))
        down = aten.to(x_TD._replace(dtype=FP32), BF16, self._launch("cast_bf16", moved))
        return builtin("float", up, of="Tensor"), builtin("to", down, of="Tensor")

    def _item(self) -> Frame:
        local = Op("aten::_local_scalar_dense", (Tensor((), INT64),), (Copy("DtoH", 8), Wait("cudaStreamSynchronize")))
        return builtin("item", Op("aten::item", (Tensor((), INT64),), (local,)), of="Tensor")

    def _penalty(self) -> Frame:
        column_T = Tensor((self._requests,), FP32, (self._vocab,))
        pieces = (("mul", "mul_rows"), ("add", "add_eps"), ("pow", "pow"), ("mul", "mul_rows"))
        each = (self._piece(name, key, column_T, 8 * self._requests) for name, key in pieces)
        return function("serving/penalties.py(134): ban_word", *small_calls(2), *each)

    def _largest(self, probs_TV: Tensor) -> Frame:
        probs_bytes = 4 * probs_TV.dims[0] * probs_TV.dims[-1]
        one_block = replace(self._kernels.launch("max", (1, 1, 1)), ns=probs_bytes * 10**9 // _ONE_SM_BYTES_PER_S)
        return builtin("max", Op("aten::max", (probs_TV,), (aten.empty((), FP32), one_block)), of="type")

    def _piece(self, name: str, key: str, tensor: Tensor, moved_bytes: int) -> Frame:
        op = Op(f"aten::{name}", (tensor,), (aten.empty(tensor.dims, tensor.dtype), self._launch(key, moved_bytes)))
        return builtin(name, op, of="Tensor")

    def _launch(self, key: str, moved_bytes: int) -> Launch:
        return self._kernels.launch(key, (max(1, moved_bytes // 8192), 1, 1), moved_bytes=moved_bytes)


def _on_stream(node: Node, stream: int) -> Node:
    """The same work, its kernels on a stream."""
    if isinstance(node, Launch):
        return replace(node, stream=stream)
    if isinstance(node, Frame | Op | Mark):
        return replace(node, body=tuple(_on_stream(inner, stream) for inner in node.body))
    return node
