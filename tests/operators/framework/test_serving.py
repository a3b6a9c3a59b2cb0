"""Kernels of serving engines and what their arguments mean: counts by hand."""

import json
from contextlib import suppress
from typing import Any

import pytest

from inferometer.operators.framework.call import OpCall, Tensor, Unmodelled, read_call
from inferometer.operators.framework.family import model_of, modelled_ops
from inferometer.operators.framework.lengths import Context, Lengths
from inferometer.operators.work import Work, active_experts

BF16, FP8, I64, F32 = "c10::BFloat16", "c10::Float8_e4m3fn", "long int", "float"
T, H, E, K, INNER = 8, 16, 4, 2, 24


def call_of(op: str, *inputs: Any, **more: Any) -> OpCall:
    """Tensors as (dims, type) or (dims, type, strides), values as they are, None for nothing."""
    dims, types, strides, values = [], [], [], []
    for each in inputs:
        is_tensor = isinstance(each, tuple)
        dims.append(list(each[0]) if is_tensor else [])
        types.append(each[1] if is_tensor else "" if each is None else "Scalar")
        strides.append(list(each[2]) if is_tensor and len(each) > 2 else _contiguous(dims[-1]))
        values.append("" if is_tensor or each is None else str(each))
    return read_call(op, *(json.dumps(each) for each in (dims, types, strides, values)), **more)


def _contiguous(dims: list[int]) -> list[int]:
    strides: list[int] = []
    step = 1
    for size in reversed(dims):
        strides.insert(0, step)
        step *= size
    return strides


def work_of(call: OpCall) -> Work:
    found = model_of(call.op)
    assert found is not None
    return found.work(call)


def rows(width: int, dtype: str = BF16) -> tuple[tuple[int, int], str]:
    return (T, width), dtype


WEIGHT = ((H,), BF16)
BYTES = {  # op and inputs: bytes read, bytes written
    "rms norm with its output first": (
        call_of("_C::rms_norm", rows(H), rows(H), WEIGHT, 1e-5),
        T * H * 2 + H * 2,
        T * H * 2,
    ),
    "rms norm without its output": (
        call_of("aiter::rms_norm", rows(H), WEIGHT, 1e-5, 0),
        T * H * 2 + H * 2,
        T * H * 2,
    ),
    "add and norm in place": (
        call_of("sgl_kernel::fused_add_rmsnorm", rows(H), rows(H), WEIGHT, 1e-5),
        2 * T * H * 2 + H * 2,
        2 * T * H * 2,
    ),
    "add and norm into others": (
        call_of("aiter::add_rmsnorm", rows(H), rows(H), rows(H), rows(H), WEIGHT, 1e-5),
        2 * T * H * 2 + H * 2,
        2 * T * H * 2,
    ),
    "silu and mul": (call_of("_C::silu_and_mul", rows(H), rows(2 * H)), T * 2 * H * 2, T * H * 2),
    "quantised with a scale that is given": (
        call_of("_C::static_scaled_fp8_quant", rows(H, FP8), rows(H), ((1,), F32)),
        T * H * 2 + 4,
        T * H,
    ),
    "quantised with a scale that is found": (
        call_of("_C::dynamic_scaled_fp8_quant", rows(H, FP8), rows(H), ((1,), F32)),
        T * H * 2,
        T * H + 4,
    ),
    "keys and values into a cache of 8 bits": (
        call_of(
            "_C_cache_ops::reshape_and_cache_flash",
            *(((T, 2, 4), BF16), ((T, 2, 4), BF16), ((99, 16, 2, 4), FP8), ((99, 16, 2, 4), FP8), ((T,), I64)),
            *("fp8", ((1,), F32), ((1,), F32)),
        ),
        2 * T * 8 * 2 + T * 8,
        2 * T * 8,
    ),
    "padded keys and values, with slots for some": (
        call_of(
            "_C_cache_ops::reshape_and_cache_flash",
            *(((T, 2, 4), BF16), ((T, 2, 4), BF16), ((99, 16, 2, 4), BF16), ((99, 16, 2, 4), BF16), ((T - 3,), I64)),
        ),
        2 * (T - 3) * 8 * 2 + (T - 3) * 8,
        2 * (T - 3) * 8 * 2,
    ),
    "rotary over half of a head, of slices": (
        call_of(
            "_C::rotary_embedding",
            *(((T,), I64), ((T, 32), BF16, (96, 1)), ((T, 16), BF16, (96, 1)), 8, ((1000, 4), BF16), "True"),
        ),
        T * 8 + T * (4 + 2) * 4 * 2 + T * 4 * 2,
        T * (4 + 2) * 4 * 2,
    ),
    "rotary of queries alone": (
        call_of("_C::rotary_embedding", ((T,), I64), ((T, 32), BF16), None, 8, ((1000, 8), BF16), "True"),
        T * 8 + T * 4 * 8 * 2 + T * 8 * 2,
        T * 4 * 8 * 2,
    ),
    "choosing experts": (
        call_of("_moe_C::topk_softmax", ((T, K), F32), ((T, K), "int"), ((T, K), "int"), ((T, E), F32)),
        T * E * 4,
        3 * T * K * 4,
    ),
}


