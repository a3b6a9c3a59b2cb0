"""Activations made of 8 or 4 bits with their scales, alone or behind a norm or an activation, and weights made of more.

A scale that is given is read, one that is found is written. Positions: the bindings of vLLM, SGLang and AITER.
"""

from inferometer.operators.framework.call import OpCall, Unmodelled
from inferometer.operators.framework.counting import moved, read_bytes, row_count
from inferometer.operators.framework.family import Model, OpFamily
from inferometer.operators.work import Work

_IN_A_BYTE = 2  # numbers of 4 bits
_IN_A_WORD = 8
_PACKED = ("int", "unsigned int")


def _quant(*, out_at: int = 0, x_at: int = 1, dynamic: bool) -> Model:
    """Output of 8 bits and x in this order or the other, scale: read, or written by a dynamic one."""

    def work(call: OpCall) -> Work:
        out, x = call.tensor(out_at), call.tensor(x_at)
        scale = call.maybe_tensor(2)
        size = scale.bytes if scale else 0
        return moved(x.bytes + (0 if dynamic else size), out.bytes + (size if dynamic else 0), vector=2 * x.numel)

    return work


def _group_quant(call: OpCall) -> Work:
    """`x`, output, scales of groups: an element is compared and multiplied, a group has three operations more."""
    x, out, scales = (call.tensor(at) for at in range(3))
    return moved(x.bytes, out.bytes + scales.bytes, vector=2 * x.numel + 3 * scales.numel)


def _tensor_quant(call: OpCall) -> Work:
    """`x`, output, scale, whether it is given."""
    x, out, scale = (call.tensor(at) for at in range(3))
    given = scale.bytes if call.value(3) is True else 0
    return moved(x.bytes + given, out.bytes + scale.bytes - given, vector=2 * x.numel)


def _four_bits(call: OpCall) -> Work:
    """Output, two numbers in a byte, x, scales of blocks, the scale of all."""
    out, x, scales, scale = (call.tensor(at) for at in range(4))
    if out.numel * _IN_A_BYTE != x.numel:
        raise Unmodelled(f"expected an output of half as many bytes as x has numbers, found {list(out.dims)}")
    return moved(x.bytes + scale.bytes, out.bytes + scales.bytes, vector=2 * x.numel)


def _rms_norm_quant(call: OpCall) -> Work:
    """Output of 8 bits, x, weight, scale."""
    out, x = call.tensor(0), call.tensor(1)
    rows = row_count(x)
    return moved(read_bytes([x, call.tensor(2), call.maybe_tensor(3)]), out.bytes, vector=6 * x.numel, special=rows)


def _add_rms_norm_quant(call: OpCall) -> Work:
    """Output of 8 bits, x, residual, which becomes the sum, weight, scale."""
    out, x, residual, weight, scale = (call.tensor(at) for at in range(5))
    read = read_bytes((x, residual, weight, scale))
    return moved(read, out.bytes + residual.bytes, vector=7 * x.numel, special=row_count(x))


def _rms_norm_dynamic_quant(call: OpCall) -> Work:
    """Output of 8 bits, x, weight, scales that are found; at 6 a residual, which becomes the sum."""
    out, x, weight, scales = (call.tensor(at) for at in range(4))
    residual = read_bytes([call.maybe_tensor(6)])
    vector = (7 if residual else 6) * x.numel
    read = x.bytes + weight.bytes + residual
    return moved(read, out.bytes + scales.bytes + residual, vector=vector, special=row_count(x))


def _gated_quant(*, found: bool) -> Model:
    """Output of 8 bits [T, d], x [T, 2 d], scale: given, or found."""

    def work(call: OpCall) -> Work:
        out, x, scale = (call.tensor(at) for at in range(3))
        given = 0 if found else scale.bytes
        return moved(x.bytes + given, out.bytes + scale.bytes - given, vector=6 * out.numel, special=out.numel)

    return work


def _unpacked(call: OpCall) -> Work:
    """Weight, eight numbers of 4 bits in an integer, scales, zeros: all of it, in the type of the scales."""
    weight, scales, zeros = (call.tensor(at) for at in range(3))
    if weight.dtype not in _PACKED:
        raise Unmodelled(f"expected integers of eight numbers each, found {weight.dtype}")
    numel = weight.numel * _IN_A_WORD
    return moved(read_bytes((weight, scales, zeros)), numel * scales.item_bytes, vector=2 * numel)


FAMILY = OpFamily(
    name="quantising",
    models={
        **dict.fromkeys(
            ("_C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant", "aiter::static_per_tensor_quant"),
            _quant(dynamic=False),
        ),
        **dict.fromkeys(
            (
                *("_C::dynamic_scaled_fp8_quant", "_C::dynamic_per_token_scaled_fp8_quant"),
                *("_C::dynamic_scaled_int8_quant", "aiter::dynamic_per_tensor_quant"),
                "aiter::dynamic_per_token_scaled_quant",
            ),
            _quant(dynamic=True),
        ),
        "sgl_kernel::sgl_per_token_quant_fp8": _quant(out_at=1, x_at=0, dynamic=True),
        "sgl_kernel::sgl_per_tensor_quant_fp8": _tensor_quant,
        **dict.fromkeys(
            (
                *("_C::per_token_group_fp8_quant", "_C::per_token_group_quant_int8"),
                *(f"sgl_kernel::sgl_per_token_group_quant_{name}" for name in ("fp8", "int8", "8bit")),
            ),
            _group_quant,
        ),
        **dict.fromkeys(("_C::scaled_fp4_quant", "sgl_kernel::scaled_fp4_quant"), _four_bits),
        "_C::rms_norm_static_fp8_quant": _rms_norm_quant,
        "_C::fused_add_rms_norm_static_fp8_quant": _add_rms_norm_quant,
        **dict.fromkeys(
            ("_C::rms_norm_dynamic_per_token_quant", "_C::rms_norm_per_block_quant"), _rms_norm_dynamic_quant
        ),
        "_C::silu_and_mul_quant": _gated_quant(found=False),
        "_C::silu_and_mul_per_block_quant": _gated_quant(found=True),
        **dict.fromkeys(("_C::awq_dequantize", "sgl_kernel::awq_dequantize"), _unpacked),
    },
)
