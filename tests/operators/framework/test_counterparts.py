"""Recorded calls as operators of the catalogue: the same work, and arguments that the operator takes."""

import json
from typing import Any

import pytest

from inferometer.bench.exchange.axes import bind
from inferometer.operators import require_operator
from inferometer.operators.framework.call import OpCall, read_call
from inferometer.operators.framework.counterparts import _RULES, counterpart_of
from inferometer.operators.framework.family import model_of, plain_name
from inferometer.operators.framework.lengths import Context, Lengths

BF16, FP8, FP32, I32, I64 = "c10::BFloat16", "c10::Float8_e4m3fn", "float", "int", "long int"
DECODE = Lengths(context=Context(queries=3, keys=100, pairs=100))
CACHE = [16, 4, 2, 8]


def call_of(op: str, *arguments: Any, **more: Any) -> OpCall:
    """A call; tensors are `(dims, type)`, values texts."""
    dims = [argument[0] if isinstance(argument, tuple) else [] for argument in arguments]
    kinds = [argument[1] if isinstance(argument, tuple) else "Scalar" if argument else "" for argument in arguments]
    values = ["" if isinstance(argument, tuple) else argument for argument in arguments]
    return read_call(op, json.dumps(dims), json.dumps(kinds), None, json.dumps(values), **more)


def _rows(*dims: int, dtype: str = BF16) -> tuple[list[int], str]:
    return list(dims), dtype


X, W = _rows(6, 64), _rows(64)
_OUT = [call_of(op, X, X, W, "1e-05") for op in (
    "_C::rms_norm", "sgl_kernel::rmsnorm", "aiter::rmsnorm", "flashinfer::rmsnorm")]  # fmt: skip
