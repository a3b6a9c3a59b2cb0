"""A decoder's operators in plain PyTorch, run eagerly: its fused operations where they keep to the contract.

It has every operator and refuses nothing: what other backends refuse runs here, and they are compared with it. The
functions say again only what `CONTRACTS` leaves open.

B sequences, T new tokens, S tokens of keys, H hidden size, Hq query heads, Hk key heads, G = Hq / Hk, D head size,
V vocabulary, E experts.
"""

from typing import TYPE_CHECKING

from inferometer.backends.backend import DecoderKernel, DecoderKernels
from inferometer.backends.torch.catalogue import torch_unavailable
from inferometer.errors import UnknownName
from inferometer.operators.decoder.contracts import CONTRACTS

if TYPE_CHECKING:
    from torch import Tensor


def rms_norm(x: "Tensor", weight_H: "Tensor", *, eps: float, offset: float = 0.0, late_cast: bool = False) -> "Tensor":
    """Like `x`. The mean is of float32 whatever the dtype."""
    import torch

    if late_cast:
        scaled = torch.nn.functional.rms_norm(x.float(), weight_H.shape, weight_H.float() + offset, eps)
        return scaled.to(x.dtype)
    normed = torch.nn.functional.rms_norm(x, weight_H.shape, None, eps)  # float32 inside, rounded to x's dtype
    return normed * (weight_H + offset if offset else weight_H)


def add_rms_norm(
    x: "Tensor",
    residual: "Tensor",
    weight_H: "Tensor",
    *,
    eps: float,
    offset: float = 0.0,
    late_cast: bool = False,
) -> "tuple[Tensor, Tensor]":
    """The sum is rounded before it is normed."""
    total = x + residual
    return rms_norm(total, weight_H, eps=eps, offset=offset, late_cast=late_cast), total


def rope(q_BHqTD: "Tensor", k_BHkTD: "Tensor", cos_BTD: "Tensor", sin_BTD: "Tensor") -> "tuple[Tensor, Tensor]":
    """Both like their inputs; products and sum are rounded each, as Hugging Face's models round them."""
    cos_B1TD, sin_B1TD = cos_BTD.unsqueeze(1), sin_BTD.unsqueeze(1)
    return _rotate(q_BHqTD, cos_B1TD, sin_B1TD), _rotate(k_BHkTD, cos_B1TD, sin_B1TD)


def _rotate(x: "Tensor", cos: "Tensor", sin: "Tensor") -> "Tensor":
    import torch

    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


def attention_prefill(
    q_BHqTD: "Tensor",
    k_BHkSD: "Tensor",
    v_BHkSD: "Tensor",
    *,
    scale: float,
    window: int | None = None,
    softcap: float | None = None,
) -> "Tensor":
    """[B, T, Hq, D]. Keys before every query's window aren't looked at; a cap takes all scores through memory."""
    T = q_BHqTD.shape[2]
    if T == 1:
        return attention_decode(q_BHqTD, k_BHkSD, v_BHkSD, scale=scale, window=window, softcap=softcap)
    k_BHkSD, v_BHkSD = _in_reach(T, window, k_BHkSD, v_BHkSD)
    S = k_BHkSD.shape[2]
    if softcap is None and T == S and (window is None or window >= S):
        return _fused(q_BHqTD, k_BHkSD, v_BHkSD, None, scale)
    mask_TS = _seen(T, S, window, q_BHqTD)
    if softcap is None:
        return _fused(q_BHqTD, k_BHkSD, v_BHkSD, mask_TS, scale)
    return _capped(q_BHqTD, k_BHkSD, v_BHkSD, mask_TS, scale, softcap)


def attention_decode(
    q_BHq1D: "Tensor",
    k_BHkSD: "Tensor",
    v_BHkSD: "Tensor",
    *,
    scale: float,
    window: int | None = None,
    softcap: float | None = None,
) -> "Tensor":
    """[B, 1, Hq, D]. It sees all that is in reach, so no mask: the heads of a group are the queries of one head."""
    import torch

    k_BHkSD, v_BHkSD = _in_reach(1, window, k_BHkSD, v_BHkSD)
    if softcap is not None:
        return _capped(q_BHq1D, k_BHkSD, v_BHkSD, None, scale, softcap)
    q_BHkGD = q_BHq1D.reshape(q_BHq1D.shape[0], k_BHkSD.shape[1], -1, q_BHq1D.shape[3])
    out_BHkGD = torch.nn.functional.scaled_dot_product_attention(q_BHkGD, k_BHkSD, v_BHkSD, scale=scale)
    return out_BHkGD.flatten(1, 2).unsqueeze(1)


def _in_reach(T: int, window: int | None, k_BHkSD: "Tensor", v_BHkSD: "Tensor") -> "tuple[Tensor, Tensor]":
    """Without what lies before the window of the first query."""
    S = k_BHkSD.shape[2]
    if window is None or window + T > S:
        return k_BHkSD, v_BHkSD
    start = S - (window + T - 1)
    return k_BHkSD[:, :, start:], v_BHkSD[:, :, start:]


def _seen(T: int, S: int, window: int | None, like: "Tensor") -> "Tensor":
    """True [T, S] where a query sees a key."""
    import torch

    mask_TS = torch.ones(T, S, dtype=torch.bool, device=like.device).tril_(S - T)
    return mask_TS if window is None or window >= S else mask_TS.triu_(S - T - window + 1)


