"""Convolutions of vendors' libraries: arguments where PyTorch's schemas have them, counts by PyTorch's own op."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.operators.framework.profiled import bytes_of, counted_flops
from tests.operators.framework.test_serving import call_of, work_of

torch = pytest.importorskip("torch", reason="needs torch")
F = torch.nn.functional

X, WEIGHT, BIAS = torch.randn(2, 8, 9, 9), torch.randn(6, 8, 3, 3), torch.randn(6)
DEPTHWISE, TRANSPOSED = torch.randn(8, 1, 3, 3), torch.randn(8, 6, 3, 3)
STEPS: dict[str, Any] = {"stride": [2, 2], "padding": [1, 1], "dilation": [1, 1]}


def recorded(op: str, **named: Any) -> Any:
    """A call with each argument where the schema has it."""
    packet = getattr(torch.ops.aten, op.removeprefix("aten::"))
    names = [each.name for each in getattr(packet, packet.overloads()[0])._schema.arguments]
    assert set(named) <= set(names)
    given = [named.get(name) for name in names]
    return call_of(op, *((tuple(each.shape), "float") if isinstance(each, torch.Tensor) else each for each in given))


def plain() -> Any:
    return F.conv2d(X, WEIGHT, stride=2, padding=1)


CASES: dict[str, tuple[dict[str, Any], Callable[[], Any], list[Any]]] = {
    "aten::cudnn_convolution": ({"weight": WEIGHT, "groups": 1, **STEPS}, plain, [X, WEIGHT]),
    "aten::miopen_convolution": ({"weight": WEIGHT, "bias": BIAS, "groups": 1, **STEPS}, plain, [X, WEIGHT, BIAS]),
    "aten::cudnn_convolution_relu": ({"weight": WEIGHT, "bias": BIAS, "groups": 1, **STEPS}, plain, [X, WEIGHT, BIAS]),
    "aten::cudnn_convolution_add_relu": (
        {"weight": WEIGHT, "bias": BIAS, "z": plain(), "groups": 1, **STEPS},
        plain,
        [X, WEIGHT, BIAS, plain()],
    ),
    "aten::_slow_conv2d_forward": (
        {"weight": WEIGHT, "kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]},
        plain,
        [X, WEIGHT],
    ),
    "aten::_conv_depthwise2d": (
        {"weight": DEPTHWISE, "kernel_size": [3, 3], **STEPS},
        lambda: F.conv2d(X, DEPTHWISE, stride=2, padding=1, groups=8),
        [X, DEPTHWISE],
    ),
    "aten::miopen_depthwise_convolution": (
        {"weight": DEPTHWISE, "groups": 8, **STEPS},
        lambda: F.conv2d(X, DEPTHWISE, stride=2, padding=1, groups=8),
        [X, DEPTHWISE],
    ),
    **{
        f"aten::{library}_convolution_transpose": (
            {"weight": TRANSPOSED, "groups": 1, "output_padding": [1, 1], **STEPS},
            lambda: F.conv_transpose2d(X, TRANSPOSED, stride=2, padding=1, output_padding=1),
            [X, TRANSPOSED],
        )
        for library in ("cudnn", "miopen")
    },
}


@pytest.mark.parametrize("op", CASES)
def test_vendors_ops_are_counted_as_pytorchs_own(op: str) -> None:
    named, run, read = CASES[op]

    work = work_of(recorded(op, self=X, **named))

    assert work.matrix_flops == counted_flops(run)
    assert work.read_bytes == bytes_of(read)
    assert work.written_bytes == bytes_of([run()])
