"""Kernels that vLLM ships: its CUDA and HIP operators and its Triton functions, for NVIDIA's and AMD's GPUs.

Interfaces of vLLM 0.33.0, read in its source distribution: `vllm/_custom_ops.py`, `csrc/torch_bindings.cpp` and the
modules named below. Older versions lack some, or have them elsewhere: those are refused, by name. Not run on a GPU
yet: tried against stand-ins of the same signatures.

What is in the time besides the kernel, where it isn't what an engine does for each layer:

- `fused_moe`: the contract's float32, converted from the bf16 of the library;
- `fused_qkv_rope`: copies of q, k and v, see `rope_by_table`;
- `fused_rmsnorm_quant`: a copy of the residual, which the library updates in place;
- `attention_forward`, `mla_decode_attention`: lengths on the host and tables of pages, in a batch's first call;
  no graph of such a call can be captured (`once_a_batch`).

`fp8_dynamic_per_token_quant` and `fused_rmsnorm_quant` give scales of at least 1 / (512 times the largest value), so
that rows of zeros have another scale than in the contract. `unified_attention` is the Triton kernel without split
keys, as engines use it for prompts.

Left out: `moe_align_block_size` (places by atomics keep no order), the delta rule's three (states lie V x K there, the
contract has K x V; row 0 is nobody's), `causal_conv1d` (Triton, for channels side by side), `topk_filter` (of equal
values some go), `fp8_blockscale_fused_moe` (quantises activations itself), `fused_qk_rmsnorm` (fused with rotation).
"""

from typing import TYPE_CHECKING, Any

from inferometer.backends.backend import Kernel
from inferometer.backends.vendor import (
    Loader,
    load_from,
    missing,
    no_gpu,
    part,
    require,
    require_largest,
)
from inferometer.backends.vendor_kernels import (
    added_norm_in_place,
    choose_into,
    gate_into,
    rope_by_table,
    sum_into,
    write_to_cache,
)
from inferometer.backends.vllm.attention import LOADERS as ATTENTION

if TYPE_CHECKING:
    from torch import Tensor

_LIBRARY = "vllm"
_OPS = "vllm._custom_ops"
_LARGEST = {"fp8_e4m3fn": 448.0, "fp8_e4m3fnuz": 224.0}  # csrc/quantization/utils.cuh


def vllm_unavailable(device: str) -> str | None:
    """Why vLLM's kernels can't run on `cpu`, `cuda` or `cuda:1` here; None where they can."""
    return missing("vllm", "vllm", "pip install vllm") or no_gpu("vllm", device)


def _rms_norm() -> Kernel:
    import torch

    norm = part(_OPS, "rms_norm")

    def kernel(x_TH: "Tensor", weight_H: "Tensor", *, eps: float = 1e-6) -> "Tensor":
        out_TH = torch.empty_like(x_TH)
        norm(out_TH, x_TH, weight_H, eps)
        return out_TH

    return kernel


def _fused_add_rms_norm() -> Kernel:
    return added_norm_in_place(part(_OPS, "fused_add_rms_norm"))


def _gated_rms_norm() -> Kernel:
    norm = part("vllm.third_party.flash_linear_attention.ops.layernorm_guard", "rmsnorm_fn")

    def kernel(
        x_RH: "Tensor",
        weight_H: "Tensor",
        z_RH: "Tensor",
        *,
        eps: float = 1e-6,
        norm_before_gate: bool = True,
        activation: str = "silu",
    ) -> "Tensor":
        out_RH: Tensor = norm(
            x_RH, weight_H, None, z=z_RH, eps=eps, norm_before_gate=norm_before_gate, activation=activation
        )
        return out_RH

    return kernel


def _l2_norm() -> Kernel:
    norm = part("vllm.third_party.flash_linear_attention.ops.l2norm", "l2norm_fwd")

    def kernel(x_TH: "Tensor", *, eps: float = 1e-6) -> "Tensor":
        out_TH: Tensor = norm(x_TH, eps=eps)
        return out_TH

    return kernel


def _fused_rmsnorm_quant() -> Kernel:
    quantise, own = part(_OPS, "rms_norm_dynamic_per_token_quant"), _own_fp8()

    def kernel(
        x_TH: "Tensor",
        residual_TH: "Tensor",
        weight_H: "Tensor",
        *,
        eps: float = 1e-5,
        fp8_dtype: str = "fp8_e4m3fnuz",
        fp8_max: float | None = None,
    ) -> "tuple[Tensor, Tensor, Tensor]":
        _require_fp8(own, fp8_dtype, fp8_max)
        added_TH = residual_TH.clone()
        quantized_TH, scale_T1 = quantise(x_TH, weight_H, eps, own, None, added_TH)
        return quantized_TH, scale_T1, added_TH

    return kernel


def _fp8_dynamic_per_token_quant() -> Kernel:
    quantise, own = part(_OPS, "scaled_fp8_quant"), _own_fp8()

    def kernel(
        x_TH: "Tensor", *, fp8_dtype: str = "fp8_e4m3fnuz", fp8_max: float | None = None
    ) -> "tuple[Tensor, Tensor]":
        _require_fp8(own, fp8_dtype, fp8_max)
        q_TH, scale_T1 = quantise(x_TH, use_per_token_if_dynamic=True)
        return q_TH, scale_T1.squeeze(-1)

    return kernel


