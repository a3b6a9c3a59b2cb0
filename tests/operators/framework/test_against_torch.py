"""Work models against PyTorch itself: FLOPs by its counter, bytes place by place, arguments from its profiler."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.operators.framework.profiled import bytes_of, counted_flops, profiled_calls

from inferometer.operators.framework.family import model_of
from inferometer.operators.work import Work

torch = pytest.importorskip("torch", reason="needs torch")
F = torch.nn.functional
attention = F.scaled_dot_product_attention


def made(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype or torch.float32)


def work_of(run: Callable[[], Any], op: str, folder: Path, **more: Any) -> Work:
    found = model_of(op)
    assert found is not None
    (call, *_) = profiled_calls(run, op, folder, **more)
    return found.work(call)


X = made(4, 6)
PRODUCTS = {
    "mm": ("aten::mm", torch.mm, (made(5, 7), made(7, 3))),
    "mm of a transposed weight": ("aten::mm", lambda a, b: torch.mm(a, b.T), (made(5, 7), made(3, 7))),
    "addmm": ("aten::addmm", torch.addmm, (made(3), made(5, 7), made(7, 3))),
    "addmm of a full matrix": ("aten::addmm", torch.addmm, (made(5, 3), made(5, 7), made(7, 3))),
    "bmm": ("aten::bmm", torch.bmm, (made(2, 5, 7), made(2, 7, 3))),
    "bmm of an expanded batch": ("aten::bmm", torch.bmm, (made(2, 5, 7), made(1, 7, 3).expand(2, 7, 3))),
    "baddbmm": ("aten::baddbmm", torch.baddbmm, (made(2, 1, 3), made(2, 5, 7), made(2, 7, 3))),
    "linear": ("aten::linear", F.linear, (made(2, 5, 7), made(3, 7), made(3))),
    "matmul": ("aten::matmul", torch.matmul, (made(2, 4, 5, 7), made(7, 3))),
    "bf16": ("aten::mm", torch.mm, (made(5, 7, dtype=torch.bfloat16), made(7, 3, dtype=torch.bfloat16))),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products_multiply_read_and_write_what_pytorch_does(case: str, tmp_path: Path) -> None:
    op, function, inputs = PRODUCTS[case]

    work = work_of(lambda: function(*inputs), op, tmp_path)

    assert work.matrix_flops == counted_flops(lambda: function(*inputs))
    assert work.read_bytes == bytes_of(inputs)
    assert work.written_bytes == bytes_of([function(*inputs)])


def scaled(m: int, n: int, k: int, scales: Any, recipe: list[int], out: Any, bias: Any = None) -> Callable[[], Any]:
    a, b = made(m, k).to(torch.float8_e4m3fn), made(n, k).to(torch.float8_e4m3fn).t()
    lists = [[each.to(torch.float32) for each in side] for side in scales]
    return lambda: torch.ops.aten._scaled_mm_v2(a, b, lists[0], recipe, [0], lists[1], recipe, [0], bias, out)


@pytest.mark.parametrize("out", [None, torch.bfloat16], ids=str)
@pytest.mark.parametrize("recipe", [0, 1], ids=["of tensors", "of rows"])
def test_scaled_products_by_lists_of_scales(recipe: int, out: Any, tmp_path: Path) -> None:
    if not hasattr(torch.ops.aten, "_scaled_mm_v2"):
        pytest.skip("needs PyTorch 2.10 or later")
    sizes = [((1,), (1,)), ((32, 1), (1, 16))][recipe]
    run = scaled(32, 16, 64, [[torch.ones(size)] for size in sizes], [recipe], out)

    work = work_of(run, "aten::_scaled_mm_v2", tmp_path)

    assert (work.dtype, work.matrix_flops) == ("fp8", 2 * 32 * 16 * 64)
    assert work.read_bytes == 32 * 64 + 64 * 16 + 4 * sum(torch.ones(size).numel() for size in sizes)
    assert work.written_bytes == bytes_of([run()])


CONVOLUTIONS = {
    "1 by 1": (made(2, 8, 5, 5), made(6, 8, 1, 1), {}),
    "3 by 3": (made(2, 8, 9, 9), made(6, 8, 3, 3), {"padding": 1}),
    "with steps": (made(2, 8, 9, 9), made(6, 8, 3, 3), {"stride": 2, "padding": 1}),
    "in groups": (made(2, 8, 9, 9), made(6, 4, 3, 3), {"groups": 2}),
    "dilated": (made(2, 8, 11, 11), made(6, 8, 3, 3), {"dilation": 2}),
    "of one dimension": (made(2, 8, 16), made(6, 8, 4), {"padding": 3}),
    "with a bias": (made(2, 8, 9, 9), made(6, 8, 3, 3), {"bias": made(6)}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_are_counted_as_pytorch_does(case: str, tmp_path: Path) -> None:
    x, weight, more = CONVOLUTIONS[case]
    function = F.conv1d if x.dim() == 3 else F.conv2d

    work = work_of(lambda: function(x, weight, **more), "aten::convolution", tmp_path)

    assert work.matrix_flops == counted_flops(lambda: function(x, weight, **more))
    assert work.written_bytes == bytes_of([function(x, weight, **more)])
    assert work.read_bytes == bytes_of([x, weight, *([more["bias"]] if "bias" in more else [])])


def test_a_transposed_convolution(tmp_path: Path) -> None:
    x, weight = made(2, 8, 5, 5), made(8, 3, 3, 3)

    def run() -> Any:
        return F.conv_transpose2d(x, weight, stride=2, padding=1, output_padding=1, groups=2)

    work = work_of(run, "aten::convolution", tmp_path)

    assert work.matrix_flops == counted_flops(run)
    assert work.written_bytes == bytes_of([run()])


def test_a_one_by_one_convolution_with_steps_reads_a_quarter(tmp_path: Path) -> None:
    x, weight = made(2, 8, 8, 8), made(6, 8, 1, 1)

    work = work_of(lambda: F.conv2d(x, weight, stride=2), "aten::convolution", tmp_path)

    assert work.read_bytes == bytes_of([x[:, :, ::2, ::2], weight])


@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_a_convolution(groups: int, tmp_path: Path) -> None:
    x, weight = made(2, 8, 9, 9).requires_grad_(), made(6, 8 // groups, 3, 3).requires_grad_()

    def run() -> Any:
        return F.conv2d(x, weight, stride=2, padding=1, groups=groups).sum().backward()

    work = work_of(run, "aten::convolution_backward", tmp_path)

    forward = counted_flops(lambda: F.conv2d(x.detach(), weight.detach(), stride=2, padding=1, groups=groups))
    assert work.matrix_flops == 2 * forward
    if groups == 1:  # of groups, PyTorch counts the weights' gradient as if there were one
        assert counted_flops(run) == 3 * forward


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_without_a_mask_is_counted_as_pytorch_does(kv_heads: int, tmp_path: Path) -> None:
    q, k, v = made(2, 4, 5, 8), made(2, kv_heads, 7, 8), made(2, kv_heads, 7, 8)

    def run() -> Any:
        return attention(q, k, v, enable_gqa=kv_heads != 4)

    work = work_of(run, "aten::scaled_dot_product_attention", tmp_path)

    all_pairs = 2 * 4 * 5 * 7
    assert work.matrix_flops == 2 * all_pairs * (8 + 8)
    assert kv_heads != 4 or work.matrix_flops == counted_flops(
        lambda: attention(q.to("meta"), k.to("meta"), v.to("meta"))
    )
    assert work.special_ops == all_pairs
    assert work.read_bytes == bytes_of([q, k, v])
    assert work.written_bytes == bytes_of([run()])


def test_causal_attention_counts_the_pairs_that_are_seen(tmp_path: Path) -> None:
    q = made(2, 4, 6, 8)

    def run() -> Any:
        return attention(q, q, q, is_causal=True)

    work = work_of(run, "aten::scaled_dot_product_attention", tmp_path)

    seen = int(torch.ones(6, 6).tril().sum())
    assert work.matrix_flops == 2 * 2 * 4 * seen * 16


SMALL = made(3, 4)
INTEGERS = torch.arange(12).reshape(3, 4)
ELEMENTWISE = {
    "add": ("aten::add", torch.add, (SMALL, made(3, 4))),
    "a broadcast row": ("aten::add", torch.add, (SMALL, made(4))),
    "an expanded input": ("aten::mul", torch.mul, (SMALL, made(1, 4).expand(3, 4))),
    "a column": ("aten::mul", torch.mul, (SMALL, made(3, 1))),
    "both broadcast": ("aten::add", torch.add, (made(3, 1), made(1, 4))),
    "slices": ("aten::add", torch.add, (made(3, 8)[:, ::2], made(3, 4))),
    "a number": ("aten::mul", lambda a: a * 2.5, (SMALL,)),
    "bf16 and fp32": ("aten::add", torch.add, (made(3, 4, dtype=torch.bfloat16), SMALL)),
    "bf16 and fp16": ("aten::add", torch.add, (made(3, 4, dtype=torch.bfloat16), made(3, 4, dtype=torch.float16))),
    "integers and a float": ("aten::mul", torch.mul, (torch.arange(12).reshape(3, 4), made(3, 4, dtype=torch.float16))),
    "a tensor of no dimension": ("aten::mul", torch.mul, (made(3, 4, dtype=torch.float16), torch.tensor(2.0))),
    "a comparison": ("aten::lt", torch.lt, (SMALL, made(3, 4))),
    "where": ("aten::where", torch.where, (SMALL > 0, SMALL, made(3, 4))),
    "silu": ("aten::silu", F.silu, (SMALL,)),
    "gelu": ("aten::gelu", F.gelu, (SMALL,)),
    "rsqrt": ("aten::rsqrt", torch.rsqrt, (SMALL.abs(),)),
    "a square": ("aten::pow", lambda a: a.pow(2), (SMALL,)),
    "a quotient of integers": ("aten::div", torch.div, (INTEGERS, INTEGERS + 1)),
    "a root of integers": ("aten::sqrt", torch.sqrt, (INTEGERS,)),
    "integers by a fraction": ("aten::mul", lambda a: a * 0.5, (INTEGERS,)),
    "integers by a number": ("aten::mul", lambda a: a * 2, (INTEGERS,)),
    "integers and integers": ("aten::sub", torch.sub, (INTEGERS, INTEGERS)),
    "clamp": ("aten::clamp", lambda a: a.clamp(-1, 1), (SMALL,)),
}


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_element_wise_ops_touch_what_pytorch_does(case: str, tmp_path: Path) -> None:
    op, function, inputs = ELEMENTWISE[case]

    work = work_of(lambda: function(*inputs), op, tmp_path)

    assert work.read_bytes == bytes_of(each for each in inputs if each.dim())
    assert work.written_bytes == bytes_of([function(*inputs)])
    assert work.vector_flops + work.special_ops >= function(*inputs).numel()


IN_PLACE = {
    "add_": ("aten::add_", lambda a: a.add_(SMALL), True),
    "mul_": ("aten::mul_", lambda a: a.mul_(made(4)), True),
    "fill_": ("aten::fill_", lambda a: a.fill_(2), False),
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_ops_in_place_write_their_first_tensor(case: str, tmp_path: Path) -> None:
    op, function, reads_it = IN_PLACE[case]
    a = made(3, 4)

    work = work_of(lambda: function(a), op, tmp_path)

    assert work.written_bytes == bytes_of([a])
    assert (work.read_bytes >= bytes_of([a])) == reads_it


def test_a_copy_reads_an_expanded_source_once_and_each_side_in_its_type(tmp_path: Path) -> None:
    to, of = made(3, 4, dtype=torch.bfloat16), made(1, 4).expand(3, 4)

    work = work_of(lambda: to.copy_(of), "aten::copy_", tmp_path)

    assert (work.read_bytes, work.written_bytes) == (bytes_of([of]), bytes_of([to]))


NORMS = {
    "layer norm": (
        "aten::native_layer_norm",
        lambda x: torch.native_layer_norm(x, [6], X[0], X[1], 1e-5),
        [X[0], X[1]],
    ),
    "layer norm without weights": (
        "aten::native_layer_norm",
        lambda x: torch.native_layer_norm(x, [6], None, None, 1e-5),
        [],
    ),
    "softmax": ("aten::_softmax", lambda x: torch.softmax(x, -1), []),
}


@pytest.mark.parametrize("case", NORMS)
def test_norms_read_and_write_their_rows_once(case: str, tmp_path: Path) -> None:
    op, function, weights = NORMS[case]
    x = made(4, 6, seed=1)
    results = function(x)

    work = work_of(lambda: function(x), op, tmp_path)

    assert work.read_bytes == bytes_of([x, *weights])
    assert work.written_bytes == bytes_of(results if isinstance(results, tuple) else [results])


REDUCTIONS = {
    "sum of all": ("aten::sum", lambda x: x.sum(), torch.float32),
    "sum of rows": ("aten::sum", lambda x: x.sum(-1), torch.float32),
    "sum of columns, kept": ("aten::sum", lambda x: x.sum(0, keepdim=True), torch.float32),
    "sum of truths": ("aten::sum", lambda x: x.sum(-1), torch.bool),
    "mean": ("aten::mean", lambda x: x.mean(-1, keepdim=True), torch.float32),
    "argmax": ("aten::argmax", lambda x: x.argmax(-1), torch.float32),
    "max of a dimension": ("aten::max", lambda x: x.max(-1), torch.float32),
    "max of all": ("aten::max", lambda x: x.max(), torch.float32),
    "cumsum": ("aten::cumsum", lambda x: x.cumsum(-1), torch.float32),
    "cumsum of integers": ("aten::cumsum", lambda x: x.cumsum(-1), torch.int32),
    "sort": ("aten::sort", lambda x: x.sort(-1), torch.float32),
    "topk": ("aten::topk", lambda x: x.topk(2, -1), torch.float32),
    "any": ("aten::any", lambda x: x.any(-1), torch.bool),
}


@pytest.mark.parametrize("case", REDUCTIONS)
def test_reductions_write_what_pytorch_does(case: str, tmp_path: Path) -> None:
    op, function, dtype = REDUCTIONS[case]
    x = (made(4, 6) * 3).to(dtype)
    results = function(x)

    work = work_of(lambda: function(x), op, tmp_path)

    assert work.read_bytes == bytes_of([x])
    assert work.written_bytes == bytes_of([results] if torch.is_tensor(results) else results)


def test_rows_of_a_table_are_read_and_not_the_table(tmp_path: Path) -> None:
    table, index = made(100, 6), torch.tensor([[3, 5, 3], [7, 9, 99]])
    rows = F.embedding(index, table)

    embedded = work_of(lambda: F.embedding(index, table), "aten::embedding", tmp_path)
    selected = work_of(lambda: table.index_select(0, index[0]), "aten::index_select", tmp_path)

    assert (embedded.read_bytes, embedded.written_bytes) == (bytes_of([rows, index]), bytes_of([rows]))
    assert (selected.read_bytes, selected.written_bytes) == (bytes_of([rows[0], index[0]]), bytes_of([rows[0]]))


def test_an_expanded_index_is_read_once(tmp_path: Path) -> None:
    x, index = made(9, 6), torch.tensor([[2], [5]]).expand(2, 6)

    work = work_of(lambda: x.gather(0, index), "aten::gather", tmp_path)

    assert work.read_bytes == 12 * 4 + 2 * 8
    assert work.written_bytes == 12 * 4


def test_parts_that_are_joined_have_the_type_that_the_kernel_names(tmp_path: Path) -> None:
    parts = [made(2, 3), made(0), made(1, 3).expand(2, 3)]
    kernel = "void CatArrayBatchedCopy<OpaqueType<4u>, unsigned int, 2, 64, 64>(OpaqueType<4u>*)"

    work = work_of(lambda: torch.cat(parts), "aten::cat", tmp_path, kernels=(kernel,))

    assert work.read_bytes == bytes_of(parts)
    assert work.written_bytes == bytes_of([torch.cat(parts)])


def test_a_range_counts_its_numbers(tmp_path: Path) -> None:
    calls = profiled_calls(lambda: torch.arange(3, 20, 5), "aten::arange", tmp_path)
    found = model_of("aten::arange")
    assert found is not None

    inner = next(call for call in calls if call.all_tensors)

    assert found.work(inner).written_bytes == bytes_of([torch.arange(3, 20, 5)])


def test_averages_of_a_window_have_no_dilation(tmp_path: Path) -> None:
    x = made(2, 3, 7, 7)

    work = work_of(lambda: F.avg_pool2d(x, 3, stride=1), "aten::avg_pool2d", tmp_path)

    assert work.written_bytes == bytes_of([F.avg_pool2d(x, 3, stride=1)])
