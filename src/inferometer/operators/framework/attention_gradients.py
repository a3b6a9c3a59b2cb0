"""Gradients of attention: the probabilities are made again from queries and keys, then four products follow.

Of each pair that the mask lets through: the score again and the gradients of query and key over D, the gradients of
probability and value over Dv. PyTorch's FlopCounterMode counts the same five products, but of all pairs. Causal flags
and windows stand where those of the forward op do, one place later and after its results. The gradient of a mask isn't
counted. Sources of positions: PyTorch's native_functions.yaml, 2.13; flash-attention 2.7's interface.
"""

from msgspec.structs import replace

from inferometer.operators.framework.attention import BHSD, BSHD, dense, either, varlen
from inferometer.operators.framework.call import OpCall
from inferometer.operators.framework.counting import read_bytes
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_SCORES, _VALUES = 3, 2  # products over the size of a query's head, and over that of a value's


def _gradients(forward: Model, *, out_at: int, sums_at: int) -> Model:
    """Of the gradient of the result, q, k and v: `forward` is a model of the arguments after the first."""

    def work(call: OpCall) -> Work:
        grad, q, k, v, out = (call.tensor(at) for at in (0, 1, 2, 3, out_at))
        found = forward(replace(call, inputs=call.inputs[1:]))
        scores, values = found.products
        rows = out.numel // (out.dims[-1] or 1)
        return replace(
            found,
            products=(scores,) * _SCORES + (values,) * _VALUES,
            vector_flops=found.vector_flops + 2 * rows * out.dims[-1],
            read_bytes=found.read_bytes + read_bytes((grad, out, call.maybe_tensor(sums_at))),
            written_bytes=sum(each.numel * each.item_bytes for each in (q, k, v)),
        )

    return work


_FLASH = either(
    5,
    dense(BSHD, causal_at=10, windows_at=14),
    varlen(causal_at=10, sequences_at=5, max_q_at=7, max_k_at=8, windows_at=14),
)
_EFFICIENT = either(
    5,
    dense(BSHD, causal_at=13, mask_at=3),
    varlen(causal_at=13, sequences_at=5, max_q_at=7, max_k_at=8),
)
_CUDNN = _gradients(dense(BHSD, causal_at=13, mask_at=7), out_at=4, sums_at=5)
_MODELS = {
    "aten::_flash_attention_backward": _gradients(_FLASH, out_at=4, sums_at=5),
    "aten::_efficient_attention_backward": _gradients(_EFFICIENT, out_at=5, sums_at=10),
    "aten::_cudnn_attention_backward": _CUDNN,
    "aten::_scaled_dot_product_flash_attention_backward": _gradients(dense(BHSD, causal_at=10), out_at=4, sums_at=5),
    "aten::_scaled_dot_product_efficient_attention_backward": _gradients(
        dense(BHSD, causal_at=10, mask_at=3), out_at=5, sums_at=6
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": _CUDNN,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _gradients(
        dense(BHSD, causal_at=6, mask_at=7), out_at=4, sums_at=5
    ),
    "flash_attn::_flash_attn_backward": _gradients(
        dense(BSHD, causal_at=10, windows_at=11, from_end=True), out_at=4, sums_at=5
    ),
    "flash_attn::_flash_attn_varlen_backward": _gradients(
        varlen(causal_at=14, sequences_at=8, max_q_at=10, max_k_at=11, windows_at=15), out_at=4, sums_at=5
    ),
}
FAMILY = OpFamily(
    name="gradients of attention",
    models=_MODELS,
    covering=frozenset(op for op in _MODELS if "scaled_dot_product" in op or op.startswith("flash_attn::")),
)