@pytest.mark.parametrize("case", BYTES)
def test_outputs_that_are_passed_in_are_written_and_not_read(case: str) -> None:
    call, read, written = BYTES[case]

    work = work_of(call)

    assert (work.read_bytes, work.written_bytes) == (read, written)


def test_attention_over_a_cache_needs_lengths() -> None:
    q, new = ((T, 4, 8), BF16), ((T, 2, 8), BF16)
    cache = OpCall("aten::unbind", (Tensor((2, 99, 16, 2, 8), FP8),))
    call = call_of("vllm::unified_attention_with_output", q, new, new, q, None, inside=(cache,))
    told = call_of(
        "vllm::unified_attention_with_output",
        *(q, new, new, q, None),
        inside=(cache,),
        lengths=Lengths(Context(queries=6, keys=600, pairs=600)),
    )

    with pytest.raises(Unmodelled, match="--context"):
        work_of(call)
    work = work_of(told)

    assert work.matrix_flops == 600 * 4 * 2 * (8 + 8)
    assert work.read_bytes == 6 * 4 * 8 * 2 + 600 * 2 * (8 + 8)  # the padded queries aren't read, the cache has 8 bits
    assert work.written_bytes == 6 * 4 * 8 * 2
    assert not work.assumes


def test_a_cache_that_isnt_seen_has_the_type_of_new_keys_and_that_is_said() -> None:
    q, new = ((T, 4, 8), BF16), ((T, 2, 8), BF16)
    call = call_of("vllm::unified_attention_with_output", q, new, new, q, lengths=Lengths(each=100))

    work = work_of(call)

    assert work.read_bytes == T * 4 * 8 * 2 + T * 100 * 2 * (8 + 8) * 2
    assert [each.partition(":")[0] for each in work.assumes] == [
        "each sequence has the length of --context",
        "the cache has the type of the new keys",
    ]


def test_experts_that_any_token_chose_are_read_once() -> None:
    call = call_of(
        "vllm::outplace_fused_experts",
        *(rows(H), ((E, 2 * INNER, H), BF16), ((E, H, INNER), BF16), ((T, K), F32), ((T, K), "int")),
    )

    work = work_of(call)

    assert work.matrix_flops == 2 * T * K * 3 * INNER * H
    assert work.read_bytes == T * H * 2 + active_experts(T, E, K) * 3 * INNER * H * 2
    assert work.assumes == ("tokens choose their experts evenly",)


def test_compiled_kernels_move_what_their_number_of_elements_can_index() -> None:
    table = call_of("triton_poi_fused_embedding_0", ((32,), I64), ((201_088, 2880), BF16), ((32, 2880), BF16), 92_160)

    work = work_of(table)

    assert work.read_bytes == 32 * 8 + 92_160 * 2
    assert work.written_bytes == 92_160 * 2


def test_a_dynamic_size_before_the_number_of_elements_indexes_nothing() -> None:
    table = call_of("triton_poi_fused_embedding_0", ((32,), I64), ((9000, 64), BF16), ((32, 64), BF16), 977, 2048)
    reduced = call_of("triton_red_fused_mean_1", ((32, 64), BF16), ((32,), BF16), 977, 32, 64)

    assert work_of(table).read_bytes == 32 * 8 + 2048 * 2
    assert work_of(reduced).read_bytes == 32 * 64 * 2
    assert work_of(reduced).vector_flops == 32 * 64


def test_whole_graphs_have_a_reason_and_no_model() -> None:
    found = model_of("CompiledFunctionBackward")

    assert found is not None
    assert found.model is None
    assert "whole graph" in found.reason
    assert model_of("aten::no_such_op") is None


def test_numbers_of_sglangs_wrapped_functions_are_no_part_of_the_name() -> None:
    assert model_of("sglang_profiler::attention_paged_attention_ragged_100") == model_of(
        "sglang_profiler::attention_paged_attention_ragged_7"
    )


