"""Gradients of attention: products as PyTorch counts them, places as its schemas have them, bytes by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.operators.framework.profiled import bytes_of, counted_flops, profiled_calls
from tests.operators.framework.test_serving import call_of, work_of

torch = pytest.importorskip("torch", reason="needs torch")

FLASH, EFFICIENT, CUDNN = "flash", "efficient", "cudnn"
F32 = "float"
B, H, N, M, D = 2, 3, 5, 7, 8


def recorded(op: str, grad: Any, q: Any, k: Any, **named: Any) -> Any:
    """A call with each argument where PyTorch's schema has it: what isn't named is left out."""
    packet = getattr(torch.ops.aten, op.removeprefix("aten::"))
    names = [each.name for each in packet.default._schema.arguments]
    given = {names[0]: grad, "query": q, "key": k, "value": k, "out": q, **named}
    assert set(given) <= set(names)
    return call_of(op, *(given.get(name) for name in names))


def heads_first(*shape: int) -> Any:
    return shape, F32


LSE = ((B, H, N), F32)
DENSE = (
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::_cudnn_attention_backward",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
)
LENGTH_FIRST = ("aten::_flash_attention_backward", "aten::_efficient_attention_backward")


def call(op: str, *, causal: bool = False, keys: int = N) -> Any:
    first = op in LENGTH_FIRST
    q, k = ((B, N, H, D), (B, keys, H, D)) if first else ((B, H, N, D), (B, H, keys, D))
    flag: dict[str, Any] = {"is_causal": causal}
    if op == "aten::_efficient_attention_backward":
        flag = {"custom_mask_type": int(causal)}
    return recorded(op, (q, F32), (q, F32), (k, F32), logsumexp=LSE, **flag)


@pytest.mark.parametrize("op", [*DENSE, *LENGTH_FIRST])
def test_of_each_pair_five_products_are_made(op: str) -> None:
    work = work_of(call(op, keys=M))

    assert work.matrix_flops == 5 * 2 * B * H * N * M * D
    assert work.special_ops == B * H * N * M
    assert work.read_bytes == 4 * (3 * B * H * N * D + 2 * B * H * M * D + B * H * N)
    assert work.written_bytes == 4 * (B * H * N * D + 2 * B * H * M * D)


@pytest.mark.parametrize("op", [*DENSE, *LENGTH_FIRST])
def test_of_causal_ones_the_pairs_that_are_seen(op: str) -> None:
    seen = int(torch.ones(N, N).tril().sum())

    assert work_of(call(op, causal=True)).matrix_flops == 5 * 2 * B * H * seen * D


COUNTED: dict[str, Callable[[Any, Any], Any]] = {
    "aten::_scaled_dot_product_flash_attention_backward": lambda q, k: (
        torch.ops.aten._scaled_dot_product_flash_attention_backward(
            q, q, k, k, q, q[..., 0], None, None, N, M, 0.0, False, q[0, 0, 0], q[0, 0, 0]
        )
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": lambda q, k: (
        torch.ops.aten._scaled_dot_product_efficient_attention_backward(
            q, q, k, k, None, q, q[..., 0], q[0, 0, 0], q[0, 0, 0], 0.0, [True, True, True, False]
        )
    ),
}


@pytest.mark.parametrize("op", COUNTED)
def test_pytorch_counts_the_same_products(op: str) -> None:
    q, k = (torch.empty(B, H, length, D, device="meta", dtype=torch.float16) for length in (N, M))

    assert work_of(call(op, keys=M)).matrix_flops == counted_flops(lambda: COUNTED[op](q, k))


@pytest.mark.parametrize("causal", [False, True])
def test_a_backward_pass_that_ran(causal: bool, tmp_path: Path) -> None:
    q, k, v = (torch.randn(B, H, N, D).requires_grad_() for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention

    def run() -> None:
        attention(q, k, v, is_causal=causal).sum().backward()

    (found, *_) = profiled_calls(run, "aten::_scaled_dot_product_flash_attention_for_cpu_backward", tmp_path)
    work = work_of(found)

    pairs = B * H * (N * (N + 1) // 2 if causal else N * N)
    assert work.matrix_flops == 5 * 2 * pairs * D
    assert work.written_bytes == bytes_of([q.grad, k.grad, v.grad])
    grad_bytes = found.tensor(0).bytes  # of a sum it is one number, expanded
    assert work.read_bytes == grad_bytes + bytes_of([q, k, v, q]) + 4 * B * H * N


def test_flash_attentions_own_gradient_is_causal_from_the_end_and_has_fewer_heads_of_keys() -> None:
    q, k, lse = ((B, N, 4, D), "c10::BFloat16"), ((B, M, 2, D), "c10::BFloat16"), ((B, 4, N), F32)
    work = work_of(
        call_of("flash_attn::_flash_attn_backward", q, q, k, k, q, lse, q, k, k, "0.", "0.1", "True", "-1", "-1")
    )

    seen = sum(M - N + 1 + at for at in range(N))
    assert work.matrix_flops == 5 * 2 * B * 4 * seen * D
    assert work.written_bytes == 2 * B * D * (N * 4 + 2 * M * 2)


def test_gradients_of_several_sequences() -> None:
    tokens, starts, lse = ((12, 4, 8), "c10::BFloat16"), ((4,), "int"), ((4, 12), F32)
    more = (starts, starts, 4, 4, "0.", "0.1", "True", "-1", "-1")
    work = work_of(call_of("flash_attn::_flash_attn_varlen_backward", *[tokens] * 5, lse, *[tokens] * 3, *more))

    assert work.matrix_flops == 5 * 2 * 4 * 3 * 10 * 8  # three sequences of 4 tokens see 10 pairs each
    assert work.assumes == ()
