"""The capture of decode graphs, one a batch size, as an SGLang-like engine does it when it starts.

The program that is captured is the one that a decode step replays in mode `graph`. PyTorch seeds its random numbers
just before, with two kernels that the device does run.
"""

from __future__ import annotations

from typing import Final

from .compiled import compile_model
from .engine import Program
from .frames import builtin, function, small_calls
from .kernels import Kernels
from .llama import Llama
from .nodes import INT64, Call, Capture, Frame, Mark, Node, Op, Tensor, Wait
from .options import Options

_RUNNER: Final = "sglang/srt/model_executor/cuda_graph_runner.py"
_END_CALLS: Final = (
    "hipStreamEndCapture",
    "hipGraphGetNodes",
    "hipDriverGetVersion",
    "hipGraphInstantiateWithFlags",
    "hipGraphDestroy",
)


class GraphCapture:
    """Builds the program of each capture."""

    roots: Final = (
        "sglang/srt/managers/scheduler.py(3932): run_scheduler_process",
        "sglang/srt/managers/scheduler.py(432): __init__",
        "sglang/srt/managers/scheduler.py(693): init_model_worker",
        "sglang/srt/managers/scheduler.py(648): init_tp_model_worker",
        "sglang/srt/managers/tp_worker.py(260): __init__",
        "sglang/srt/managers/tp_worker.py(345): _init_model_runner",
        "sglang/srt/model_executor/model_runner.py(508): __init__",
        "sglang/srt/model_executor/model_runner.py(771): initialize",
        "sglang/srt/model_executor/model_runner.py(2792): init_device_graphs",
        f"{_RUNNER}(718): __init__",
        f"{_RUNNER}(925): capture",
        f"{_RUNNER}(913): _capture_one_stream",
    )

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kernels = Kernels(options)

    def step(self, number: int) -> Program:
        """The capture of the batch size with this number."""
        batch, marks = self._options.batch_at(number), self._options.marks
        body: Node = self._capture(batch)
        mark = None if marks == "none" else f"capture_{batch}_DECODE"
        if mark is not None:
            body = Mark(mark, (body,))
        if marks == "profiler":
            mark = f"ProfilerStep#{number}"
            body = Mark(mark, (body,))
        outer = function(f"{_RUNNER}(1201): capture_one_batch_size", *small_calls(30), body)
        return Program(mark, (), outer, ())

    def _capture(self, batch: int) -> Frame:
        model = Llama(self._options, "decode", batch).forward()
        if self._options.compiled:
            model = compile_model(model)
        decorated = function("torch/utils/_contextlib.py(117): decorate_context", Capture((model,)))
        end = function("torch/cuda/graphs.py(119): capture_end", *(Call(api) for api in _END_CALLS))
        return function(
            f"{_RUNNER}(941): _capture_graph",
            *small_calls(6),
            self._enter(),
            function(f"{_RUNNER}(1147): run_once", decorated),
            function("torch/cuda/graphs.py(264): __exit__", end),
        )

    def _enter(self) -> Frame:
        seed = Tensor((1,), INT64)
        fills = (
            Op("aten::fill_", (seed, value), (self._kernels.launch("fill", (1, 1, 1)),), autograd=True)
            for value in (self._options.seed, 0)
        )
        synchronize = function(
            "torch/cuda/__init__.py(1073): synchronize", builtin("_cuda_synchronize", Wait("hipDeviceSynchronize"))
        )
        begin = function("torch/cuda/graphs.py(98): capture_begin", *fills, Call("hipStreamBeginCapture"))
        return function("torch/cuda/graphs.py(240): __enter__", synchronize, begin)
