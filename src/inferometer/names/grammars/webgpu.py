"""Labels of a WebGPU engine's passes: `op[:role[:L<layer>]]`, or `op:L<layer>.<role>`; roles may have several words.

Source: logs of one browser engine, and our own engine (`engines/webgpu`); `engine_labels` takes them apart. The ops
without a layer are words that other libraries use too, so only these exact words count, and only where nothing else
stands in the name; after an op with a layer any word may stand.
"""

from inferometer.names.engine_labels import layer_of_label, role_of_label
from inferometer.names.grammars.words import find_family
from inferometer.names.kernel_name import Evidence, Family, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_LABEL = late_re(r"(?P<op>[A-Za-z][\w.+\- ]{0,80})(?::[^:]{1,80}){0,8}")
_WORD = late_re(r"\w+")
_OPS: dict[str, tuple[Family, str, tuple[str, ...]]] = {
    "matmul": ("gemm", "matmul", ()),
    "matmul_rmsnorm_fused": ("gemm", "matmul", ("rms_norm",)),
    "matmul_bias": ("gemm", "matmul", ("bias",)),
    "matmul_residual": ("gemm", "matmul", ("residual",)),
    "matmul_q4": ("gemm", "matmul q4", ()),
    "linear": ("gemm", "linear", ()),
    "linear_split": ("gemm", "linear, split", ()),
    "linear_sum": ("gemm", "sum of split linear", ()),
    "linear_add": ("gemm", "linear", ("add",)),
    "norm_linear": ("gemm", "linear", ("rms_norm",)),
    "norm_gate_up": ("gemm", "gate and up", ("rms_norm", "activation")),
    "gate_up": ("gemm", "gate and up", ("activation",)),
    "gated_activation": ("activation", "gated activation", ()),
    "fused_ffn": ("gemm", "fused ffn gate+up+activation", ("activation",)),
    "attention": ("attention", "attention", ()),
    "attention_merge": ("attention_combine", "attention merge", ()),
    "attend": ("attention", "attention", ()),
    "sdpa": ("attention", "attention", ()),
    "rmsnorm": ("norm", "rms_norm", ()),
    "rms_norm": ("norm", "rms_norm", ()),
    "add_rms_norm": ("norm", "rms_norm", ("add",)),
    "norm_add_norm": ("norm", "rms_norm", ("rms_norm", "add")),
    "layernorm": ("norm", "layer_norm", ()),
    "rope": ("rope", "rope", ()),
    "gather": ("gather_scatter", "gather (embedding)", ()),
    "moe_route": ("moe_routing", "expert routing", ()),
    "expert_gate_up": ("grouped_gemm", "gate and up of experts", ("activation",)),
    "expert_down": ("grouped_gemm", "down of experts", ("combine",)),
    "shared_expert_add": ("elementwise", "shared expert add", ("scale",)),
    "soft_cap": ("elementwise", "soft cap", ()),
    "scale": ("elementwise", "scale", ()),
    "add": ("elementwise", "add", ()),
    "residual_add": ("elementwise", "residual add", ()),
    "gelu": ("activation", "gelu", ()),
    "silu": ("activation", "silu", ()),
    "silu_mul": ("activation", "silu_and_mul", ()),
    "softmax": ("softmax", "softmax", ()),
    "kv_write": ("kv_cache", "kv cache write", ()),
    "argmax": ("sampling", "argmax", ()),
    "sample": ("sampling", "sample", ()),
    "sample_phase1": ("sampling", "sampling phase 1", ()),
    "sample_phase2": ("sampling", "sampling phase 2", ()),
    "sample_phase3": ("sampling", "sampling phase 3", ()),
}


def read(name: ParsedName) -> KernelName | None:
    """A label with its layer and role."""
    if not name.is_bare or name.is_amd or name.is_cut:
        return None
    match = _LABEL.fullmatch(name.text)
    if match is None:
        return None
    op, layer, role = match["op"], layer_of_label(name.text), role_of_label(name.text)
    if layer is None and role and not _WORD.fullmatch(role):
        return None
    if op in _OPS:
        family, words, fused = _OPS[op]
    elif layer is not None:
        family, words, fused = find_family(op) or "other", op.replace("_", " "), ()
    else:
        return None
    return KernelName(
        library="webgpu",
        family=family,
        layer=layer,
        role=role,
        fused=fused,
        short_name=short(
            words, role, *(f"+ {word}" for word in fused if role), "" if layer is None else f"layer {layer}"
        ),
        evidence=Evidence("WebGPU label", "V"),
    )


GRAMMAR = Grammar("webgpu", "form", read, spaces="")
