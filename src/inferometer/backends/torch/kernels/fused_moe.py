"""Slots sorted by expert, both products of all experts as grouped products, and the rows of each token summed.

`torch.nn.functional.grouped_mm` (torch 2.10) reads on the device where an expert's rows end: a handful of launches for
any number of experts, no synchronisation, weights of unused experts unread. That is so on GPUs that it has a kernel for
(compute capability 9.0 and 10.x); on others it tells the ends to the host and takes expert after expert, as the loop
here does where torch is older.

Rounded to bf16: what the first product gives, silu, its product with up, that with the router's weight, what the
second gives. The sum over a token's experts is float32. Ids that are nobody's go to an expert with weight 0.

T tokens, H hidden size, I intermediate size, F = 2 I, E experts, k experts a token, s = T k slots. The largest
published shape (T 45,936, k 8, H 2,048, I 768) takes 6.5 GB with its inputs.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad, silu

_ALIGNED = 8  # bf16 in the 16 bytes that rows of a grouped product must be a multiple of


def fused_moe(hidden_states: Tensor, w1: Tensor, w2: Tensor, topk_weights: Tensor, topk_ids: Tensor) -> Tensor:
    """float32 [T, H]; w1 [E, F, H], gate before up; w2 [E, H, I]."""
    experts = w1.shape[0]
    ids_Tk = topk_ids.clamp(0, experts - 1)
    weights_Tk = topk_weights * (ids_Tk == topk_ids)
    ranked_s, order_s = ids_Tk.flatten().to(torch.int16 if experts < 1 << 15 else torch.int32).sort(stable=True)
    numbers_E = torch.arange(experts, dtype=ranked_s.dtype, device=ranked_s.device)
    ends_E = torch.searchsorted(ranked_s, numbers_E, right=True, out_int32=True)
    gate_sI, up_sI = _products(hidden_states[order_s // topk_ids.shape[1]], w1, ends_E).chunk(2, -1)
    inner_sI = silu(gate_sI).mul_(up_sI).mul_(weights_Tk.flatten()[order_s, None])
    found_sH = _products(inner_sI, w2, ends_E)
    place_s = torch.empty_like(order_s).scatter_(0, order_s, torch.arange(len(order_s), device=order_s.device))
    return found_sH[place_s].unflatten(0, topk_ids.shape).sum(1, dtype=torch.float32)


def _products(x_sK: Tensor, weights_ENK: Tensor, ends_E: Tensor) -> Tensor:
    """[s, N]: rows times the matrix of their expert."""
    if not hasattr(torch.nn.functional, "grouped_mm"):
        rows = zip(x_sK.tensor_split(ends_E[:-1].tolist()), weights_ENK, strict=True)
        return torch.cat([part @ weight_NK.mT for part, weight_NK in rows])
    spare = -x_sK.shape[1] % _ALIGNED
    if spare:
        x_sK, weights_ENK = pad(x_sK, (0, spare)), pad(weights_ENK, (0, spare))
    if any(stride % _ALIGNED for stride in weights_ENK.stride()[:2]) or weights_ENK.stride(2) != 1:
        weights_ENK = weights_ENK.contiguous()
    return torch.nn.functional.grouped_mm(x_sK, weights_ENK.mT, offs=ends_E)
