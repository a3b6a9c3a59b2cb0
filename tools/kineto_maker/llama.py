"""The forward pass of a Llama model in an SGLang-like engine: modules, operators and kernels of one phase.

Decode attends with FlashInfer, prefill with FlashAttention 3; bf16 throughout; tensor parallelism splits heads
and feed-forward, with a custom all-reduce in decode and NCCL on its own stream in prefill. All requests of a
batch have the same length. Dims: T tokens of the step, H heads, d head size, D hidden.
"""

from __future__ import annotations

from typing import Final

from . import aten
from .frames import builtin, custom_op, function, module, small_calls
from .kernels import SMS, Kernels
from .nodes import BF16, FP32, INT32, INT64, MAIN_STREAM, NCCL_STREAM, Call, Frame, Join, Launch, Node, Op, Tensor
from .options import Options, Phase
from .planted import PlantedNodes

CONTEXT: Final = 512  # tokens that a decoding request has behind it
PROMPTS: Final = 4
PROMPT_TOKENS: Final = 512
_CACHE_SLOTS: Final = 1 << 19
_SPLITS: Final = 4  # of the attended positions
_EPS: Final = "1.0000000000000001e-05"
_ITEM: Final = 2  # bytes of a bf16
_FORWARD_CUDA: Final = "sglang/srt/layers/utils/multi_platform.py(81): forward"