def _per_token_group_quant_fp8() -> Kernel:
    """The function engines call; its `eps` is the least magnitude, the contract's the least scale."""
    from inferometer.operators.catalogue.per_token_group_quant_fp8 import LEAST_SCALE

    quantise = part("vllm.model_executor.layers.quantization.utils.fp8_utils", "per_token_group_quant_fp8")
    own = _own_fp8()

    def kernel(
        x_TH: "Tensor", *, group_size: int, fp8_dtype: str = "fp8_e4m3fn", fp8_max: float | None = None
    ) -> "tuple[Tensor, Tensor]":
        _require_fp8(own, fp8_dtype, _LARGEST.get(fp8_dtype) if fp8_max is None else fp8_max)
        least = LEAST_SCALE * _LARGEST[fp8_dtype]
        q_TH, scale_TG = quantise(x_TH, group_size, eps=least, dtype=own, use_ue8m0=False)
        return q_TH, scale_TG

    return kernel


def _own_fp8() -> Any:
    """The FP8 dtype of vLLM's platform."""
    return part("vllm.platforms", "current_platform").fp8_dtype()


def _require_fp8(own: Any, name: str, largest: float | None) -> None:
    """Refuse a dtype, by its short name, that isn't the platform's, and a largest value that isn't vLLM's."""
    from inferometer.operators.catalogue.draws import largest_of, torch_dtype

    short = str(own).removeprefix("torch.")
    require(torch_dtype(name) == own, f"vllm quantises to {short} here, expected {name}")
    require_largest(_LIBRARY, name, largest, largest_of(name), _LARGEST[name])


def _silu_and_mul() -> Kernel:
    part(_OPS, "rms_norm")  # its import registers the operator
    return gate_into(part("torch", "ops._C.silu_and_mul"))


def _fused_qkv_rope() -> Kernel:
    return rope_by_table(part(_OPS, "rotary_embedding"))


def _mrope() -> Kernel:
    """In place, with tables in float32; models have them in their own dtype."""
    rotate = part("vllm.model_executor.layers.rotary_embedding.mrope", "triton_mrope")

    def kernel(
        q_TN: "Tensor",
        k_TN: "Tensor",
        cos_3TR: "Tensor",
        sin_3TR: "Tensor",
        *,
        head_size: int,
        rotary_dim: int,
        mrope_section: Any,
        mrope_interleaved: bool = False,
        is_neox_style: bool = True,
    ) -> "tuple[Tensor, Tensor]":
        section = list(mrope_section)
        q_out, k_out = rotate(
            q_TN, k_TN, cos_3TR, sin_3TR, section, head_size, rotary_dim, mrope_interleaved, is_neox_style
        )
        return q_out, k_out

    return kernel


def _reshape_and_cache() -> Kernel:
    return write_to_cache(part(_OPS, "reshape_and_cache_flash"))


def _moe_topk_gating_softmax() -> Kernel:
    return choose_into(part(_OPS, "topk_softmax"), _LIBRARY)


def _moe_sum_reduce() -> Kernel:
    return sum_into(part(_OPS, "moe_sum"), _LIBRARY)


def _fused_moe() -> Kernel:
    experts = part("vllm.model_executor.layers.fused_moe.fused_moe", "fused_experts")

    def kernel(
        hidden_TH: "Tensor", w1_EFH: "Tensor", w2_EHI: "Tensor", weights_Tk: "Tensor", ids_Tk: "Tensor"
    ) -> "Tensor":
        out_TH: Tensor = experts(hidden_TH, w1_EFH, w2_EHI, weights_Tk, ids_Tk)
        return out_TH.float()

    return kernel


def _block_scaled_mm() -> Kernel:
    import torch

    multiply = part("vllm.model_executor.layers.quantization.utils.fp8_utils", "w8a8_triton_block_scaled_mm")

    def kernel(
        a_mk: "Tensor",
        b_nk: "Tensor",
        a_scales: "Tensor",
        b_scales: "Tensor",
        *,
        group_n: int = 128,
        group_k: int = 128,
    ) -> "Tensor":
        powers = all(each.bit_count() == 1 for each in (group_n, group_k))
        require(powers, f"vllm's block_scaled_mm wants groups of a power of two, found {group_n} and {group_k}")
        out_mn: Tensor = multiply(a_mk, b_nk, a_scales, b_scales, [group_n, group_k], torch.float32)
        return out_mn

    return kernel


LOADERS: dict[str, Loader] = {
    **ATTENTION,
    "block_scaled_mm": _block_scaled_mm,
    "fp8_dynamic_per_token_quant": _fp8_dynamic_per_token_quant,
    "fused_add_rms_norm": _fused_add_rms_norm,
    "fused_moe": _fused_moe,
    "fused_qkv_rope": _fused_qkv_rope,
    "fused_rmsnorm_quant": _fused_rmsnorm_quant,
    "gated_rms_norm": _gated_rms_norm,
    "l2_norm": _l2_norm,
    "moe_sum_reduce": _moe_sum_reduce,
    "moe_topk_gating_softmax": _moe_topk_gating_softmax,
    "mrope": _mrope,
    "per_token_group_quant_fp8": _per_token_group_quant_fp8,
    "reshape_and_cache": _reshape_and_cache,
    "rms_norm": _rms_norm,
    "silu_and_mul": _silu_and_mul,
}


def load_kernel(name: str) -> Kernel:
    """The kernel of one of the catalogue's operators."""
    return load_from(LOADERS, name)
