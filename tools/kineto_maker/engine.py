"""The serving loop around the model: what an SGLang-like scheduler does for one step, faults included.

Everything of a step that runs on the device is queued inside `run_batch`, and so inside the step's mark; the step
ends by waiting for its tokens. Between steps the scheduler only works on the host.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from . import aten
from .compiled import compile_model
from .frames import builtin, custom_op, function, module, small_calls
from .kernels import Kernels
from .llama import CONTEXT, PROMPT_TOKENS, PROMPTS, Llama
from .nodes import FP32, INT32, INT64, Busy, Call, Copy, Fill, Frame, Mark, Node, Op, Replay, Tensor, Wait, launches_in
from .options import Options, Phase
from .planted import PlantedNodes


class Program(NamedTuple):
    """One turn of the scheduler's loop: receive and choose a batch, run it, process its tokens."""

    mark: str | None
    before: tuple[Frame, ...]
    run_batch: Frame
    after: tuple[Frame, ...]


class Engine:
    """Builds the program of each step. Steps of one phase and batch share their nodes, all but the outermost."""

    roots: Final = (
        "sglang/srt/managers/scheduler.py(3010): run_scheduler_process",
        "torch/utils/_contextlib.py(120): decorate_context",
        "sglang/srt/managers/scheduler.py(1120): event_loop_normal",
    )

    def __init__(self, options: Options) -> None:
        self._options = options
        kinds = {_kind(options, number) for number in range(options.steps)}
        self._before = {phase: _before_batch(phase) for phase, _ in kinds}
        self._run = {kind: _RunBatch(options, *kind).body() for kind in kinds}
        self._after = {kind: _after_batch(*kind) for kind in kinds}
        self._before_first = _tuning(options)

    def step(self, number: int) -> Program:
        """The program of the step with this number."""
        kind, mark = _kind(self._options, number), _mark_name(self._options, number)
        work = (*self._before_first, *self._run[kind]) if number == 0 else self._run[kind]
        body = work if mark is None else (Mark(mark, work),)
        run_batch = function("sglang/srt/managers/scheduler.py(2461): run_batch", *body)
        return Program(mark, self._before[kind[0]], run_batch, self._after[kind])


def _tuning(options: Options) -> tuple[Frame, ...]:
    return (PlantedNodes(options, "decode", 1, 1).tuning(),) if options.fault == "warm-up" else ()


def _has_graph(options: Options, requests: int) -> bool:
    """Whether the engine captured a graph of this batch size."""
    return options.fault != "graph-breaks" or options.batch_sizes.index(requests) % 2 == 0


def _kind(options: Options, number: int) -> tuple[Phase, int]:
    """A step's phase and its requests."""
    phase = options.phase(number)
    return phase, options.batch_at(number) if phase == "decode" else PROMPTS


def _mark_name(options: Options, number: int) -> str | None:
    prefill = options.phase(number) == "prefill"
    batch = options.batch_at(number)
    if options.marks == "profiler":
        return f"ProfilerStep#{number}"
    if options.marks == "sglang" and prefill:
        return f"step[EXTEND bs={PROMPTS} toks={PROMPTS * PROMPT_TOKENS}]"
    if options.marks == "sglang":
        return f"step[DECODE bs={batch}]"
    if options.marks == "vllm":
        context, generation = (PROMPTS, 0) if prefill else (0, batch)
        return f"execute_context_{context}({context * PROMPT_TOKENS})_generation_{generation}({generation})"
    return None


def _before_batch(phase: Phase) -> tuple[Frame, ...]:
    prepare = {
        "prefill": "sglang/srt/managers/scheduler.py(2186): get_new_batch_prefill",
        "decode": "sglang/srt/managers/schedule_batch.py(1930): prepare_for_decode",
    }
    receive = function(
        "sglang/srt/managers/scheduler.py(1402): recv_requests",
        builtin("recv_pyobj", *small_calls(2), of="zmq.sugar.socket.Socket"),
        *small_calls(12),
    )
    choose = function(
        "sglang/srt/managers/scheduler.py(2071): get_next_batch_to_run",
        function(prepare[phase], *small_calls(40)),
        *small_calls(8),
    )
    return receive, choose


