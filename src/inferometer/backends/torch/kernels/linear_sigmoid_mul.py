"""A gate in plain PyTorch: a linear layer with its bias, then sigmoid and multiply in its memory.

T tokens, H hidden size, F output features. The gate, its sigmoid and the product are each rounded.
"""

from torch import Tensor
from torch.nn.functional import linear


def linear_sigmoid_mul(hidden_states: Tensor, weight: Tensor, bias: Tensor, post_mul_mat: Tensor) -> Tensor:
    """[T, F]."""
    return linear(hidden_states, weight, bias).sigmoid_().mul_(post_mul_mat)