class Llama:
    """Builds the forward pass of a phase: `rows` tokens of `requests` sequences."""

    def __init__(self, options: Options, phase: Phase, requests: int) -> None:
        self.requests = requests
        self.rows = requests if phase == "decode" else requests * PROMPT_TOKENS
        self._phase = phase
        self._world = options.world
        self._layers = options.layer_count
        self._shape = options.shape
        self._kernels = Kernels(options, requests if phase == "decode" and options.batches else None)
        self._planted = PlantedNodes(options, phase, requests, self.rows)
        self._heads = self._shape.heads // options.world
        self._kv_heads = self._shape.kv_heads // options.world
        self._x_TD = Tensor((self.rows, self._shape.hidden))
        self._weight_D = Tensor((self._shape.hidden,))
        self._x_bytes = self.rows * self._shape.hidden * _ITEM

    def forward(self) -> Frame:
        """Embedding, decoder layers, last norm and logits."""
        layers = (self._layer(index) for index in range(self._layers))
        model = module(
            "LlamaModel_0",
            "sglang/srt/models/llama.py(352): forward",
            self._embedding(),
            *layers,
            self._add_norm(2 * self._layers),
        )
        return module("LlamaForCausalLM_0", "sglang/srt/models/llama.py(448): forward", model, self._logits())

    def _embedding(self) -> Frame:
        table, ids_T = Tensor((self._shape.vocab, self._shape.hidden)), Tensor((self.rows,), INT64)
        key, blocks = ("gather", 2 * SMS) if self._phase == "decode" else ("gather_rows", self.rows)
        launch = self._kernels.launch(key, (blocks, 1, 1), moved_bytes=2 * self._x_bytes)
        select = Op("aten::index_select", (table, 0, ids_T), (aten.empty((0,)), launch))
        op = Op("aten::embedding", (table, ids_T, -1, False, False), (select,))
        return module(
            "VocabParallelEmbedding_0",
            "sglang/srt/layers/vocab_parallel_embedding.py(469): forward",
            *small_calls(4),
            function("sglang/srt/layers/quantization/unquant.py(88): embedding", builtin("embedding", op)),
            *self._all_reduce(),
        )

    def _layer(self, index: int) -> Frame:
        return module(
            f"LlamaDecoderLayer_{index}",
            "sglang/srt/models/llama.py(277): forward",
            *small_calls(2, 3),
            self._add_norm(2 * index) if index else self._first_norm(),
            self._attention(index),
            self._add_norm(2 * index + 1),
            self._mlp(index),
        )

    def _first_norm(self) -> Frame:
        launch = self._kernels.launch("norm", (self.rows, 1, 1), moved_bytes=2 * self._x_bytes)
        op = Op("sgl_kernel::rmsnorm", (self._x_TD, self._x_TD, self._weight_D, _EPS, True), (launch,))
        return self._norm(0, "sgl_kernel/elementwise.py(11): rmsnorm", op)

    def _add_norm(self, index: int) -> Frame:
        launch = self._kernels.launch("add_norm", (self.rows, 1, 1), moved_bytes=4 * self._x_bytes)
        op = Op("sgl_kernel::fused_add_rmsnorm", (self._x_TD, self._x_TD, self._weight_D, _EPS, True), (launch,))
        return self._norm(index, "sgl_kernel/elementwise.py(42): fused_add_rmsnorm", op)

    def _norm(self, index: int, wrapper: str, op: Op) -> Frame:
        pieces = self._planted.norm(op)
        if pieces is not None:
            native = function("sglang/srt/layers/layernorm.py(201): forward_native", *small_calls(2), *pieces)
            return module(f"RMSNorm_{index}", _FORWARD_CUDA, native)
        forward = function("sglang/srt/layers/layernorm.py(160): forward_cuda", *small_calls(2), custom_op(wrapper, op))
        return module(f"RMSNorm_{index}", _FORWARD_CUDA, forward)

    def _attention(self, index: int) -> Frame:
        hidden = self._shape.hidden
        query, key = self._heads * self._shape.head_dim, self._kv_heads * self._shape.head_dim
        return module(
            f"LlamaAttention_{index}",
            "sglang/srt/models/llama.py(201): forward",
            self._linear(f"QKVParallelLinear_{index}", "qkv", query + 2 * key, hidden),
            self._split_qkv(query, key),
            self._rope(query, key),
            *self._planted.before_block(),
            self._radix_attention(index),
            *self._planted.around_o(hidden, query, self._linear(f"RowParallelLinear_{2 * index}", "o", hidden, query)),
            *self._all_reduce(),
        )

    def _split_qkv(self, query: int, key: int) -> Frame:
        qkv = Tensor((self.rows, query + 2 * key))
        parts = (aten.as_strided(qkv, (self.rows, width), (query + 2 * key, 1)) for width in (query, key, key))
        split = Op("aten::split_with_sizes", (qkv, (query, key, key), -1), tuple(parts))
        return builtin(
            "split", function("torch/_tensor.py(1043): split", builtin("split_with_sizes", split)), of="Tensor"
        )

    def _rope(self, query: int, key: int) -> Frame:
        strides, head_dim = (query + 2 * key, 1), self._shape.head_dim
        q_TK = Tensor((self.rows, query), BF16, strides)
        k_TK = Tensor((self.rows, key), BF16, strides)
        cos_sin, positions_T = Tensor((131_072, head_dim), FP32), Tensor((self.rows,), INT64)
        moved = 2 * self.rows * (query + key) * _ITEM
        grid = (-(-self.rows // 8), self._heads + self._kv_heads, 1)
        launch = self._kernels.launch("rope", grid, moved_bytes=moved)
        op = Op(
            "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
            (q_TK, k_TK, q_TK, k_TK, cos_sin, positions_T, False),
            (launch,),
        )
        forward = function(
            "sglang/srt/layers/rotary_embedding.py(235): forward_cuda",
            *small_calls(2, 6),
            *(builtin("view", aten.view(x_TK, (self.rows, -1, head_dim)), of="Tensor") for x_TK in (q_TK, k_TK)),
            custom_op("sgl_kernel/elementwise.py(367): apply_rope_with_cos_sin_cache_inplace", op),
        )
        return module("RotaryEmbedding_0", _FORWARD_CUDA, forward)  # one instance serves all layers

    def _radix_attention(self, index: int) -> Frame:
        if self._phase == "decode":
            backend = "sglang/srt/layers/attention/flashinfer_backend.py(672): forward_decode"
            attend = self._attend_decode()
        else:
            backend = "sglang/srt/layers/attention/flashattention_backend.py(702): forward_extend"
            attend = self._attend_prefill()
        return module(
            f"RadixAttention_{index}",
            "sglang/srt/layers/radix_attention.py(101): forward",
            *small_calls(2, 5),
            function(
                "sglang/srt/layers/attention/hybrid_attn_backend.py(118): forward",
                function(backend, *small_calls(4, 9), self._store_kv(), *small_calls(3), attend),
            ),
        )

    def _store_kv(self) -> Frame:
        width = self._kv_heads * self._shape.head_dim
        row, cache = Tensor((self.rows, width)), Tensor((_CACHE_SLOTS, width))
        grid = (-(-self.rows // 4), 1, 1)
        launch = self._kernels.launch("store_kv", grid, moved_bytes=4 * self.rows * width * _ITEM)
        slots_T = Tensor((self.rows,), INT64)
        op = Op("sglang::store_cache", (row, row, cache, cache, slots_T, width * _ITEM, 0), (launch,))
        x_THd = Tensor((self.rows, self._kv_heads, self._shape.head_dim))
        return function(
            "sglang/srt/mem_cache/memory_pool.py(688): set_kv_buffer",
            *small_calls(2, 3),
            *(builtin("view", aten.view(x_THd, (-1, width)), of="Tensor") for _ in ("key", "value")),
            custom_op("sglang/jit_kernel/kvcache.py(77): store_cache", op),
        )

    def _attend_decode(self) -> Frame:
        rows, head_dim = self.rows, self._shape.head_dim
        q_THd, cache = Tensor((rows, self._heads, head_dim)), Tensor((_CACHE_SLOTS, self._kv_heads, head_dim))
        page_tables = (Tensor((rows + 1,), INT32), Tensor((rows * CONTEXT,), INT32), Tensor((rows,), INT32))
        q_bytes = rows * self._heads * head_dim * _ITEM
        cache_bytes = 2 * rows * CONTEXT * self._kv_heads * head_dim * _ITEM
        launches = (
            self._kernels.launch(
                "attention.decode", (rows * _SPLITS, self._kv_heads, 1), moved_bytes=cache_bytes + 2 * q_bytes
            ),
            self._kernels.launch("attention.merge", (4 * SMS, 1, 1), moved_bytes=2 * _SPLITS * q_bytes),
        )
        op = Op(
            "flashinfer::batch_decode_with_paged_kv_cache_run",
            (q_THd, cache, cache, *page_tables, q_THd, 0, -1),
            (Call("cudaFuncSetAttribute"), *launches),
        )
        return custom_op("flashinfer/decode.py(1088): run", op)

    def _attend_prefill(self) -> Frame:
        rows, head_dim = self.rows, self._shape.head_dim
        q_THd, cache = Tensor((rows, self._heads, head_dim)), Tensor((_CACHE_SLOTS, self._kv_heads, head_dim))
        lengths = (Tensor((PROMPTS, PROMPT_TOKENS), INT32), Tensor((PROMPTS,), INT32))
        causal_pairs = PROMPTS * PROMPT_TOKENS * (PROMPT_TOKENS + 1) // 2
        flops = 4 * self._heads * head_dim * causal_pairs
        op = Op(
            "sgl_kernel::fwd",
            (q_THd, cache, cache, None, None, q_THd, *lengths, True),
            (
                aten.empty((rows, self._heads * head_dim)),
                Call("cudaFuncSetAttribute"),
                self._kernels.launch("attention.prepare", (1, 1, 1)),
                self._kernels.launch("attention.prefill", (SMS, 1, 1), flops=2 * flops),  # half the usual rate
            ),
        )
        return custom_op("sgl_kernel/flash_attn.py(215): flash_attn_with_kvcache", op)

    def _mlp(self, index: int) -> Frame:
        width = self._shape.intermediate // self._world
        parts = (
            self._linear(f"MergedColumnParallelLinear_{index}", "gate_up", 2 * width, self._shape.hidden),
            self._silu_and_mul(index, width),
            self._linear(f"RowParallelLinear_{2 * index + 1}", "down", self._shape.hidden, width),
        )
        return module(
            f"LlamaMLP_{index}",
            "sglang/srt/models/llama.py(101): forward",
            *self._planted.mlp(parts),
            *self._all_reduce(),
        )

    def _silu_and_mul(self, index: int, width: int) -> Frame:
        out, x = Tensor((self.rows, width)), Tensor((self.rows, 2 * width))
        launch = self._kernels.launch("silu_and_mul", (self.rows, 1, 1), moved_bytes=3 * self.rows * width * _ITEM)
        forward = function(
            "sglang/srt/layers/activation.py(64): forward_cuda",
            *small_calls(2, 8),
            builtin("empty", aten.empty(out.dims), of="type"),
            custom_op(
                "sgl_kernel/elementwise.py(214): silu_and_mul", Op("sgl_kernel::silu_and_mul", (out, x), (launch,))
            ),
        )
        return module(f"SiluAndMul_{index}", _FORWARD_CUDA, forward)

    def _linear(self, name: str, role: str, width: int, depth: int) -> Frame:
        """A projection; in decode all but gate_up split their depth and sum in a second kernel."""
        matmul = self._gemm(f"{role}.{self._phase}", self.rows, width, depth)
        launches: tuple[Launch, ...] = (self._planted.matmul(name, matmul),)
        if self._phase == "decode" and role != "gate_up":
            grid = (-(-width // 32), -(-self.rows // 16), 1)
            moved = self.rows * width * (4 * self._planted.splits + _ITEM)
            launches += (self._kernels.launch("split_k_reduce", grid, moved_bytes=moved),)
        return module(
            name,
            "sglang/srt/layers/linear.py(451): forward",
            *small_calls(1, 12),
            function(
                "sglang/srt/layers/quantization/unquant.py(134): apply",
                *small_calls(1),
                builtin("linear", aten.linear(self.rows, width, depth, launches)),
            ),
        )

    def _logits(self) -> Frame:
        hidden, vocab = self._shape.hidden, self._shape.vocab // self._world
        logits = Tensor((self.requests, vocab))
        launch = self._gemm("lm_head", self.requests, vocab, hidden)
        moved = self.requests * vocab * (_ITEM + 4)
        cast = self._kernels.launch("cast_float", (self.requests * vocab // 512, 1, 1), moved_bytes=moved)
        return module(
            "LogitsProcessor_0",
            "sglang/srt/layers/logits_processor.py(288): forward",
            *small_calls(8, 2),
            function(
                "sglang/srt/layers/logits_processor.py(517): _get_logits",
                builtin("matmul", aten.matmul(self.requests, vocab, hidden, (launch,)), of="type"),
                builtin("float", aten.to(logits, FP32, cast), of="Tensor"),
            ),
        )

    def _gemm(self, key: str, rows: int, width: int, depth: int) -> Launch:
        moved = (rows * depth + depth * width + rows * width) * _ITEM
        return self._kernels.launch(key, (SMS, 1, 1), flops=2 * rows * width * depth, moved_bytes=moved)

    def _all_reduce(self) -> tuple[Frame, ...]:
        if self._world == 1:
            return ()
        moved = 8 * self._x_bytes * self._planted.collective_factor  # NVLink has about an eighth of memory's rate
        body: tuple[Node, ...]
        if self._phase == "decode":
            body = (self._kernels.launch("all_reduce.decode", (36, 1, 1), moved_bytes=moved),)
        else:
            launch = self._kernels.launch("all_reduce.prefill", (24, 1, 1), moved_bytes=moved, stream=NCCL_STREAM)
            body = (Join(NCCL_STREAM, MAIN_STREAM), launch, Join(MAIN_STREAM, NCCL_STREAM))
        op = Op("sglang::inplace_all_reduce", (self._x_TD, "tp:0"), body)
        return (
            function(
                "sglang/srt/distributed/communication_op.py(11): tensor_model_parallel_all_reduce",
                custom_op("sglang/srt/distributed/parallel_state.py(489): all_reduce", op),
            ),
        )
