"""The k-th largest of each row by `torch.topk`, then one pass that keeps what is not below it.

Sorted top k, not the least of an unsorted one: where a row has NaN, `amin` would be NaN and keep all of it.

T rows, V vocabulary size.
"""

import torch
from torch import Tensor


def topk_filter(logits: Tensor, *, top_k: int = 50) -> Tensor:
    """What is below the k-th largest of its row becomes -inf; all that equal it stay, and NaN do."""
    kth_T1 = torch.topk(logits, min(top_k, logits.shape[1]), -1).values[:, -1:]
    return torch.where(logits < kth_T1, float("-inf"), logits).contiguous()
