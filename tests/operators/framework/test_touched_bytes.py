"""What ops of training and of images read and write, place by place, of calls that PyTorch's profiler recorded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.operators.framework.profiled import bytes_of, profiled_calls
from tests.operators.framework.test_serving import call_of, work_of

torch = pytest.importorskip("torch", reason="needs torch")
F = torch.nn.functional


def made(*shape: int, dtype: Any = None) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype or torch.float32)


class Case(NamedTuple):
    """`run` calls the op with `inputs`; `read` and `written`: what is touched, all inputs and all results if None."""

    op: str
    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    read: int | None = None
    written: int | None = None


X, IMAGE, ROWS = made(4, 6), made(2, 3, 9, 8), made(5, 4)
SMALL, PER_CHANNEL = made(2, 3, 4, 4), made(3)
CLASSES, TABLE = torch.tensor([1, 0, 3, 2, 1]), made(9, 4)
INDEX, SORTED = torch.tensor([[1, 7, 1], [2, 2, 0]]), torch.arange(100.0)
aten = torch.ops.aten
CASES = [
    Case("aten::glu", F.glu, (X,)),
    Case("aten::glu_backward", aten.glu_backward, (X[:, :3].contiguous(), X, -1)),
    Case("aten::hardswish_backward", aten.hardswish_backward, (X, X)),
    Case("aten::leaky_relu_backward", aten.leaky_relu_backward, (X, X, 0.1, False)),
    Case("aten::softplus_backward", aten.softplus_backward, (X, X, 1, 20)),
    Case("aten::logaddexp", torch.logaddexp, (X, X)),
    Case("aten::bitwise_left_shift", torch.bitwise_left_shift, (INDEX, INDEX)),
    Case("aten::flip", lambda x: x.flip(0), (X,)),
    Case("aten::roll", lambda x: x.roll(1, 0), (X,)),
    Case("aten::complex", torch.complex, (X, X)),
    Case("aten::var_mean", lambda x: torch.var_mean(x, -1), (X,)),
    Case("aten::std_mean", lambda x: torch.std_mean(x, -1), (X,)),
    Case("aten::aminmax", lambda x: torch.aminmax(x, dim=-1), (X,)),
    Case("aten::kthvalue", lambda x: x.kthvalue(2, 0), (X,)),
    Case("aten::median", lambda x: x.median(-1), (X,)),
    Case("aten::median", lambda x: x.median(), (X,)),
    Case("aten::multinomial", lambda x: x.multinomial(2), (X.abs(),)),
    Case("aten::histc", lambda x: x.histc(7), (X,)),
    Case("aten::searchsorted", torch.searchsorted, (SORTED, X), read=4 * 24 + 4 * 24),
    Case("aten::bucketize", lambda b, x: torch.bucketize(x, b, out_int32=True), (SORTED[:5], X)),
    Case("aten::nonzero", torch.nonzero, (X,), written=0),
    Case("aten::masked_select", torch.masked_select, (X, X > 0), read=24, written=0),
    Case("aten::_adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (IMAGE,)),
    Case("aten::_adaptive_avg_pool2d_backward", aten._adaptive_avg_pool2d_backward, (SMALL, IMAGE), read=4 * 96),
    Case(
        "aten::avg_pool2d_backward",
        lambda g, x: aten.avg_pool2d_backward(g, x, [2, 2], [2, 2], [0, 0], False, True, None),
        (SMALL, IMAGE[:, :, :8]),
        read=4 * 96,
        written=4 * 2 * 3 * 8 * 8,
    ),
    Case("aten::upsample_nearest2d", lambda x: F.interpolate(x, size=(18, 16)), (IMAGE,)),
    Case("aten::upsample_nearest2d", lambda x: F.interpolate(x, size=(3, 4)), (IMAGE,), read=4 * 2 * 3 * 12),
    Case("aten::upsample_bilinear2d", lambda x: F.interpolate(x, size=(18, 16), mode="bilinear"), (IMAGE,)),
    Case(
        "aten::upsample_bilinear2d_backward",
        lambda g: aten.upsample_bilinear2d_backward(g, [4, 4], [2, 3, 9, 8], False),
        (SMALL,),
    ),
    Case("aten::reflection_pad2d", lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"), (IMAGE,)),
    Case("aten::replication_pad2d", lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"), (IMAGE,)),
    Case("aten::im2col", lambda x: F.unfold(x, 3, padding=1, stride=2), (IMAGE,)),
    Case("aten::smooth_l1_loss", F.smooth_l1_loss, (X, X)),
    Case("aten::huber_loss", lambda x, y: F.huber_loss(x, y, reduction="none"), (X, X)),
    Case("aten::binary_cross_entropy", F.binary_cross_entropy, (X.sigmoid(), X.sigmoid())),
    Case("aten::nll_loss_forward", F.nll_loss, (ROWS, CLASSES), read=5 * 4 + 5 * 8, written=2 * 4),
    Case("aten::_embedding_bag_forward_only", F.embedding_bag, (INDEX, TABLE), read=6 * 16 + 6 * 8 + 2 * 8),
    Case("aten::take", torch.take, (X, INDEX), read=6 * 4 + 6 * 8),
    Case("aten::put_", lambda i, s: made(30).put_(i, s), (INDEX, made(2, 3)), written=6 * 4),
    Case("aten::index_fill_", lambda i: made(9, 4).index_fill_(0, i, 2.0), (CLASSES,), written=5 * 16),
    Case("aten::native_group_norm_backward", lambda g, x, m: aten.native_group_norm_backward(
        g, x, m, m, None, 2, 3, 72, 3, [True, False, False]), (IMAGE, IMAGE, made(2, 3)), read=2 * 4 * 432 + 2 * 4 * 6),
    Case("aten::native_group_norm", lambda x, w: aten.native_group_norm(x, w, w, 2, 3, 72, 3, 1e-5),
         (IMAGE, PER_CHANNEL), read=4 * 432 + 2 * 12),
    Case("aten::native_batch_norm", lambda x, w: aten.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5),
         (IMAGE, PER_CHANNEL), read=4 * 432 + 2 * 12),
    Case("aten::native_batch_norm", lambda x, w, m, v: aten.native_batch_norm(x, w, w, m, v, True, 0.1, 1e-5),
         (IMAGE, PER_CHANNEL, made(3), made(3).abs()), read=4 * 432 + 4 * 12, written=4 * 432 + 4 * 12),
    Case("aten::native_batch_norm", lambda x, w, m, v: aten.native_batch_norm(x, w, w, m, v, False, 0.1, 1e-5),
         (IMAGE, PER_CHANNEL, made(3), made(3).abs()), read=4 * 432 + 4 * 12),
    Case("aten::native_batch_norm_backward", lambda g, x, w, m: aten.native_batch_norm_backward(
        g, x, w, m, m, m, m, True, 1e-5, [True, True, True]), (IMAGE, IMAGE, PER_CHANNEL, made(3).abs()),
        read=2 * 4 * 432 + 3 * 12),
    Case("aten::native_layer_norm_backward", lambda g, x, m, w: aten.native_layer_norm_backward(
        g, x, [6], m, m, w, w, [True, True, True]), (X, X, made(4, 1), X[0]), read=2 * 96 + 2 * 16 + 24),
    Case("aten::logsumexp", lambda x: x.logsumexp(-1), (X,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_each_touches_what_pytorch_does(case: Case, tmp_path: Path) -> None:
    results = case.run(*case.inputs)
    listed = [each for each in (results if isinstance(results, tuple) else [results]) if each is not None]

    (call, *_) = profiled_calls(lambda: case.run(*case.inputs), case.op, tmp_path)
    work = work_of(call)

    tensors = [each for each in case.inputs if torch.is_tensor(each)]
    assert work.read_bytes == (bytes_of(tensors) if case.read is None else case.read)
    assert work.written_bytes == (bytes_of(listed) if case.written is None else case.written)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("diagonal", [-7, -2, 0, 1, 3, 9])
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 5, 5), (1, 1)])
def test_of_a_triangle_what_is_kept_is_read(shape: tuple[int, ...], diagonal: int, *, upper: bool) -> None:
    function = torch.triu if upper else torch.tril
    kept = int(function(torch.ones(shape), diagonal).sum())
    op = "aten::triu" if upper else "aten::tril"
    x = (shape, "float")

    fresh, in_place = work_of(call_of(op, x, diagonal)), work_of(call_of(f"{op}_", x, diagonal))

    size = int(torch.ones(shape).sum())
    assert (fresh.read_bytes, fresh.written_bytes) == (4 * kept, 4 * size)
    assert (in_place.read_bytes, in_place.written_bytes) == (0, 4 * (size - kept))


ADAM = "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>, float>()"


@pytest.mark.parametrize(("amsgrad", "states"), [(False, 2), (True, 3)])
def test_a_fused_step_of_adam_reads_gradients_and_rewrites_the_rest(amsgrad: bool, states: int, tmp_path: Path) -> None:
    parameters = [made(8, 8).requires_grad_(), made(3).requires_grad_()]
    for each in parameters:
        each.grad = torch.ones_like(each)
    optimizer = torch.optim.AdamW(parameters, fused=True, amsgrad=amsgrad)

    (call, *_) = profiled_calls(optimizer.step, "aten::_fused_adamw_", tmp_path, kernels=(ADAM,))
    work = work_of(call)

    size = 4 * (64 + 3)
    assert (work.read_bytes, work.written_bytes) == ((2 + states) * size, (1 + states) * size)


@pytest.mark.parametrize(("momentum", "states"), [(0.0, 0), (0.9, 1)])
def test_a_fused_step_of_sgd(momentum: float, states: int, tmp_path: Path) -> None:
    parameter = made(8, 8).requires_grad_()
    parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=momentum, fused=True)

    optimizer.step()  # the first one makes the momentum
    (call, *_) = profiled_calls(optimizer.step, "aten::_fused_sgd_", tmp_path, kernels=(ADAM,))
    work = work_of(call)

    assert (work.read_bytes, work.written_bytes) == (4 * 64 * (2 + states), 4 * 64 * (1 + states))


LISTS: dict[str, tuple[Callable[[list[Any]], Any], int, int]] = {
    "aten::_foreach_mul": (lambda x: torch._foreach_mul(x, x), 2, 1),
    "aten::_foreach_sqrt": (torch._foreach_sqrt, 1, 1),
    "aten::_foreach_add_": (lambda x: torch._foreach_add_(x, 1.0), 1, 1),
    "aten::_foreach_addcdiv_": (lambda x: torch._foreach_addcdiv_(x, x, x, 0.1), 3, 1),
}


@pytest.mark.parametrize("op", LISTS)
def test_lists_are_read_and_results_written(op: str, tmp_path: Path) -> None:
    run, read, written = LISTS[op]
    tensors = [made(8, 8).abs(), made(3).abs()]

    (call, *_) = profiled_calls(lambda: run(tensors), op, tmp_path, kernels=(ADAM,))
    work = work_of(call)

    assert (work.read_bytes, work.written_bytes) == (read * 4 * 67, written * 4 * 67)


def test_norms_of_a_list_are_a_number_each(tmp_path: Path) -> None:
    tensors = [made(8, 8), made(3)]

    (call, *_) = profiled_calls(lambda: torch._foreach_norm(tensors), "aten::_foreach_norm", tmp_path, kernels=(ADAM,))

    assert (work_of(call).read_bytes, work_of(call).written_bytes) == (4 * 67, 4 * 2)


@pytest.mark.parametrize("library", ["cudnn", "miopen"])
def test_batch_norms_of_vendors_read_x_and_its_gradient(library: str) -> None:
    x, channel = ((2, 3, 5, 5), "c10::BFloat16"), ((3,), "float")

    work = work_of(call_of(f"aten::{library}_batch_norm_backward", x, x, *[channel] * 5, "1e-05"))

    assert (work.read_bytes, work.written_bytes) == (2 * 2 * 150 + 3 * 12, 2 * 150 + 2 * 12)


def test_the_fused_rms_norm_keeps_a_number_a_row() -> None:
    x, weight = ((4, 6), "c10::BFloat16"), ((6,), "c10::BFloat16")
    results = torch.ops.aten._fused_rms_norm(
        torch.empty(4, 6, dtype=torch.bfloat16, device="meta"), [6], torch.empty(6, device="meta"), 1e-5
    )

    fused, plain = (
        work_of(call_of(f"aten::{name}", x, "[6]", weight, 1e-5)) for name in ("_fused_rms_norm", "rms_norm")
    )

    assert fused.written_bytes == sum(each.numel() * each.element_size() for each in results)
    assert plain.written_bytes == 2 * 24
    assert fused.read_bytes == plain.read_bytes == 2 * 24 + 2 * 6


def test_the_gradient_of_a_table_reads_what_came_back_and_one_row_at_least_is_written(tmp_path: Path) -> None:
    table = TABLE.clone().requires_grad_()

    def run() -> None:
        F.embedding(INDEX, table).sum().backward()

    (call, *_) = profiled_calls(run, "aten::embedding_dense_backward", tmp_path)
    work = work_of(call)

    assert work.read_bytes == call.tensor(0).bytes + 6 * 8
    assert work.written_bytes == 4 * 4
    assert work.assumes