def _after_batch(phase: Phase, requests: int) -> tuple[Frame, ...]:
    mixin = "sglang/srt/managers/scheduler_output_processor_mixin.py"
    check = function("sglang/srt/managers/schedule_batch.py(861): check_finished", *small_calls(3))
    line = 289 if phase == "decode" else 64
    process = function(
        f"{mixin}({line}): process_batch_result_{phase}",
        *(check for _ in range(requests)),
        function(f"{mixin}(640): stream_output", *small_calls(20)),
    )
    return (function("sglang/srt/managers/scheduler.py(2588): process_batch_result", process),)


class _RunBatch:
    """What `run_batch` does in one phase."""

    def __init__(self, options: Options, phase: Phase, requests: int) -> None:
        self._options = options
        self._graph = options.mode == "graph" and phase == "decode" and _has_graph(options, requests)
        self._fault = options.fault if phase == "decode" else "none"
        self._phase = phase
        self._model = Llama(options, phase, requests)
        self._planted = PlantedNodes(options, phase, requests, self._model.rows)
        self._kernels = Kernels(options)
        vocab = options.shape.vocab
        self._probs_TV = Tensor((requests, vocab), FP32)
        self._probs_bytes = requests * vocab * 4

    def body(self) -> tuple[Node, ...]:
        worker = function(
            "sglang/srt/managers/tp_worker.py(445): forward_batch_generation",
            self._new_batch(),
            function("sglang/srt/model_executor/model_runner.py(3123): forward", self._forward()),
            function("sglang/srt/model_executor/model_runner.py(2702): sample", self._sampler()),
            *self._tokens_to_host(),
        )
        get_batch = function("sglang/srt/managers/schedule_batch.py(2501): get_model_worker_batch", *small_calls(20))
        return get_batch, worker

    def _new_batch(self) -> Frame:
        rows = self._model.rows
        ids_T, lengths_T = Tensor((rows,), INT64), Tensor((rows,), INT32)
        launch = self._kernels.launch
        small = (-(-rows // 512), 1, 1)
        ops = (
            Op("aten::fill_", (lengths_T, 1), (launch("fill", small),), autograd=True),
            Op("aten::add", (ids_T, -1, 1), (aten.empty((rows,), INT64), launch("add", small))),
            Op("aten::cumsum", (ids_T, 0, None), (launch("scan_init", (1, 1, 1)), launch("scan", (1, 1, 1)))),
            aten.to(ids_T, INT64, Copy("HtoD", 8 * rows)),
            aten.to(ids_T, INT32, launch("cast_int32", small)),
        )
        return function(
            "sglang/srt/model_executor/forward_batch_info.py(443): init_new",
            *small_calls(24),
            *ops,
            Fill(4 * rows),
            *self._planted.with_batch(),
        )

    def _forward(self) -> Frame:
        model = self._model.forward()
        if self._options.compiled and self._phase == "decode":
            model = compile_model(model)
        if self._graph:
            requests = self._model.requests
            replay = Replay(self._options.graph_id(requests), requests, launches_in((model,)))
            return function(
                "sglang/srt/model_executor/cuda_graph_runner.py(1333): replay",
                function(
                    "sglang/srt/model_executor/cuda_graph_runner.py(1251): replay_prepare",
                    *small_calls(16),
                    self._kv_indices(),
                ),
                builtin("replay", replay, of="torch.cuda.CUDAGraph"),
            )
        frames = {"decode": "model_runner.py(2933): forward_decode", "prefill": "model_runner.py(2961): forward_extend"}
        return function(f"sglang/srt/model_executor/{frames[self._phase]}", self._kv_indices(), model)

    def _kv_indices(self) -> Frame:
        requests = self._model.requests
        launch = self._kernels.launch("kv_indices", (requests, 1, 1), moved_bytes=8 * requests * CONTEXT)
        return function(
            "sglang/srt/layers/attention/flashinfer_backend.py(1022): call_begin_forward",
            *small_calls(6),
            function("triton/runtime/jit.py(569): run", *small_calls(18), launch),
        )

    def _sampler(self) -> Frame:
        late = (self._rescore_on_host(),) if self._fault == "host-late" else ()
        return module(
            "Sampler_0",
            "sglang/srt/layers/sampler.py(83): forward",
            *small_calls(10),
            *self._softmax(),
            *late,
            *self._planted.in_sampler(self._probs_TV),
            *((self._draw(),) * self._planted.draws),
        )

    def _softmax(self) -> tuple[Node, ...]:
        probs_TV, requests = self._probs_TV, self._model.requests
        divide = self._kernels.launch(
            "divide", (-(-self._probs_bytes // 1024), 1, 1), moved_bytes=2 * self._probs_bytes
        )
        softmax = self._kernels.launch("softmax", (requests, 1, 1), moved_bytes=2 * self._probs_bytes)
        return (
            builtin("div_", Op("aten::div_", (probs_TV, Tensor((requests, 1), FP32)), (divide,)), of="Tensor"),
            builtin(
                "softmax",
                Op("aten::softmax", (probs_TV, -1, None), (Op("aten::_softmax", (probs_TV, -1, False), (softmax,)),)),
                of="type",
            ),
        )

    def _draw(self) -> Frame:
        requests = self._model.requests // self._planted.draws
        tops = (Tensor((requests,), INT32), Tensor((requests,), FP32))
        moved = 4 * self._probs_bytes // self._planted.draws
        sample = self._kernels.launch("sample", (requests, 1, 1), moved_bytes=moved)
        op = Op("sgl_kernel::top_k_top_p_sampling_from_probs", (self._probs_TV, *tops, True), (sample,))
        clamp = Op("triton_poi_fused_clamp_sub_0", (tops[0], requests), (self._kernels.launch("clamp", (1, 1, 1)),))
        return function(
            "sglang/srt/layers/sampler.py(244): top_k_top_p_sample",
            custom_op("sgl_kernel/sampling.py(283): top_k_top_p_sampling_from_probs", op),
            function("torch/_inductor/runtime/triton_heuristics.py(1088): run", *small_calls(6), clamp),
        )

    def _rescore_on_host(self) -> Frame:
        """The fault: a token-by-token logits processor, written in Python, that needs a number from the device."""
        requests = self._model.requests
        scalar = Tensor((), INT64)
        best = self._kernels.launch("max", (requests, 1, 1), moved_bytes=self._probs_bytes)
        local = Op("aten::_local_scalar_dense", (scalar,), (Copy("DtoH", 8), Wait("cudaStreamSynchronize")))
        share_ns = round(self._options.fault_ms * 1e6 / requests)
        per_request = (
            function(
                "serving/penalties.py(58): rescore_request",
                function("serving/penalties.py(74): count_ngrams", *small_calls(3), Busy(share_ns)),
            )
            for _ in range(requests)
        )
        return function(
            "serving/penalties.py(31): rescore",
            builtin("argmax", Op("aten::argmax", (self._probs_TV, None, False), (best,)), of="Tensor"),
            builtin("item", Op("aten::item", (scalar,), (local,)), of="Tensor"),
            *per_request,
        )

    def _tokens_to_host(self) -> tuple[Frame, ...]:
        tokens_T = Tensor((self._model.requests,), INT64)
        copy = aten.to(tokens_T, INT64, Copy("DtoH", 8 * self._model.requests))
        return (
            function("sglang/srt/managers/utils.py(56): copy_to_cpu", builtin("to", copy, of="Tensor")),
            function("torch/cuda/streams.py(183): record", builtin("record", Call("cudaEventRecord"), of="Event")),
            function(
                "torch/cuda/streams.py(209): synchronize",
                builtin("synchronize", Wait("cudaEventSynchronize"), of="Event"),
            ),
        )