@pytest.mark.parametrize("op", sorted(modelled_ops()))
def test_a_call_without_arguments_is_no_traceback(op: str) -> None:
    """Files are hostile: whatever is recorded of an op, its model says why it can't be modelled, or gives a count."""
    found = model_of(op)
    assert found is not None
    odd = [
        (),
        (None,) * 12,
        (((), F32),) * 12,
        (((0,), F32),) * 12,
        (((3, 0, 2), BF16),) * 12,
        (((2, 3, 4), "c10::Octet"),) * 12,
        (((2, 3, 4, 5), BF16),) * 12,
        (((2, 3), BF16),) * 6,
        (-1,) * 12,
        ("[]",) * 12,
        ("[0, 0]",) * 12,
        ("nan", "[nan]", "1e999", "{}", "[[1]]", '"', "True", "", "-9", "0", "2", "inf"),
        (((2, 3), BF16), "0", "0", "0", "0", "0", "0", "0", "0", "0", "0"),
        (((2, 3, 4, 5), BF16), ((2, 3, 4, 5), BF16), *("[0, 0]",) * 9),
        (((2, 3, 4, 5), BF16), ((2, 3, 4, 5), BF16), ((2, 3, 4, 5), BF16), *("[0, 0]",) * 9),
        (((2, 3, 4), BF16), "9", "9", "[9]"),
        (((2, 3, 4), BF16), "[9, -9]", "9"),
    ]
    for inputs in odd:
        with suppress(Unmodelled):
            work = found.work(call_of(op, *inputs, lengths=Lengths(each=5)))
            assert min(work.matrix_flops, work.vector_flops, work.read_bytes, work.written_bytes) >= 0


def test_counts_that_fit_no_table_are_a_reason() -> None:
    found = model_of("aten::polar")
    assert found is not None

    with pytest.raises(Unmodelled, match="none that it can be called with"):
        found.work(call_of("aten::polar", ((2**61, 2), "bool"), ((2**61, 2), "bool")))


def test_four_bits_are_packed_in_pairs_along_the_depth() -> None:
    pairs = "c10::Float4_e2m1fn_x2"
    call = call_of("aten::_scaled_mm", ((4, 8), pairs), ((8, 6), pairs), ((4, 1), F32), ((1, 6), F32))

    work = work_of(call)

    assert (work.dtype, work.matrix_flops) == ("fp4", 2 * 4 * 6 * 16)
    assert work.read_bytes == 4 * 8 + 8 * 6 + 4 * 4 + 6 * 4


def test_the_greatest_along_a_dimension_into_given_tensors_is_no_broadcast() -> None:
    work = work_of(call_of("aten::max", ((3, 8), F32), "1", "False", ((3,), F32), ((3,), I64)))

    assert (work.read_bytes, work.written_bytes) == (3 * 8 * 4, 3 * (4 + 8))


def test_the_length_of_sequences_in_a_decode_step_says_nothing_of_others() -> None:
    pages, lengths = ((99, 16, 2, 8), BF16), Lengths(each=100)
    decode = call_of("aiter::mha_batch_prefill", ((T, 4, 8), BF16), pages, pages, ((T + 1,), "int"), lengths=lengths)
    prefill = call_of("aiter::mha_batch_prefill", ((T, 4, 8), BF16), pages, pages, ((3,), "int"), lengths=lengths)

    assert work_of(decode).special_ops == T * 100 * 4
    with pytest.raises(Unmodelled, match="several new tokens"):
        work_of(prefill)


def test_a_scaled_product_reads_its_scales_and_no_output() -> None:
    operands = ((4, 8), FP8), ((8, 6), FP8), ((1,), F32), ((1,), F32)

    work = work_of(call_of("aten::_scaled_mm", *operands, None, None, 15, "False", ((4, 6), BF16)))

    assert (work.read_bytes, work.written_bytes) == (4 * 8 + 8 * 6 + 4 + 4, 4 * 6 * 2)


MX = "c10::Float4_e2m1fn_x2"
INDEX = ((40,), "int")


def experts_call(op: str, *inputs: Any) -> Work:
    return work_of(call_of(op, *inputs))


def test_both_products_of_aiters_experts_in_one_call() -> None:
    up, down = ((E, 2 * INNER, H), FP8), ((E, H, INNER), FP8)
    scales = ((E, 2 * INNER), F32), ((E, H), F32)

    work = experts_call("aiter::fmoe_fp8_blockscale_g1u1", rows(H), rows(H, FP8), up, down, INDEX, ((40,), F32),
                        ((4,), "int"), ((2,), "int"), K, ((T, 1), F32), *scales)  # fmt: skip

    active = active_experts(T, E, K)
    weights = 2 * INNER * H + H * INNER
    assert (work.dtype, work.matrix_flops) == ("fp8", 2 * T * K * weights)
    assert work.read_bytes == T * H + active * (weights + 4 * (2 * INNER + H))
    assert work.written_bytes == T * H * 2
    assert work.assumes == ("tokens choose their experts evenly",)