def _fused(q_BHqTD: "Tensor", k_BHkSD: "Tensor", v_BHkSD: "Tensor", mask_TS: "Tensor | None", scale: float) -> "Tensor":
    """Causal without a mask, which has as many queries as keys."""
    import torch

    group = q_BHqTD.shape[1] // k_BHkSD.shape[1]
    if mask_TS is not None and q_BHqTD.is_cuda and group > 1:  # no fused attention there takes a mask and groups
        k_BHkSD, v_BHkSD = k_BHkSD.repeat_interleave(group, 1), v_BHkSD.repeat_interleave(group, 1)
        group = 1
    out_BHqTD = torch.nn.functional.scaled_dot_product_attention(
        q_BHqTD, k_BHkSD, v_BHkSD, attn_mask=mask_TS, is_causal=mask_TS is None, scale=scale, enable_gqa=group > 1
    )
    return out_BHqTD.transpose(1, 2).contiguous()


def _capped(
    q_BHqTD: "Tensor", k_BHkSD: "Tensor", v_BHkSD: "Tensor", mask_TS: "Tensor | None", scale: float, softcap: float
) -> "Tensor":
    """Products in the dtype of `q`, cap and softmax in float32; the queries of a group are those of one head."""
    import torch

    B, Hq, T, D = q_BHqTD.shape
    Hk = k_BHkSD.shape[1]
    score_BHkNS = q_BHqTD.reshape(B, Hk, -1, D) @ k_BHkSD.transpose(2, 3)
    score_BHqTS = (score_BHkNS.float() * (scale / softcap)).tanh_().mul_(softcap).view(B, Hq, T, -1)
    if mask_TS is not None:
        score_BHqTS.masked_fill_(~mask_TS, float("-inf"))
    weight_BHqTS = torch.softmax(score_BHqTS, -1).to(q_BHqTD.dtype)
    out_BHkND = weight_BHqTS.view(B, Hk, -1, score_BHqTS.shape[3]) @ v_BHkSD
    return out_BHkND.view(B, Hq, T, D).transpose(1, 2).contiguous()


def linear(x: "Tensor", weight_NK: "Tensor", bias_N: "Tensor | None") -> "Tensor":
    """[..., N] like `x`."""
    import torch

    return torch.nn.functional.linear(x, weight_NK, bias_N)


def silu_mul(gate: "Tensor", up: "Tensor") -> "Tensor":
    """Like `gate`; silu is rounded before the product."""
    import torch

    return torch.nn.functional.silu(gate) * up


def gelu_mul(gate: "Tensor", up: "Tensor") -> "Tensor":
    """Like `gate`; gelu is rounded before the product."""
    import torch

    return torch.nn.functional.gelu(gate, approximate="tanh") * up


def softmax(logits_BV: "Tensor", *, temperature: float = 1.0) -> "Tensor":
    """float32 whatever the dtype, which the temperature divides in float32 too."""
    import torch

    logits_BV = logits_BV if temperature == 1.0 else logits_BV.float() / temperature
    return torch.softmax(logits_BV, -1, dtype=torch.float32)


def argmax(logits_BV: "Tensor") -> "Tensor":
    """[B]; the first of equals is what PyTorch promises."""
    import torch

    return torch.argmax(logits_BV, -1)


def top_k_top_p(prob_BV: "Tensor", uniform_B: "Tensor", *, k: int = 0, p: float = 1.0) -> "Tensor":
    """[B]; `uniform_B` lies in [0, 1). Sums are float32, so another order of adding may find another token."""
    import torch

    V = prob_BV.shape[1]
    limited = 0 < k < V
    if limited or p < 1:
        prob_BV = torch.where(_kept(prob_BV, k if limited else V, p), prob_BV, 0.0)
    running_BV = prob_BV.cumsum(-1)
    return (running_BV > uniform_B[:, None] * running_BV[:, -1:]).int().argmax(-1)


def _kept(prob_BV: "Tensor", k: int, p: float) -> "Tensor":
    """True for the most probable `k`, or for fewer that reach `p` of their sum.

    A sort by value says how many to keep and what the least of them is, but not which of equals comes first.
    """
    import torch

    whole = k == prob_BV.shape[1]
    largest_Bk = prob_BV.sort(-1, descending=True).values if whole else prob_BV.topk(k, -1).values
    if p < 1:
        running_Bk = largest_Bk.cumsum(-1)
        count_B1 = (running_Bk < p * running_Bk[:, -1:]).sum(-1, keepdim=True).clamp_(max=k - 1) + 1
        least_B1 = largest_Bk.gather(1, count_B1 - 1)
    else:
        count_B1, least_B1 = torch.full_like(largest_Bk[:, :1], k, dtype=torch.int64), largest_Bk[:, -1:]
    above_BV, equal_BV = prob_BV > least_B1, prob_BV == least_B1
    room_B1 = count_B1 - above_BV.sum(-1, keepdim=True)
    return above_BV | (equal_BV & (equal_BV.cumsum(-1) <= room_B1))


def moe_route(logits_TE: "Tensor", *, k: int, renormalize: bool) -> "tuple[Tensor, Tensor]":
    """Weights float32 and experts int64, [T, k]. Of equals, PyTorch takes any."""
    import torch

    weight_Tk, expert_Tk = torch.softmax(logits_TE, -1, dtype=torch.float32).topk(k, -1)
    return (weight_Tk / weight_Tk.sum(-1, keepdim=True) if renormalize else weight_Tk), expert_Tk


FUNCTIONS = {
    each.__name__: each
    for each in (
        *(rms_norm, add_rms_norm, rope, attention_prefill, attention_decode, linear, silu_mul, gelu_mul),
        *(softmax, argmax, top_k_top_p, moe_route),
    )
}


def _load(operator: str) -> DecoderKernel:
    if operator not in FUNCTIONS:
        raise UnknownName("operator of a model", operator, FUNCTIONS)
    return DecoderKernel(FUNCTIONS[operator])


DECODER = DecoderKernels(
    operators=tuple(CONTRACTS),
    unavailable=torch_unavailable,
    load=_load,
)
