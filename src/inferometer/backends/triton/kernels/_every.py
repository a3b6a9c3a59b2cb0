"""Launches every kernel of this folder, so that one command compiles them all for an architecture.

`inferometer bench linear_sigmoid_mul --candidate .../triton/kernels/_every.py --stage builds --shapes 0 --arch sm_90`

A candidate for that stage only: it takes the dtype and the device of what it gets, and gives no answer to it. It is one
for an operator with products, so that the stage looks for matrix instructions.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from inferometer.backends.triton.kernels.argmax import argmax
from inferometer.backends.triton.kernels.attention import attention_decode, attention_prefill
from inferometer.backends.triton.kernels.fused_add_rms_norm import fused_add_rms_norm
from inferometer.backends.triton.kernels.fused_qk_rmsnorm import fused_qk_rmsnorm
from inferometer.backends.triton.kernels.gated_mul import gelu_mul, silu_mul
from inferometer.backends.triton.kernels.linear import linear
from inferometer.backends.triton.kernels.moe_topk_gating_softmax import moe_route, moe_topk_gating_softmax
from inferometer.backends.triton.kernels.rms_norm import rms_norm
from inferometer.backends.triton.kernels.rope import rope
from inferometer.backends.triton.kernels.softmax import softmax
from inferometer.backends.triton.kernels.top_k_top_p import top_k_top_p
from inferometer.backends.triton.kernels.topk_filter import topk_filter

_VOCABULARY = 128_256
_LONG_ROW = 20_480  # which a block of a norm doesn't hold
_PRODUCTS = ((1, 4_096, 4_096), (33, 4_096, 4_096), (300, 4_096, 4_096), (300, 300, 1_000))


def linear_sigmoid_mul(hidden_states: Tensor, *others: Tensor) -> Tensor:
    """`hidden_states`, having launched all, in its dtype and, where that is one of 16 bits, in float32 too."""
    for dtype in dict.fromkeys((hidden_states.dtype, torch.float32)):
        for _ in _launches(dtype, hidden_states.device):
            pass
    _launch_sampling(hidden_states.device)
    return hidden_states.clone()


def _launches(dtype: torch.dtype, device: torch.device) -> Iterator[object]:
    def rows(*shape: int) -> Tensor:
        return torch.ones(shape, dtype=dtype, device=device)

    for width in (128, 4_096, _LONG_ROW):
        yield rms_norm(rows(7, width), rows(width), late_cast=False)
        yield rms_norm(rows(7, width), rows(width), offset=1.0)
        yield fused_add_rms_norm(rows(7, width), rows(7, width), rows(width), late_cast=False)
    yield fused_qk_rmsnorm(rows(7, 48 * 128), rows(128), rows(128), head_num=32, kv_head_num=8)
    for D in (64, 128):
        q_BHqTD, k_BHkTD, turn_BTD = (
            rows(2, 300, 8, D).transpose(1, 2),
            rows(2, 300, 2, D).transpose(1, 2),
            rows(2, 300, D),
        )
        yield rope(q_BHqTD, k_BHkTD, turn_BTD, turn_BTD)
        yield attention_prefill(q_BHqTD, k_BHkTD, k_BHkTD, scale=1.0)
        yield attention_prefill(q_BHqTD, k_BHkTD, k_BHkTD, scale=1.0, window=64, softcap=50.0)
        yield attention_decode(q_BHqTD[:, :, :1], k_BHkTD, k_BHkTD, scale=1.0)
    yield silu_mul(rows(300, 14_336), rows(300, 14_336))
    yield gelu_mul(rows(300, 14_336), rows(300, 14_336))
    for M, N, K in _PRODUCTS:
        yield linear(rows(M, K), rows(N, K))
        yield linear(rows(M, K), rows(N, K), rows(N))
    yield softmax(rows(2, _VOCABULARY))
    yield argmax(rows(2, _VOCABULARY))
    yield moe_route(rows(300, 128), k=8, renormalize=True)


def _launch_sampling(device: torch.device) -> None:
    logits_BV = torch.ones(2, _VOCABULARY, device=device)
    uniform_B = torch.ones(2, device=device)
    topk_filter(logits_BV)
    for k, p in ((0, 1.0), (50, 1.0), (0, 0.9), (50, 0.9)):
        top_k_top_p(logits_BV, uniform_B, k=k, p=p)
    moe_topk_gating_softmax(torch.ones(300, 128, device=device), top_k=8)
    moe_topk_gating_softmax(torch.ones(300, 160, device=device), top_k=6, num_expert_groups=8, topk_group=3)