_ADDED = ("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm", "flashinfer::fused_add_rmsnorm")
_NORM = {"token_count": 6, "hidden_size": 64, "eps": 1e-05}
_UNBOUND = call_of("aten::unbind", ([2, *CACHE], BF16), "0")
_ATTENTION = {
    "num_query_heads": 4, "num_kv_heads": 2, "head_size": 8, "block_size": 4, "seq_lens": [34, 33, 33],
    "query_lens": [1, 1, 1],
}  # fmt: skip
_Q, _NEW = _rows(3, 4, 8), [_rows(3, 2, 8)] * 2
_DENSE = {"num_heads": 2, "head_dim": 8, "seq_lens": [5, 5, 5]}
_MOE = [_rows(6, 8), _rows(4, 6, 8), _rows(4, 8, 3), _rows(6, 2, dtype=FP32), _rows(6, 2, dtype=I32)]
_MOE_ARGS = {"token_count": 6, "hidden_size": 8, "intermediate_size": 3, "num_experts": 4, "top_k": 2}
_SCALED = [_rows(6, 256, dtype=FP8), _rows(384, 256, dtype=FP8), _rows(6, 2, dtype=FP32), _rows(3, 2, dtype=FP32)]
CASES: list[tuple[OpCall, str, dict[str, Any]]] = [
    *((call, "rms_norm", _NORM) for call in _OUT),
    (call_of("aiter::rms_norm", X, W, "1e-05", "0"), "rms_norm", _NORM),
    (call_of("aten::rms_norm", X, "[64]", W, ""), "rms_norm", {"token_count": 6, "hidden_size": 64}),
    (call_of("aten::_fused_rms_norm", X, "[64]", W, "1e-05"), "rms_norm", _NORM),
    *((call_of(op, X, X, W, "1e-05"), "fused_add_rms_norm", _NORM) for op in _ADDED),
    (call_of("aiter::add_rmsnorm", X, X, X, X, W, "1e-05"), "fused_add_rms_norm", _NORM),
    (call_of("aiter::rmsnorm2d_fwd_with_add_ck", X, X, X, X, W, "1e-05", "0"), "fused_add_rms_norm", _NORM),
    *(
        (call_of(f"aten::{name}", _rows(2, 3, 64), "[64]", W, W, "1e-05"), "layer_norm",
         {"shape": [2, 3, 64], "eps": 1e-05})
        for name in ("native_layer_norm", "layer_norm")
    ),
    *(
        (call_of(f"{library}::silu_and_mul", _rows(6, 32), X), "silu_and_mul", {"shape": [6, 64]})
        for library in ("_C", "sgl_kernel", "aiter", "flashinfer")
    ),
    (
        call_of("_moe_C::topk_softmax", *(_rows(6, 2, dtype=kind) for kind in (FP32, I32, I32)),
                _rows(6, 8, dtype=FP32)),
        "moe_topk_gating_softmax", {"token_count": 6, "num_experts": 8, "top_k": 2},
    ),
    (
        call_of("_moe_C::moe_align_block_size", _rows(6, 2, dtype=I32), "8", "16"),
        "moe_align_block_size", {"token_count": 6, "num_experts": 8, "top_k": 2, "block_size": 16},
    ),
    (
        call_of("_moe_C::moe_sum", _rows(6, 2, 64), X), "moe_sum_reduce",
        {"token_count": 6, "top_k": 2, "hidden_size": 64, "routed_scaling_factor": 1.0},
    ),
    *(
        (call_of(f"{engine}::{way}place_fused_experts", *_MOE), "fused_moe", _MOE_ARGS)
        for engine in ("vllm", "sglang")
        for way in ("in", "out")
    ),
    (
        call_of("_C::dynamic_per_token_scaled_fp8_quant", _rows(6, 64, dtype=FP8), X, _rows(6, 1, dtype=FP32), ""),
        "fp8_dynamic_per_token_quant", {"token_count": 6, "hidden_size": 64, "fp8_dtype": "fp8_e4m3fn"},
    ),
    (
        call_of("sgl_kernel::sgl_per_token_quant_fp8", X, _rows(6, 64, dtype=FP8), _rows(6, 1, dtype=FP32)),
        "fp8_dynamic_per_token_quant", {"token_count": 6, "hidden_size": 64, "fp8_dtype": "fp8_e4m3fn"},
    ),
    *(
        (
            call_of(op, X, _rows(6, 64, dtype=FP8), _rows(6, 4, dtype=FP32), "16"), "per_token_group_quant_fp8",
            {"token_count": 6, "hidden_size": 64, "group_size": 16, "fp8_dtype": "fp8_e4m3fn"},
        )
        for op in ("_C::per_token_group_fp8_quant", "sgl_kernel::sgl_per_token_group_quant_fp8")
    ),
    *(
        (
            call_of(f"aiter::gemm_a8w8_blockscale{suffix}", *_SCALED, "15"), "block_scaled_mm",
            {"m": 6, "n": 384, "k": 256, "group_n": 128, "group_k": 128, "fp8_dtype": "fp8_e4m3fn"},
        )
        for suffix in ("", "_bpreshuffle")
    ),
    (
        call_of("_C_cache_ops::reshape_and_cache_flash", *[_rows(6, 2, 8)] * 2, *[(CACHE, BF16)] * 2, ([6], I64)),
        "reshape_and_cache", {"shape": [6, 2, 8], "block_size": 4},
    ),
    (
        call_of("aten::_scaled_dot_product_flash_attention", *[_rows(3, 2, 5, 8)] * 3, "0.", "False"),
        "attention_forward", _DENSE,
    ),
    (
        call_of("aten::_flash_attention_forward", _rows(3, 5, 2, 8), *[_rows(3, 7, 2, 8)] * 2, "", "", "5", "7", "0.",
                "False"),
        "attention_forward", {**_DENSE, "key_lens": [7, 7, 7]},
    ),
    (
        call_of("flash_attn::_flash_attn_forward", *[_rows(3, 5, 2, 8)] * 3, "0.", "0.1", "False"), "attention_forward",
        _DENSE,
    ),
    *(
        (call_of(op, _Q, *_NEW, _Q, lengths=DECODE, inside=(_UNBOUND,)), "unified_attention", _ATTENTION)
        for op in ("vllm::unified_attention", "vllm::unified_attention_with_output")
    ),
    (call_of("aiter::mha_batch_prefill", _Q, *[(CACHE, BF16)] * 2, lengths=DECODE), "unified_attention", _ATTENTION),
    (
        call_of("sglang_profiler::attention_paged_attention_ragged_100", _Q, _rows(9, dtype="unsigned char"), _Q,
                *[(CACHE, BF16)] * 2, lengths=DECODE),
        "unified_attention", _ATTENTION,
    ),
    (
        call_of("aiter::mla_decode_fwd", _rows(3, 4, 96), _rows(200, 1, 1, 96), lengths=DECODE), "mla_decode_attention",
        {"batch_size": 3, "ctx_len": 34, "ctx_lens": [34, 33, 33], "nhead": 4, "kv_lora_rank": 32,
         "qk_rope_head_dim": 64},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "operator", "args"), CASES, ids=lambda each: getattr(each, "op", None))