@pytest.mark.parametrize("packed", [False, True])
def test_each_product_of_aiters_experts_alone(packed: bool) -> None:
    dtype, pack = (MX, 2) if packed else (BF16, 1)
    size = 1 if packed else 2
    up, down = ((E, 2 * INNER, H // pack), dtype), ((E, H, INNER // pack), dtype)
    sorting = INDEX, ((4,), "int"), ((2,), "int")
    x, inside = ((T, H // pack), dtype), ((T, K, INNER // pack), dtype)

    first = experts_call("aiter::ck_moe_stage1", x, up, down, *sorting, ((T, K, INNER), BF16), K, "")
    second = experts_call("aiter::ck_moe_stage2", inside, up, down, *sorting, rows(H), K, "")

    active = active_experts(T, E, K)
    assert first.dtype == second.dtype == ("fp4" if packed else "bf16")
    assert first.matrix_flops == 2 * T * K * 2 * INNER * H
    assert first.read_bytes == (T + active * 2 * INNER) * H * size // pack
    assert first.written_bytes == T * K * INNER * 2
    assert second.matrix_flops == 2 * T * K * H * INNER
    assert second.read_bytes == (T * K + active * H) * INNER * size // pack
    assert second.written_bytes == T * H * 2


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("aiter::fmoe_g1u1", (rows(H), rows(H), ((E, INNER, H), BF16), ((E, H, INNER), BF16), INDEX, *"abc", K)),
        ("aiter::fmoe_g1u1", (rows(H), rows(H), ((E, 2 * INNER, H), BF16), ((E, H, INNER), BF16), rows(2), *"abc", K)),
        (
            "aiter::fmoe_g1u1",
            (rows(H), rows(H), ((E, 2 * INNER, H), BF16), ((E, H, INNER), BF16), INDEX, *"abc", E + 1),
        ),
        ("aiter::ck_moe_stage1", (rows(H), ((E, INNER, H), BF16), ((E, H, 7), BF16), INDEX, None, None, rows(H), K)),
        ("aiter::ck_moe_stage2", (rows(H), ((E, INNER, H), BF16), ((E, H, 7), BF16), INDEX, None, None, rows(H), K)),
        ("aiter::ck_moe_stage2", (rows(H), None, ((E, H, INNER), BF16), INDEX, None, None, rows(H), K)),
    ],
)
def test_arguments_of_aiters_experts_that_do_not_fit_have_no_model(op: str, inputs: tuple[Any, ...]) -> None:
    with pytest.raises(Unmodelled, match="aren't those of the binding"):
        experts_call(op, *inputs)


def test_weights_of_few_bits_are_multiplied_in_the_type_of_the_activations() -> None:
    m, n, k = 3, 64, 128
    x, packed, scales = ((m, k), BF16), ((n // 8, k // 64, 32, 2), "int"), ((k // 32, n, 2), BF16)

    four = work_of(call_of("aten::_weight_int4pack_mm", x, packed, 32, scales))
    eight = work_of(call_of("aten::_weight_int8pack_mm", x, ((n, k), "signed char"), ((n,), BF16)))

    assert four.dtype == eight.dtype == "bf16"
    assert four.matrix_flops == eight.matrix_flops == 2 * m * n * k
    assert four.read_bytes == 2 * m * k + n * k // 2 + 2 * 2 * n * k // 32
    assert eight.read_bytes == 2 * m * k + n * k + 2 * n
    assert four.written_bytes == eight.written_bytes == 2 * m * n


def test_a_scaled_product_of_groups_reads_the_scales_of_one() -> None:
    m, n, k, groups = 8, 4, 16, 3
    scales = ((m,), F32), ((groups, n), F32)
    call = call_of("aten::_scaled_grouped_mm", ((m, k), FP8), ((groups, k, n), FP8), *scales, ((groups,), "int"))

    work = work_of(call)

    assert (work.dtype, work.matrix_flops) == ("fp8", 2 * m * n * k)
    assert work.read_bytes == m * k + k * n + 4 * m + 4 * n
    assert work.written_bytes == 2 * m * n


def test_a_matrix_times_a_vector_with_something_added() -> None:
    work = work_of(call_of("aten::addmv", ((6,), BF16), ((6, 8), BF16), ((8,), BF16), "1", "1"))

    assert (work.matrix_flops, work.read_bytes, work.written_bytes) == (2 * 6 * 8, 2 * (6 + 48 + 8), 2 * 6)
