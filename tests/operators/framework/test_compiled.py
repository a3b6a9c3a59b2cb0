"""Inductor's kernels by their names, and by sources that PyTorch 2.13 wrote (shortened), against counts by hand."""

from pathlib import Path
from typing import Any

import pytest
from tests.operators.framework.test_serving import BF16, F32, I64, call_of, work_of

from inferometer.errors import InputError
from inferometer.operators.framework.compiled import FUSED, ROWS
from inferometer.operators.framework.inductor_source import KernelSource, Pointer, read_source
from inferometer.operators.framework.output_code import OutputCode, read_output_code

HEAD = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics

"""
RMS_NORM = """@triton_heuristics.persistent_reduction(
    size_hints={'x': 128, 'r0_': 512},
    filename=__file__,
    triton_meta={'signature': {
        'in_ptr0': '*bf16', 'in_ptr1': '*bf16', 'out_ptr1': '*bf16',
        'xnumel': 'i32', 'r0_numel': 'i32', 'XBLOCK': 'constexpr'},
        'device': DeviceProperties(type='cuda', index=0), 'constants': {}},
    inductor_meta={'kernel_name': 'triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_0',
        'num_load': 2, 'num_reduction': 1}
)
@triton.jit
def triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_0(
    in_ptr0, in_ptr1, out_ptr1, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 100
    r0_numel = 512
    R0_BLOCK: tl.constexpr = 512
    tmp0 = tl.load(in_ptr0 + (r0_1 + 512*x0), xmask, eviction_policy='evict_first', other=0.0).to(tl.float32)
    tmp13 = tl.load(in_ptr1 + (r0_1), None, eviction_policy='evict_last').to(tl.float32)
    tmp2 = tmp0 * tmp0
    tmp6 = tl.sum(tl.where(xmask, tmp2, 0), 1)[:, None].to(tl.float32)
    tl.store(out_ptr1 + (r0_1 + 512*x0), tmp6 * tmp13, xmask)
"""
LOOKUP = """@triton_heuristics.pointwise(
    size_hints={'x': 2048},
    triton_meta={'signature': {
        'in_ptr0': '*i64', 'in_ptr1': '*fp32', 'in_ptr2': '*fp32', 'out_ptr0': '*fp32',
        'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
    inductor_meta={'num_load': 2}
)
@triton.jit
def triton_poi_fused_add_index_mul_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 2048
    tmp0 = tl.load(in_ptr0 + (x1), xmask, eviction_policy='evict_last')
    tmp9 = tl.load(in_ptr2 + (x2), xmask)
    tmp4 = tl.where(tmp0 < 0, tmp0 + 1000, tmp0)
    tmp6 = tl.load(in_ptr1 + (x0 + 64*tmp4), xmask)
    tl.store(out_ptr0 + (x2), tmp6 * 2.0 + tmp9, xmask)
"""
SOFTMAX = """@triton_heuristics.reduction(
    triton_meta={'signature': {
        'in_out_ptr0': '*fp32', 'in_ptr0': '*bf16',
        'xnumel': 'i32', 'r0_numel': 'i32', 'XBLOCK': 'constexpr', 'R0_BLOCK': 'constexpr'}},
    inductor_meta={'mutated_arg_names': ['in_out_ptr0'], 'num_load': 3, 'num_store': 2, 'num_reduction': 2}
)
@triton.jit
def triton_red_fused__softmax__to_copy_0(
    in_out_ptr0, in_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr):
    r0_numel = 8000
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp0 = tl.load(in_ptr0 + (r0_1 + 8000*x0), r0_mask & xmask, other=0.0).to(tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp5 = tl.load(in_ptr0 + (r0_1 + 8000*x0), r0_mask & xmask, other=0.0).to(tl.float32)
        tl.store(in_out_ptr0 + (r0_1 + 8000*x0), tmp8, r0_mask & xmask)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        tmp12 = tl.load(in_out_ptr0 + (r0_1 + 8000*x0), r0_mask & xmask, other=0.0)
        tl.store(in_out_ptr0 + (r0_1 + 8000*x0), tmp12 / tmp10, r0_mask & xmask)
"""
IN_PLACE = """@triton_heuristics.pointwise(
    triton_meta={'signature': {
        'in_out_ptr0': '*fp32', 'in_ptr0': '*fp32',
        'ks0': 'i64',
        'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
    inductor_meta={'mutated_arg_names': ['in_out_ptr0']}
)
@triton.jit
def triton_poi_fused_add_sigmoid_0(in_out_ptr0, in_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_out_ptr0 + (x0), xmask)
    tmp1 = tl.load(in_ptr0 + (x0 % ks0), xmask)
    tl.store(in_out_ptr0 + (x0), tmp0 + tl.sigmoid(tmp1), xmask)
"""
OUTPUT_CODE = f"""# AOT ID: ['0_inference']
async_compile = AsyncCompile()

# kernel path: /tmp/torchinductor_me/fb/cfb.py
# Topologically Sorted Source Nodes: [y, pow_1], Original ATen: [aten._to_copy, aten.pow, aten.mean, aten.silu]
# Graph fragment:
#   %pow_1 : Tensor "f32[100, 512][512, 1]cuda:0"
triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_0 = async_compile.triton(
    'triton_per_fused', \'\'\'{HEAD}{RMS_NORM}\'\'\'
    , device_str='cuda')

triton_poi_fused_add_sigmoid_0 = async_compile.triton(
    'triton_poi_fused_add_sigmoid_0', \'\'\'{HEAD}{IN_PLACE}\'\'\'
    , device_str='cuda')
raise SystemExit("this file is never run")
"""


def source_of(text: str) -> KernelSource:
    [found] = read_source(HEAD + text)
    return found


def test_a_source_says_what_is_read_and_written_and_by_which_table() -> None:
    assert source_of(LOOKUP).pointers == (
        Pointer("in_ptr0", is_read=True, is_written=False, is_indirect=False),
        Pointer("in_ptr1", is_read=True, is_written=False, is_indirect=True),
        Pointer("in_ptr2", is_read=True, is_written=False, is_indirect=False),
        Pointer("out_ptr0", is_read=False, is_written=True, is_indirect=False),
    )
    assert source_of(LOOKUP).numels == (("xnumel", 2048),)
    assert [(each.is_read, each.is_written) for each in source_of(IN_PLACE).pointers] == [(True, True), (True, False)]


def test_a_table_is_read_by_rows_though_no_number_of_elements_is_recorded() -> None:
    inputs = ((32,), I64), ((1000, 64), F32), ((32, 64), F32), ((32, 64), F32)
    call = call_of("triton_poi_fused_add_index_mul_0", *inputs, source=source_of(LOOKUP))

    work = work_of(call)

    assert work.read_bytes == 32 * 8 + 2 * 2048 * 4
    assert work.written_bytes == 2048 * 4
    assert (work.vector_flops, work.special_ops, work.assumes) == (2 * 2048, 0, (ROWS, FUSED))
    without = work_of(call_of("triton_poi_fused_add_index_mul_0", *inputs))
    assert without.read_bytes == 32 * 8 + 2048 * 4  # larger than the last: next to nothing is read


def test_what_is_read_and_written_in_place_counts_twice() -> None:
    inputs = ((64, 300), F32), ((300,), F32), 300, 64 * 300

    work = work_of(call_of("triton_poi_fused_add_sigmoid_0", *inputs, source=source_of(IN_PLACE)))

    assert (work.read_bytes, work.written_bytes) == (64 * 300 * 4 + 300 * 4, 64 * 300 * 4)
    assert (work.vector_flops, work.special_ops) == (3 * 64 * 300, 64 * 300)


def test_what_a_kernel_stored_itself_needs_no_reading() -> None:
    inputs = ((64, 8000), F32), ((64, 8000), BF16), 64, 8000

    work = work_of(call_of("triton_red_fused__softmax__to_copy_0", *inputs, source=source_of(SOFTMAX)))

    assert (work.read_bytes, work.written_bytes) == (64 * 8000 * 2, 64 * 8000 * 4)
    assert (work.vector_flops, work.special_ops) == (4 * 64 * 8000, 64 * 8000)


def test_a_reduction_counts_what_it_reduces_and_not_what_may_be_done_by_rows() -> None:
    inputs = ((100, 512), BF16), ((512,), BF16), ((100, 512), BF16)
    name = "triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_0"

    work = work_of(call_of(name, *inputs, 100, 512, source=source_of(RMS_NORM)))

    assert (work.read_bytes, work.written_bytes) == (100 * 512 * 2 + 512 * 2, 100 * 512 * 2)
    assert (work.vector_flops, work.special_ops) == (100 * 512, 0)  # the mean


@pytest.mark.parametrize(
    ("op", "vector", "special"),
    [
        ("triton_poi_fused_add_cos_sin_0", 1, 2),
        ("triton_poi_fused_clamp_sub_0", 2, 0),
        ("triton_poi_fused__to_copy_1", 0, 0),
        ("triton_poi_fused_constant_pad_nd_moe_forward_0", 0, 0),
        ("triton_poi_fused_0", 0, 0),
        ("triton_poi_fused_gelu_backward_mul_12", 6, 1),
        ("triton_red_fused_native_layer_norm_3", 7, 0),
    ],
)
def test_names_say_which_ops_are_fused(op: str, vector: int, special: int) -> None:
    work = work_of(call_of(op, ((10, 10), F32), ((10, 10), F32), 10, 10) if "_red_" in op else
                   call_of(op, ((10, 10), F32), ((10, 10), F32), 100))  # fmt: skip

    assert (work.vector_flops, work.special_ops) == (100 * vector, 100 * special)
    assert work.assumes == ((FUSED,) if vector or special else ())


def test_a_source_of_another_kernel_is_not_used() -> None:
    inputs = ((64, 300), F32), ((64, 300), F32), ((64, 300), F32), 64 * 300

    with_other = work_of(call_of("triton_poi_fused_add_sigmoid_0", *inputs, source=source_of(IN_PLACE)))

    assert with_other == work_of(call_of("triton_poi_fused_add_sigmoid_0", *inputs))


def test_output_code_has_the_sources_and_all_ops_that_are_fused(tmp_path: Path) -> None:
    (tmp_path / "model__0").mkdir()
    (tmp_path / "model__0" / "output_code.py").write_text(OUTPUT_CODE)
    (tmp_path / "cfb.py").write_text(HEAD + RMS_NORM)
    (tmp_path / "other.py").write_text("x = 1")

    found = read_output_code(str(tmp_path))

    name = "triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_0"
    kernel = found.find(name, "/somewhere/else/cfb.py")
    assert kernel is not None
    assert kernel.fused == ("_to_copy", "pow", "mean", "silu")
    assert kernel == found.find(name, None)
    assert found.find(name, "/tmp/another.py") is None
    assert found.find("triton_poi_fused_add_sigmoid_0", None) is not None
    assert len(found) == 2


def test_equal_names_in_two_files_are_told_apart_by_the_file_alone() -> None:
    first, second = (read_source(HEAD + LOOKUP, stem)[0] for stem in ("a", "b"))
    found = OutputCode([first, second])

    assert found.find(first.name, "x/a.py") is first
    assert found.find(first.name, "x/b.py") is second
    assert found.find(first.name, None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def f(:",
        "x = 1\0",
        HEAD + RMS_NORM.replace("'in_ptr0': '*bf16'", "**a"),
        HEAD + RMS_NORM.replace("'*bf16'", "7"),
        HEAD + RMS_NORM.replace("'signature': {", "'signature': evil() or {"),
        HEAD + LOOKUP.replace("tl.store(", "print("),
        HEAD + LOOKUP.replace("triton_heuristics", "others"),
        "x = async_compile.triton('a', 'def f(:')",
        "-" * 100_000 + "1",
        "(" * 1000,
    ],
)
def test_what_is_no_kernel_that_is_understood_is_none(text: str) -> None:
    assert read_source(text) == []


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe triton_meta", b"triton_meta = 1"])
def test_a_path_without_kernels_says_what_to_name(content: Any, tmp_path: Path) -> None:
    path = tmp_path / "output_code.py"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InputError):
        read_output_code(str(path))
