"""Labels that an engine gives its passes, taken apart: `op[:role][:L<layer>]`, or `op:L<layer>.<role>`.

The class of a label is what it says without its layer: `matmul_rmsnorm_fused:L0.ffn_down` and
`matmul_rmsnorm_fused:ffn_down:L0` are both `matmul_rmsnorm_fused:ffn_down`. A name that isn't such a label, like that
of a CUDA kernel, is a class of its own, without layer or role. What a label means is recognised by `webgpu.py`.
"""

import re

from inferometer.patterns import late_re

_LAYER = late_re(r"(?:L|layer[_.]?)(?P<layer>\d{1,5})(?:\.(?P<role>.+))?", re.IGNORECASE)


def class_of_label(label: str) -> str:
    """The label without its layer; layers are parts of it between colons, with or without a role after a dot."""
    if "::" in label:  # names of C++
        return label
    op, *parts = label.split(":")
    kept = [op]
    for part in parts:
        layer = _LAYER.fullmatch(part)
        if layer is None:
            kept.append(part)
        elif layer["role"]:
            kept.append(layer["role"])
    return ":".join(kept)


def layer_of_label(label: str) -> int | None:
    """The first layer in a label; None where it has none."""
    parts = () if "::" in label else label.split(":")[1:]
    return next((int(match["layer"]) for part in parts if (match := _LAYER.fullmatch(part))), None)


def role_of_label(label: str) -> str | None:
    """What follows the operator, without the layer; None where nothing does."""
    return None if "::" in label else class_of_label(label).partition(":")[2] or None
