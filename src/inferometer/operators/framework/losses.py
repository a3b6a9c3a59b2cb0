"""Losses: what is predicted and what was wanted are read once; the result is one number unless it isn't reduced."""

from inferometer.operators.framework.call import OpCall, Tensor
from inferometer.operators.framework.counting import moved, read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_NOT_REDUCED = "0"


def _of_two(reduction_at: int) -> Model:
    """Three operations an element of two tensors; `reduction_at`: where it stands whether they are reduced."""

    def work(call: OpCall) -> Work:
        x, target = call.tensor(0), call.tensor(1)
        weights = [call.maybe_tensor(at) for at in range(2, reduction_at)]
        written = x.numel if _is_kept(call, reduction_at) else 1
        read = x.bytes + target.bytes + read_bytes(weights)
        return moved(read, written * x.item_bytes, vector=3 * x.numel)

    return work


def _is_kept(call: OpCall, reduction_at: int) -> bool:
    return call.inputs[reduction_at : reduction_at + 1] == (_NOT_REDUCED,)


def _of_classes(call: OpCall) -> Work:
    """Logarithms [N, C, …], the class of each, weights of classes: one logarithm of each is read."""
    x, target = call.tensor(0), call.tensor(1)
    written = target.numel if _is_kept(call, 3) else 2  # the sum of weights is one
    return moved(target.bytes + target.numel * x.item_bytes, written * x.item_bytes, vector=target.numel)


def _of_classes_backward(call: OpCall) -> Work:
    """Gradient, logarithms, classes: one element for each class is written into a tensor that another op clears."""
    grad, x, target = call.tensor(0), call.tensor(1), call.tensor(2)
    return moved(grad.bytes + target.bytes, _picked(x, target) * x.item_bytes, vector=target.numel)


def _picked(x: Tensor, target: Tensor) -> int:
    return min(x.numel, target.numel)


FAMILY = OpFamily(
    name="losses",
    models={
        **dict.fromkeys(("aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "aten::huber_loss"), _of_two(2)),
        "aten::binary_cross_entropy_with_logits": _of_two(4),
        "aten::binary_cross_entropy": _of_two(3),
        **dict.fromkeys(("aten::nll_loss_forward", "aten::nll_loss2d_forward"), _of_classes),
        **dict.fromkeys(("aten::nll_loss_backward", "aten::nll_loss2d_backward"), _of_classes_backward),
    },
)
