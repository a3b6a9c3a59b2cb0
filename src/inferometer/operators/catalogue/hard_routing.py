"""Hard routing of tokens to experts, which all operators of mixtures of experts share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inferometer.operators.hard_cases import Change, Tensors


def same_experts(last: bool) -> "Change":
    """Every token has the same experts, the first ones or the last; the others have none."""

    def change(tensors: "Tensors", args: Mapping[str, Any]) -> "Tensors":
        import torch

        ids_Tk = tensors["topk_ids"]
        first = args["num_experts"] - ids_Tk.shape[1] if last else 0
        same_k = torch.arange(first, first + ids_Tk.shape[1], dtype=ids_Tk.dtype, device=ids_Tk.device)
        return {"topk_ids": same_k.expand_as(ids_Tk).contiguous()}

    return change