def test_a_call_is_an_operator_with_these_arguments(call: OpCall, operator: str, args: dict[str, Any]) -> None:
    found = counterpart_of(call)
    assert found is not None
    assert (found.operator, json.loads(found.args)) == (operator, args)
    assert bind(require_operator(operator), args).sizes


def test_every_rule_has_a_case() -> None:
    assert {plain_name(call.op) for call, _, _ in CASES} == set(_RULES)


# What the catalogue's contract reads or writes otherwise than the op: the op's statistics, its scales and outputs.
_OTHER_BYTES = {
    "aten::_fused_rms_norm": "the op writes a number of each row, too",
    "moe_topk_gating_softmax": "the op writes the places of the chosen, too",
    "moe_align_block_size": "the sorted ids are padded by what the data decides",
    "block_scaled_mm": "the contract returns float32",
    "fused_moe": "the contract returns float32, and reads weights and ids of the choice",
    "reshape_and_cache": "the contract counts slots alike, of int64",
    "attention_forward": "the op writes the logarithm of the sum, too",
    "unified_attention": "the contract reads tables of pages",
    "mla_decode_attention": "the contract reads lengths",
    "layer_norm": "the op writes mean and deviation, too",
}


@pytest.mark.parametrize(
    ("call", "operator", "args"),
    [case for case in CASES if not {case[0].op, case[1]} & set(_OTHER_BYTES)],
    ids=lambda each: getattr(each, "op", None),
)
def test_operator_and_op_move_the_same_bytes(call: OpCall, operator: str, args: dict[str, Any]) -> None:
    model = model_of(call.op)
    assert model is not None
    assert model.work is not None
    found, wanted = model.work(call), require_operator(operator).work(**args)
    assert (found.read_bytes, found.written_bytes) == (wanted.read_bytes, wanted.written_bytes)


@pytest.mark.parametrize(
    ("call", "operator", "args"),
    [case for case in CASES if case[1] in ("attention_forward", "unified_attention", "block_scaled_mm", "fused_moe")],
    ids=lambda each: getattr(each, "op", None),
)
def test_operator_and_op_multiply_alike(call: OpCall, operator: str, args: dict[str, Any]) -> None:
    model = model_of(call.op)
    assert model is not None
    assert model.work is not None
    assert model.work(call).matrix_flops == require_operator(operator).work(**args).matrix_flops


_HALF = _rows(6, 64, dtype="c10::Half")


@pytest.mark.parametrize(
    "call",
    [
        call_of("aten::mm", _rows(6, 64), _rows(64, 8)),
        call_of("_C::rms_norm", _HALF, _HALF, _rows(64, dtype="c10::Half"), "1e-05"),
        call_of("aten::native_layer_norm", X, "[64]", "", "", "1e-05"),
        call_of("aten::native_layer_norm", _rows(3, 2, 4), "[2, 4]", _rows(2, 4), _rows(2, 4), "1e-05"),
        call_of("aten::_scaled_dot_product_flash_attention", *[_rows(3, 2, 5, 8)] * 3, "0.", "True"),
        call_of("aten::_flash_attention_forward", _rows(3, 5, 4, 8), *[_rows(3, 5, 2, 8)] * 2, *[""] * 5, "False"),
        call_of("vllm::unified_attention", _Q, *_NEW, _Q, inside=(_UNBOUND,)),
        call_of("vllm::unified_attention", _Q, *_NEW, _Q, lengths=DECODE),
        call_of("aiter::mha_batch_prefill", _Q, *[(CACHE, BF16)] * 2, lengths=Lengths(Context(3, 100, 102))),
        call_of("aiter::mha_batch_prefill", _Q, *[(CACHE, "unsigned char")] * 2, lengths=DECODE),
        call_of("_moe_C::topk_softmax", *[_rows(6, 2, dtype=FP32)] * 3, _rows(6, 8, dtype=FP32), "True"),
        call_of("_C::rms_norm", X),
    ],
    ids=lambda call: call.op,
)
def test_other_contracts_types_and_unknown_lengths_have_none(call: OpCall) -> None:
    assert counterpart_of(call) is None


@pytest.mark.parametrize(
    "call",
    [
        call_of("aten::_scaled_dot_product_flash_attention", *[_rows(10**12, 1, 1, 64)] * 3, "0.", "False"),
        call_of("vllm::unified_attention", _rows(10**12, 4, 8), *_NEW, _Q, inside=(_UNBOUND,), lengths=Lengths(each=9)),
    ],
    ids=lambda call: call.op,
)
def test_more_sequences_than_can_be_listed_have_none(call: OpCall) -> None:
    assert counterpart_of(call) is None
