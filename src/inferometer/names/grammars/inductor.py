"""TorchInductor: `triton_<kind>_fused_<ops>_<index>`. Source: torch/_inductor.

The ops are the ATen ones fused, sorted and cut; they include those whose layout alone was folded in, so a pointwise
kernel that names addmm runs no product. The index counts kernels of one graph, and is dropped from the canonical form.
Without unique names all are called `triton_`, which says nothing of what they do.
"""

import re

from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_NAME = late_re(r"(?!\w*_kernel$)triton_(?P<kind>poi|red|per|tem|for|mm|spl|split_scan|mix|unk)_(?:fused)?(?P<ops>\w*)")
_KINDS = {
    "poi": "pointwise", "red": "reduction", "per": "persistent", "tem": "template", "for": "foreach", "mm": "template",
    "spl": "scan", "split_scan": "scan", "mix": "mix order", "unk": "",
}  # fmt: skip
_ATTENTION = late_re(r"flex_attention|flex_decoding|scaled_dot_product")
_ACTIVATION = late_re(
    r"_(?:silu|gelu|sigmoid_\w*mul|mul_\w*sigmoid|relu|tanh|hardswish|leaky_relu|elu|softplus|mish)(?=_|$)"
)
_COLLECTIVE = late_re(r"all_to_all_single|all_gather_into_tensor|all_reduce|reduce_scatter_tensor")
_MOVES = {
    "view", "clone", "cat", "to", "copy", "pad", "transpose", "permute", "slice", "unsqueeze", "expand", "reshape", "t",
    "constant", "nd", "select", "stack", "split", "squeeze", "alias", "unsafe", "repeat", "detach", "empty", "lift",
    "fresh", "as", "strided", "contiguous", "zeros", "ones", "full", "like", "fill", "zero", "new", "with", "sizes",
    "getitem", "wait", "convert", "element", "type", "prims", "scalar", "tensor",
}  # fmt: skip


def read(name: ParsedName) -> KernelName | None:
    """A kernel of TorchInductor. Which types it computes on, the name doesn't say."""
    if name.function == "triton_" and name.is_bare:
        return KernelName(
            library="inductor",
            short_name="inductor kernel",
            evidence=Evidence("Inductor kernel without its ops", "D"),
        )
    match = _NAME.fullmatch(name.function) if name.function.startswith("triton_") else None
    if match is None or not name.is_bare:
        return None
    kind, ops = match["kind"], re.sub(r"_\d+$", "", match["ops"])
    family = _family(kind, ops)
    words = " ".join(word for word in ops.split("_") if word)
    return KernelName(
        library="inductor",
        family=family,
        short_name=short(f"inductor {_KINDS[kind]}:", words),
        evidence=Evidence(f"Inductor {_KINDS[kind]} kernel", "D"),
    )


def _family(kind: str, ops: str) -> Family:
    if kind in ("tem", "mm"):
        if _ATTENTION.search(ops):
            return "attention"
        return "conv" if "convolution" in ops and "mm" not in ops else "gemm"
    if kind in ("spl", "split_scan"):
        return "scan_sort"
    if kind in ("red", "per", "mix"):
        return _reduction(ops)
    if _ACTIVATION.search(ops):
        return "activation"
    ops = _COLLECTIVE.sub("", ops)  # whose result is waited for and copied
    words = {word for word in ops.split("_") if word and not word.isdigit()}
    return "copy" if words and words <= _MOVES else "elementwise"


def _reduction(ops: str) -> Family:
    if re.search(r"(?:native_|fused_)?(?:layer|rms|group|batch)_norm|rsqrt", ops) and (
        "norm" in ops or ("mean" in ops and re.search(r"pow|mul|square", ops)) or "var_mean" in ops
    ):
        return "norm"
    if "softmax" in ops or ("amax" in ops and "exp" in ops and "sum" in ops):
        return "softmax"
    return "reduction"


GRAMMAR = Grammar("inductor", "form", read, spaces="", letters="t")
