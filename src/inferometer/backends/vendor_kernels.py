"""Kernels that several libraries have under signatures of one kind: an operator's contract around the one function."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import Kernel
from inferometer.backends.vendor import ones, require

if TYPE_CHECKING:
    from torch import Tensor


def norm_by_answer(norm: "Callable[..., Tensor]") -> Kernel:
    """`rms_norm` by a function that returns its answer: `norm(x, weight, eps)`."""

    def kernel(x_TH: "Tensor", weight_H: "Tensor", *, eps: float = 1e-6) -> "Tensor":
        return norm(x_TH, weight_H, eps)

    return kernel


def added_norm_in_place(norm: Callable[..., None]) -> Kernel:
    """`fused_add_rms_norm` by a function that writes to both inputs: `norm(x, residual, weight, eps)`."""

    def kernel(
        x_TH: "Tensor", residual_TH: "Tensor", weight_H: "Tensor", *, eps: float = 1e-6
    ) -> "tuple[Tensor, Tensor]":
        norm(x_TH, residual_TH, weight_H, eps)
        return x_TH, residual_TH

    return kernel


def gate_into(activate: Callable[..., None]) -> Kernel:
    """`silu_and_mul` by a function that writes to its first argument: `activate(out, x)`."""
    import torch

    def kernel(x: "Tensor") -> "Tensor":
        out = torch.empty(*x.shape[:-1], x.shape[-1] // 2, dtype=x.dtype, device=x.device)
        activate(out, x)
        return out

    return kernel


def sum_into(add: Callable[..., None], library: str) -> Kernel:
    """`moe_sum_reduce` by a library's `moe_sum(outputs, out)`, which has no factor."""
    import torch

    def kernel(expert_outputs_TkH: "Tensor", *, routed_scaling_factor: float = 1.0) -> "Tensor":
        require(routed_scaling_factor == 1.0, f"{library}'s moe_sum has no factor, expected {routed_scaling_factor:g}")
        T, _, H = expert_outputs_TkH.shape
        out_TH = torch.empty(T, H, dtype=expert_outputs_TkH.dtype, device=expert_outputs_TkH.device)
        add(expert_outputs_TkH, out_TH)
        return out_TH

    return kernel


def choose_into(choose: Callable[..., None], library: str) -> Kernel:
    """`moe_topk_gating_softmax` by a library's `topk_softmax(weights, ids, rows, logits, renormalise)`: no groups."""
    import torch

    def kernel(
        logits_TE: "Tensor", *, top_k: int, num_expert_groups: int = 0, topk_group: int = 0
    ) -> "tuple[Tensor, Tensor]":
        require(not (num_expert_groups > 0 and topk_group > 0), f"{library}'s topk_softmax has no groups of experts")
        shape, device = (logits_TE.shape[0], top_k), logits_TE.device
        weights_Tk = torch.empty(shape, dtype=torch.float32, device=device)
        ids_Tk, rows_Tk = (torch.empty(shape, dtype=torch.int32, device=device) for _ in range(2))
        choose(weights_Tk, ids_Tk, rows_Tk, logits_TE, False)
        return weights_Tk, ids_Tk

    return kernel


def write_to_cache(write: Callable[..., None]) -> Kernel:
    """`reshape_and_cache` by a library's `reshape_and_cache_flash`, without quantisation."""

    def kernel(
        key_Thd: "Tensor", value_Thd: "Tensor", key_cache: "Tensor", value_cache: "Tensor", slot_mapping_T: "Tensor"
    ) -> "tuple[Tensor, Tensor]":
        scale = ones(key_Thd.device)
        write(key_Thd, value_Thd, key_cache, value_cache, slot_mapping_T, "auto", scale, scale)
        return key_cache, value_cache

    return kernel


def rope_by_table(rotate: Callable[..., None]) -> Kernel:
    """`fused_qkv_rope` by a function that turns q and k in place, `rotate(positions, q, k, head_dim, table, neox)`.

    The input isn't production's to write to in this contract, so q and k are copied first, and v is too, as the answer
    is dense: those copies, the sum with the bias and the positions' conversion to int64 are in the time. The table of
    cosines and sines, in the dtype of q, is made once, as engines do.
    """

    def kernel(
        qkv_TN: "Tensor",
        positions_T: "Tensor",
        qkv_bias_N: "Tensor | None" = None,
        *,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        rope_dim: int,
        rope_base: float = 10000.0,
    ) -> "tuple[Tensor, Tensor, Tensor]":
        import torch

        require(
            num_heads % num_kv_heads == 0,
            f"its rotation wants a multiple of {num_kv_heads} query heads, found {num_heads}",
        )
        packed = qkv_TN if qkv_bias_N is None else qkv_TN + qkv_bias_N
        heads = packed.unflatten(-1, (-1, head_dim)).split((num_heads, num_kv_heads, num_kv_heads), 1)
        q, k, v = (part.clone(memory_format=torch.contiguous_format) for part in heads)
        table = _cosines_and_sines(_rows(qkv_TN.shape[0]), rope_dim, float(rope_base), qkv_TN.dtype, qkv_TN.device)
        rotate(positions_T.long(), q.flatten(1), k.flatten(1), head_dim, table, True)
        return q, k, v

    return kernel


def _rows(tokens: int) -> int:
    """More than the greatest position that the operator's inputs have, known without asking the device."""
    from inferometer.operators.catalogue.fused_qkv_rope import FURTHEST

    return max(FURTHEST, tokens + 2)


@lru_cache(maxsize=4)
def _cosines_and_sines(rows: int, rope_dim: int, base: float, dtype: Any, device: Any) -> "Tensor":
    """[rows, rope_dim]: of each position the cosines of all frequencies, then the sines; angles in float32."""
    import torch

    column_r = torch.arange(0, rope_dim, 2, device=device).float()
    angle_Pr = torch.arange(rows, device=device).float()[:, None] * (1.0 / base ** (column_r / rope_dim))
    return torch.cat([angle_Pr.cos(), angle_Pr.sin()], -1).to(dtype)
